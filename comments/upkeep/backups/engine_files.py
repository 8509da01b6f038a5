"""Define the operations on whole data files that backups need from the embedded engine.

The backend does not import the engine. `embedded_engine.py` implements this protocol, and passes it
to the commands.
"""

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from comments import config
from comments.store import connection


class EngineFiles(Protocol):
    """Copies, checks and replaces data files.

    Unless it says otherwise, a method raises `errors.BackupFailed` if the file or the machine does
    not allow it.
    """

    def copy(self, path: Path, target: Path) -> None:
        """Copy the last committed state of a data file that other processes may read and write."""

    def upgrade_of(self, path: Path) -> str:
        """Say how opening a closed data file changes its format; "" if it does not.

        Raises:
            errors.Misconfigured: the file has a newer format than this release can read.
        """

    def open_store(
        self, path: Path, settings: config.Settings
    ) -> contextlib.AbstractContextManager[connection.Store]:
        """Open a data file as a store, and upgrade it if an older release wrote it."""

    def problems(self, path: Path) -> Sequence[str]:
        """Write a copy to disk as one file, check all of it, and return what is wrong with it."""

    def check_is_unused(self, path: Path) -> None:
        """Refuse a data file that a process has open. A missing or damaged file is unused."""

    def install(self, new: Path, path: Path, *, kept: Path) -> None:
        """Make a file in the same folder the data file; the replaced file gets the name `kept`."""
