"""Store the progress of imports, to show it during an import and after an interruption.

This module owns the journals of imports: one Job row for each imported file of a site and system.

    Job  key: "import/{site id}/{system}/{file name}"; `position` is an Import as JSON

A journal is only displayed, never used to resume an import; a repeated import finds the stored
comments itself (`import_writer`). The journal is written at the start, every few seconds, and at
the end.
"""

import time
from collections.abc import Callable
from datetime import datetime
from types import TracebackType
from typing import Self

import msgspec

from comments.domain import decoders
from comments.store import ownership, reads, transactions
from comments.store.models import event_rows

_JOBS = "import/"
PAUSE = 2.0  # Minimum seconds between two writes of the progress.
LATE = 60  # Seconds without a write after which an import counts as interrupted.
_LONGEST_NAME = 200  # Characters.
MOST = 100  # Maximum number of imports in a list.


class Import(msgspec.Struct, frozen=True):
    """The progress of one import.

    Of `comments` comments, `seen` have been processed. `added` is the number of new comments; None
    until the import ends. `at` is the time of the last write.
    """

    system: str
    file: str
    comments: int
    seen: int
    began: datetime
    at: datetime
    added: int | None = None

    def goes_on(self, now: datetime) -> bool:
        """Return whether the import is unfinished and wrote its progress recently."""
        return self.added is None and (now - self.at).total_seconds() < LATE


class ImportJournal:
    """The journal of a running import.

    Use the journal in a `with` statement, and call `end` when the import is complete.
    """

    def __init__(
        self, site: str, system: str, file: str, comments: int, clock: Callable[[], datetime]
    ) -> None:
        self._clock = clock
        name = file.encode(errors="replace").decode()[:_LONGEST_NAME]
        self._key = event_rows.job_key(f"{_JOBS}{site}/{system}/{name}")
        now = clock()
        self._state = Import(system, name, comments, 0, now, now)
        self._noted = 0.0

    def __enter__(self) -> Self:
        self._write()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Write nothing, because a journal without an end represents an interrupted import."""

    def advance(self, more: int) -> None:
        """Count more comments as processed, and write the row at most every `PAUSE` seconds."""
        self._state = msgspec.structs.replace(self._state, seen=self._state.seen + more)
        if time.monotonic() - self._noted >= PAUSE:
            self._write()

    def end(self, added: int) -> None:
        """Record that the import is complete, with the number of new comments."""
        self._state = msgspec.structs.replace(self._state, added=added)
        self._write()

    def _write(self) -> None:
        self._noted = time.monotonic()
        self._state = msgspec.structs.replace(self._state, at=self._clock())
        row = event_rows.JobRow(key=self._key, position=msgspec.json.encode(self._state).decode())
        transactions.transaction(
            lambda: transactions.apply(ownership.Writes("import_progress", put=(row,)))
        )


def of(site: str) -> list[Import]:
    """List a site's imports, starting with the most recently started."""
    start = f"{_JOBS}{site}/"
    query = reads.Query(
        "Job",
        where=(("__key__", ">", start), ("__key__", "<", f"{start}\U0010ffff")),
        order=("__key__",),
        limit=MOST,
    )
    found = [
        decoders.json(Import).decode(message.properties["position"].string_value)
        for message in reads.fetch(query)
    ]
    return sorted(found, key=lambda each: each.began, reverse=True)
