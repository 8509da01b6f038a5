"""Operations on data files: copies, replacements and checks.

All operations accept a file that is in use, except those that replace the file.
"""

from datastore_emulator.storage.file_store import LOG_SECONDS
from datastore_emulator.storage.inspection import Report, check
from datastore_emulator.storage.maintenance import (
    backup,
    check_is_unused,
    compact,
    install,
    restore,
    seal,
)
from datastore_emulator.storage.schema import FORMAT

__all__ = [
    "FORMAT",
    "LOG_SECONDS",
    "Report",
    "backup",
    "check",
    "check_is_unused",
    "compact",
    "install",
    "restore",
    "seal",
]
