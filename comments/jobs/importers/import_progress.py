"""Imports: how far each came, for those who ask while it goes on or after it was interrupted.

Owns the journals of imports, Jobs: one for each file of a system that a site took comments from.

    Job  key: "import/{site id}/{system}/{file's name}"; `position` is an Import as JSON

A journal says what was done and decides nothing: an import that runs again finds out by itself what
is there (`transfer`). It is written when an import begins and ends, and every few seconds between.
"""

import time
from collections.abc import Callable
from datetime import datetime
from types import TracebackType
from typing import Self

import msgspec

from comments.store import ownership, reads, transactions
from comments.store.models import event_rows

_JOBS = "import/"
PAUSE = 2.0  # seconds between two notes of how far it came
LATE = 60  # seconds without a note, after which nobody can be at it
_LONGEST_NAME = 200
MOST = 100  # imports of a list


class Import(msgspec.Struct, frozen=True):
    """One import: of how many `comments`, how many were `seen` so far, and how many it `added`.

    `added` is known in the end. `at` is when it was last heard of.
    """

    system: str
    file: str
    comments: int
    seen: int
    began: datetime
    at: datetime
    added: int | None = None

    def goes_on(self, now: datetime) -> bool:
        """Whether somebody is at it: an import that was interrupted says nothing any more."""
        return self.added is None and (now - self.at).total_seconds() < LATE


class Journal:
    """The journal of an import that goes on: use it in `with`, and `end` it."""

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
        """Leave it as it is: without an end it was interrupted."""

    def advance(self, more: int) -> None:
        """Note that some more comments were dealt with."""
        self._state = msgspec.structs.replace(self._state, seen=self._state.seen + more)
        if time.monotonic() - self._noted >= PAUSE:
            self._write()

    def end(self, added: int) -> None:
        """Note that all is done, and how many comments were not there before."""
        self._state = msgspec.structs.replace(self._state, added=added)
        self._write()

    def _write(self) -> None:
        self._noted = time.monotonic()
        self._state = msgspec.structs.replace(self._state, at=self._clock())
        row = event_rows.Job(key=self._key, position=msgspec.json.encode(self._state).decode())
        transactions.transaction(
            lambda: transactions.apply(ownership.Writes("import_progress", put=(row,)))
        )


def of(site: str) -> list[Import]:
    """The imports of a site, those that began last first."""
    start = f"{_JOBS}{site}/"
    query = reads.Query(
        "Job",
        where=(("__key__", ">", start), ("__key__", "<", f"{start}\U0010ffff")),
        order=("__key__",),
        limit=MOST,
    )
    found = [
        msgspec.json.decode(message.properties["position"].string_value, type=Import)
        for message in reads.fetch(query)
    ]
    return sorted(found, key=lambda each: each.began, reverse=True)
