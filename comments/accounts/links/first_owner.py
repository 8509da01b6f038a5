"""Write the file with the link that creates the first owner, for services on one machine.

Owns the file `first-owner` in the data folder. The file exists until the service gets its first
owner, and each start of the service replaces the file.

The link gives control of the whole service. The link is therefore never logged, and only the system
user who runs the service can read the file.
"""

import contextlib
import os
import threading
from pathlib import Path

from comments import config, errors
from comments.accounts import accounts
from comments.store.memory import per_process

_NAME = "first-owner"
# Set once the service has had an owner, and never cleared.
_OWNED = per_process.PerProcess(threading.Event)


def path(settings: config.Settings) -> Path:
    """Return the path of the file, which need not exist."""
    return settings.data_dir / _NAME


def keep(link: str, settings: config.Settings) -> None:
    """Write a link to the file, replacing an earlier one.

    Raises:
        OSError: the folder is not writable.
    """
    own = path(settings).with_name(f"{_NAME}.{os.getpid()}")
    own.unlink(missing_ok=True)
    # O_EXCL makes `open` fail instead of following a symbolic link planted under this name.
    with os.fdopen(os.open(own, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(f"{link}\n")
    own.replace(path(settings))


def remove(settings: config.Settings) -> None:
    """Remove the file if the service has an owner. Call this after an invitation is accepted."""
    # Only servers with the embedded engine write the file; others have no data folder. Errors are
    # ignored: the link no longer works anyway, and the next start tries again.
    if settings.datastore != "embedded" or not path(settings).exists():
        return
    with contextlib.suppress(errors.FlatthreadError, OSError):
        if accounts.is_owned():
            path(settings).unlink(missing_ok=True)


def is_missing() -> bool:
    """Return whether the service has never had an owner. While it has none, a call costs a read."""
    owned = _OWNED.get()
    if not owned.is_set() and accounts.is_owned():
        owned.set()
    return not owned.is_set()
