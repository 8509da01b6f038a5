"""Say on pages that the service has no owner, and where the one-time link for an owner is.

Anybody can read these pages, so they never show the link itself. The link is in a file, or a
command prints it. Only people who run the service have access to that file or command.
"""

from typing import NamedTuple

from comments import errors
from comments.accounts.links import first_owner
from comments.web.http import context


class Hint(NamedTuple):
    """Where the first owner's link is: the name of a file; "" if only a command creates it."""

    file: str


def hint() -> Hint | None:
    """Return where the link for the first owner is; None if there is an owner.

    The result is also None if the store does not answer, because the pages can do without the hint.
    """
    settings = context.settings()
    try:
        if not first_owner.is_missing():
            return None
    except errors.FlatthreadError:
        return None
    if settings.datastore != "embedded":
        return Hint("")
    # Folders of the machine are not shown, because anybody can read the page.
    return Hint(first_owner.path(settings).name)
