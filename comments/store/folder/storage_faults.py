"""Detect storage faults: what is wrong with the store's disk or data, and in which folder.

If waiting does not mend a fault, the embedded engine names the fault in the `reason` of its error.
Such an error ends a call at once. Retries would only occupy threads that readers need, because a
store with a full disk can still be read.
"""

import errno
import logging
import tempfile
import time
from pathlib import Path

from google.api_core import exceptions as api

from comments import errors

FULL = "disk-full"
DAMAGED = "data-damaged"
UNWRITABLE = "data-unwritable"
_CODES = {"DISK_FULL": FULL, "DATA_DAMAGED": DAMAGED, "DATA_UNWRITABLE": UNWRITABLE}
_ADVICE = {
    FULL: "The disk of %s is full. Nothing can be stored until it has space.",
    DAMAGED: "Data in %s is damaged. Restore a backup (docs/backups.md).",
    UNWRITABLE: "The data in %s cannot be read or written. Check the disk and its permissions.",
}
_EVERY = 60.0  # Seconds until the log repeats a fault.
_BLOCK = 1 << 16  # Minimum number of free bytes on the disk.

_log = logging.getLogger("flatthread")


class FaultRecord:
    """The storage faults that a process has encountered."""

    def __init__(self) -> None:
        self.damage: errors.StorageFault | None = None
        self._logged: dict[str, float] = {}

    def fault_of(self, error: api.GoogleAPICallError) -> errors.StorageFault | None:
        """Return the storage fault that an error reports, if any, and log the fault."""
        if error.reason not in _CODES:
            return None
        folder = str(Path((error.metadata or {}).get("path", "")).absolute().parent)
        fault = errors.StorageFault(_CODES[error.reason], error.message, folder)
        if fault.code == DAMAGED:
            self.damage = fault
        if time.monotonic() >= self._logged.get(fault.code, 0.0):
            self._logged[fault.code] = time.monotonic() + _EVERY
            _log.error(f"{_ADVICE[fault.code]} %s", folder, error.message)
        return fault


def writing_fault(folder: Path) -> errors.StorageFault | None:
    """Return why nothing can be stored in a folder, or None if it has space and is writable."""
    try:
        with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
            left = _BLOCK
            while left:
                left -= file.write(bytes(left))
    except OSError as error:
        is_full = error.errno in {errno.ENOSPC, errno.EDQUOT}
        return errors.StorageFault(
            FULL if is_full else UNWRITABLE, str(error), str(folder.absolute())
        )
    return None
