"""Define what backups need from the embedded engine: operations on whole data files.

The backend does not import the engine itself. `embedded_engine.py` implements this protocol and
passes the implementation to the commands.
"""

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from comments import config
from comments.store import connection


class EngineFiles(Protocol):
    """Copies, checks and replaces data files.

    Unless its docstring says otherwise, a method raises `errors.BackupFailed` if it cannot do its
    work because of the file or the machine.
    """

    def copy(self, path: Path, target: Path) -> None:
        """Copy the last committed state of a data file, which other processes may use meanwhile."""

    def upgrade_of(self, path: Path) -> str:
        """Describe how opening a closed data file would change its format; "" if it would not.

        Raises:
            errors.Misconfigured: the file has a newer format than this release can read.
        """

    def open_store(
        self, path: Path, settings: config.Settings
    ) -> contextlib.AbstractContextManager[connection.Store]:
        """Open a data file as a store, and upgrade it if an older release wrote it."""

    def problems(self, path: Path) -> Sequence[str]:
        """Write a copy to disk as a single file, check it completely, and return what is wrong."""

    def check_is_unused(self, path: Path) -> None:
        """Refuse a data file that any process has open.

        A missing or damaged file counts as unused.
        """

    def install(self, new: Path, path: Path, *, kept: Path) -> None:
        """Turn a file in the same folder into the data file; rename the replaced file to `kept`."""
