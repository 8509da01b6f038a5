"""Define the format of a store, and the release that introduced the format.

    Job "upgrades/format"    position: the format's number and the release, as in "1 0.1.0"

A release must raise `FORMAT` if an older release would misread or destroy what the new one stores,
even if no scan is needed (`upgrades`). All other releases keep the format, so that an owner can go
back to an older release. The data file of the embedded engine has its own format, which the engine
checks.

If the store has a newer format, a process refuses it before it reads or writes anything else. Only
starting a service or running `upgrade` raises the format, after the backup (`store_upgrade`).
"""

from typing import NamedTuple

import flatthread
from comments import errors
from comments.store import reads
from comments.store.models import event_rows

FORMAT = 1
KEY = event_rows.job_key("upgrades/format")


class StoreFormat(NamedTuple):
    """The number of a format, and the release that introduced this format in the store."""

    number: int
    release: str

    def __str__(self) -> str:
        return f"{self.number} {self.release}"


def current() -> StoreFormat:
    """Return the format that this release writes."""
    return StoreFormat(FORMAT, flatthread.__version__)


def read() -> StoreFormat | None:
    """Return the format of the store, or None if no release has recorded it yet.

    Raises:
        errors.Misconfigured: this release cannot read the store.
    """
    row = reads.get(KEY)
    if row is None:
        return None
    number, _, release = row.position.partition(" ")
    stored = StoreFormat(int(number), release)
    if stored.number > FORMAT:
        raise errors.Misconfigured(
            f"the data was written by Flatthread {stored.release} and has format {stored.number}, "
            f"but this is Flatthread {flatthread.__version__}, which reads formats up to {FORMAT}. "
            f"Install Flatthread {stored.release} or newer, or restore a backup that was made "
            "before the upgrade (docs/deploying.md)"
        )
    return stored
