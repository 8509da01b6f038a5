"""Say on pages that the service has no owner, and where its one-time link is, but never the link.

Anybody can read these pages. The link is in a file, or a command prints it; only the people who run
the service can use either.
"""

from typing import NamedTuple

from comments import errors
from comments.accounts import first_owner
from comments.web.http import context


class Hint(NamedTuple):
    """Where the link for the first owner is: a file, or "" if only a command makes the link."""

    file: str


def hint() -> Hint | None:
    """Return where the link for the first owner is; None if there is an owner.

    Also None if the store does not answer, because the pages do without it.
    """
    settings = context.settings()
    try:
        if not first_owner.is_missing():
            return None
    except errors.FlatthreadError:
        return None
    if settings.datastore != "embedded":
        return Hint("")
    # Do not show the machine's folders to everybody.
    folder = "$FLATTHREAD_DATA" if settings.data_dir.is_absolute() else settings.data_dir
    return Hint(f"{folder}/{first_owner.path(settings).name}")
