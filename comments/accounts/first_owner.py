"""The file with the link that makes the first owner, for the operator of one machine.

Owns `first-owner` in the data folder. The link is a key to the whole service, so it is in no log:
only the user who runs the service can read the file. It is there while nobody has owned the
service, and each start replaces it.
"""

import contextlib
import os
from pathlib import Path

from comments import config, errors
from comments.accounts import accounts

_NAME = "first-owner"


def path(settings: config.Settings) -> Path:
    """Return where the file is, if there is one."""
    return settings.data_dir / _NAME


def keep(link: str, settings: config.Settings) -> None:
    """Write a link to the file, instead of an earlier one.

    Raises:
        OSError: the folder cannot be written.
    """
    own = path(settings).with_name(f"{_NAME}.{os.getpid()}")
    own.unlink(missing_ok=True)
    # Exclusive: a link that somebody planted under this name is not followed.
    with os.fdopen(os.open(own, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(f"{link}\n")
    own.replace(path(settings))


def remove(settings: config.Settings) -> None:
    """Remove the file once somebody has owned the service. Call it after an invitation's use.

    Errors are ignored: the invitation was used, the link is dead, and the next start tries again.
    """
    # Only the embedded engine's server writes the file; others have no data folder.
    if settings.datastore != "embedded" or not path(settings).exists():
        return
    with contextlib.suppress(errors.FlatthreadError, OSError):
        if accounts.is_owned():
            path(settings).unlink(missing_ok=True)
