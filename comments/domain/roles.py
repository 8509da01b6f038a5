"""Who may do what: roles, and what each of them allows (pure).

Owns the words of permission, in two tables. A *role* is held on one site, or on `SERVICE`, which is
every site and the service itself. Guests and authors hold none: to write, vote and follow takes a
token of one's own, and what is one's own is decided by the author's id of what is changed
(`posting`), never by a role.

What must stay true: nothing is allowed that is not in the table; a role on one site says nothing
of another; and a site that is not named is no site, never all of them.
"""

import enum
from collections.abc import Iterable
from typing import NamedTuple

# No site has this id: sites' are of a-z, 0-9 and "-".
SERVICE = "*"


class Role(enum.StrEnum):
    """What somebody is, the least first. Stored as text: renaming one is a migration.

    A guest wrote without signing in, an author signed in; both change only what is theirs. A
    moderator decides over the comments of a site; an owner over the site, or over the service.
    """

    GUEST = "guest"
    AUTHOR = "author"
    MODERATOR = "moderator"
    OWNER = "owner"


class Right(enum.StrEnum):
    """What may be done. The first two are done to one's own things only."""

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
# Those that are held on a site; nobody is given one of the others.
GRANTED = (Role.MODERATOR, Role.OWNER)


class Grant(NamedTuple):
    """A role on a site, or on `SERVICE`."""

    role: Role
    site: str


def may(grants: Iterable[Grant], right: Right, site: str) -> bool:
    """Whether roles allow this on a site. On `SERVICE` only a role on the service does."""
    return bool(site) and any(
        right in _RIGHTS[grant.role] and grant.site in {site, SERVICE} for grant in grants
    )


def has(grants: Iterable[Grant], role: Role, site: str) -> bool:
    """Whether somebody holds a role on a site, or one that allows all that it allows."""
    return all(may(grants, right, site) for right in _RIGHTS[role])
