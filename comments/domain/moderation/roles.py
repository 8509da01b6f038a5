"""Roles and their permissions (pure).

This module owns all permissions, in two tables. A *role* applies to one site, or to `SERVICE`,
which means every site and the service itself. Guests and authors have no roles: to write, vote and
follow, they need only their own token. A comment's author id, not a role, determines who may change
it as its author (`posting`).

Only the actions in the tables are allowed. An empty site id means no site; it never means all
sites.
"""

import enum
from collections.abc import Iterable
from typing import NamedTuple

# No site has this id, because site ids consist of a-z, 0-9 and "-".
SERVICE = "*"


class Role(enum.StrEnum):
    """The roles, from weakest to strongest.

    Roles are stored as text, so renaming one requires a migration.

    A guest writes without signing in, and an author is signed in; both may change only their own
    comments. A moderator decides about the comments on a site; an owner controls the site, or the
    service.
    """

    GUEST = "guest"
    AUTHOR = "author"
    MODERATOR = "moderator"
    OWNER = "owner"


class Right(enum.StrEnum):
    """The permissions that roles grant.

    The first two apply only to a person's own comments and profile.
    """

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
    """Return whether roles allow an action on a site.

    If the site is `SERVICE`, only a role on the service counts.
    """
    return bool(site) and any(
        right in _RIGHTS[grant.role] and grant.site in {site, SERVICE} for grant in grants
    )


def is_moderator_of(grants: Iterable[Grant], site: str) -> bool:
    """Return whether these are the roles of a person whom owners of the site manage.

    Such a person moderates the site. Owners of the site, and people with a role on the service, are
    managed by owners of the service.
    """
    known = set(grants)
    return Grant(Role.MODERATOR, site) in known and all(grant.site != SERVICE for grant in known)


def has(grants: Iterable[Grant], role: Role, site: str) -> bool:
    """Return whether grants allow everything that a role allows on a site."""
    return all(may(grants, right, site) for right in _RIGHTS[role])
