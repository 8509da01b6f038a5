"""List what owners, moderators and operators can do, and where: by which command and on which page.

The rows are in `operations.toml`. A test compares them with the commands and with the console's
routes, so no side can get an operation that the table does not list. An operation that only one
side offers says why. `scripts/operations.py` draws docs/operations.md from the table; the summaries
of commands and the headings of pages are defined where they are used, because the table would only
repeat them.
"""

import enum
from importlib import resources

import msgspec


class Audience(enum.StrEnum):
    """Who may perform an operation. Owners may do all that moderators may."""

    MODERATOR = "moderator"
    SITE = "owner of the site"
    SERVICE = "owner of the service"
    OPERATOR = "operator"
    SELF = "everyone, for themselves"


class OperationRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An operation. `reason` says why it has no command or no page, and is "" if it has both.

    `commands` and `routes` are separated by commas. A route is a method and a path below `/admin/`,
    where `SITE` stands for `sites/<site>`.
    """

    name: str
    audience: Audience
    commands: str = ""
    routes: str = ""
    reason: str = ""


def sections() -> dict[str, tuple[OperationRow, ...]]:
    """Read the table: the operations by section."""
    data = (resources.files(__package__) / "operations.toml").read_bytes()
    return msgspec.toml.decode(data, type=dict[str, tuple[OperationRow, ...]])
