"""Roles and their permissions (pure).

Owns all permissions, in two tables. A *role* is held on one site, or on `SERVICE`, which means
every site and the service itself. Guests and authors hold none: to write, vote and follow, they
need their own token. The author id, never a role, decides whether a comment is their own
(`posting`).

Invariants:

1. Only the actions in the table are allowed.
2. A role on one site allows nothing on other sites.
3. An empty site id means no site, and never all sites.
"""

import enum
from collections.abc import Iterable
from typing import NamedTuple

# No site has this id: site ids consist of a-z, 0-9 and "-".
SERVICE = "*"


class Role(enum.StrEnum):
    """Roles, from the weakest to the strongest. Stored as text: renaming one is a migration.

    A guest writes without signing in, an author is signed in; both may change only their own
    comments. A moderator decides about the comments of a site; an owner controls the site, or the
    service.
    """

    GUEST = "guest"
    AUTHOR = "author"
    MODERATOR = "moderator"
    OWNER = "owner"


class Right(enum.StrEnum):
    """Rights. The first two apply to one's own comments and profile only."""

    WRITE = "write"
    PROFILE = "profile"
    MODERATE = "moderate"
    MANAGE = "manage"


_RIGHTS = {
    Role.GUEST: frozenset({Right.WRITE}),
    Role.AUTHOR: frozenset({Right.WRITE, Right.PROFILE}),
    Role.MODERATOR: frozenset({Right.WRITE, Right.PROFILE, Right.MODERATE}),
    Role.OWNER: frozenset(Right),
}
# The roles that can be granted on a site.
GRANTED = (Role.MODERATOR, Role.OWNER)


class Grant(NamedTuple):
    """A role on a site, or on `SERVICE`."""

    role: Role
    site: str


def may(grants: Iterable[Grant], right: Right, site: str) -> bool:
    """Whether roles allow this on a site. On `SERVICE`, only a role on the service does."""
    return bool(site) and any(
        right in _RIGHTS[grant.role] and grant.site in {site, SERVICE} for grant in grants
    )


def has(grants: Iterable[Grant], role: Role, site: str) -> bool:
    """Whether grants allow everything that a role allows on a site."""
    return all(may(grants, right, site) for right in _RIGHTS[role])
