"""The journal of imports: what each import added, and its progress.

This module owns the kind ImportBatch and the Job rows of imports. Each file that is imported into a
site has one journal. Each transaction that adds comments also writes what it added, so the journal
is complete at every moment, and an undo (`import_undo`) removes exactly what the import added.

    Job          key: "import/{site id}/{import id}"; `position` is an Import as JSON
    ImportBatch  key: "{site id}/{import id}/{number of the batch}.{the first added comment}";
                 `content` is a Batch as JSON; `at` is the time of the run that added the comments.
                 After `TERM`, `import_undo.expire` deletes the row and erases the addresses of its
                 comments

Invariants:

1. A batch is written in the transaction that adds its comments. A run that adds nothing writes no
   batch, so a commit whose answer was lost does not leave two.
2. Importing the same file into the same site in the same format continues its journal, until the
   import was undone or its term has ended. Then a new journal begins.
3. The transaction of a batch reads the import's row, so an import that is still running adds
   nothing after an undo has begun.
4. While an import of a site is being undone, no import into this site begins, and while an import
   into a site runs, no undo begins.
5. A comment that is imported again after an undo gets a revision that it never had, so no process
   and no directory takes it for the deleted comment (`Import.revision`).
6. The numbers of processed comments are only displayed. A repeated import finds the stored comments
   itself (`import_writer`).
"""

import contextlib
import functools
import hashlib
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import msgspec

from comments import errors
from comments.domain import declared_counters, decoders, time_left
from comments.domain.crypto import keyed_hashes
from comments.jobs.importers import import_process
from comments.moderation import retention
from comments.store import ownership, reads, transactions
from comments.store.models import event_rows
from comments.tree.values import ThreadSettings

_OWNER = "import_journal"
_JOBS = "import/"
_BEHIND = "\U0010ffff"
PAUSE = 2.0  # Minimum seconds between two writes of the progress.
LATE = 60  # Seconds without a write after which an import counts as interrupted.
TERM: timedelta = retention.TERM  # After this time, an import can no longer be undone.
_LONGEST_NAME = 200  # Characters.
_LONGEST_ID = 10  # Characters.
_ROWS = 50  # Batches that are read at once.
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)
MOST = 100  # Maximum number of imports in a list.


class ImportedFile(NamedTuple):
    """A file to import: its format, its name, a digest (`digest`), and its comments."""

    system: str
    name: str
    digest: str
    comments: int
    mapping: tuple[str, ...] = ()


class Import(msgspec.Struct, frozen=True):
    """One import.

    Of `comments` comments, `seen` have been processed. `added` is the number of comments that all
    runs of the import added; None until a run ends. `at` is the time of the last write, and
    `resumed` the time when the last run began, None in rows that an older release wrote. `undoing`
    is the time when an undo began, and `undone` the time when it ended; `removed` and `kept` are
    the numbers of comments that it removed, and that stay as tombstones above other comments. When
    nothing else is left of an undo, `waiting` comments without content wait for a compaction.
    `revision` is the highest revision of the removed comments.

    An import of an export of Flatthread also has `counters`, which the site did not have before it,
    and `has_settings` if it replaced the site's settings.

    `process` is the mark of the process that runs it (`import_process`).

    `id` is empty if an earlier release, which kept no journal, ran the import.
    """

    system: str
    file: str
    comments: int
    seen: int
    began: datetime
    at: datetime
    added: int | None = None
    id: str = ""
    digest: str = ""
    mapping: tuple[str, ...] = ()
    undoing: datetime | None = None
    undone: datetime | None = None
    removed: int = 0
    kept: int = 0
    resumed: datetime | None = None
    revision: int = 0
    waiting: int = 0
    counters: tuple[declared_counters.Declaration, ...] = ()
    has_settings: bool = False
    process: str = ""

    @property
    def is_being_undone(self) -> bool:
        """Return whether an undo has begun and is not complete."""
        return self.undoing is not None and self.undone is None

    def goes_on(self, now: datetime) -> bool:
        """Return whether the import is unfinished and may still run: it wrote recently."""
        is_recent = (now - self.at).total_seconds() < LATE
        return self.added is None and is_recent and not import_process.has_ended(self.process)

    @property
    def percent(self) -> int:
        """Return how much of the import is processed."""
        return time_left.percent(self.seen, self.comments)

    @property
    def seconds_left(self) -> float | None:
        """Return the estimated seconds until the import ends; None if they are not known yet."""
        if self.resumed is None:
            return None
        elapsed = (self.at - self.resumed).total_seconds()
        return time_left.seconds(self.seen, self.comments, elapsed)

    @property
    def ends(self) -> datetime:
        """Return the time from which the import can no longer be undone."""
        return self.began + TERM

    def can_be_undone(self, now: datetime) -> bool:
        """Return whether an undo may begin, or has to go on."""
        if self.undone is not None or not self.id:
            return False
        return self.undoing is not None or (now < self.ends and not self.goes_on(now))


class Batch(msgspec.Struct, frozen=True):
    """What one transaction added: comments by id, and the threads that it made, by thread id.

    `entries` contains the ids of entries that it added to the audit log, from an export of
    Flatthread.

    `closed` contains the threads among them that it made closed, and `settings` the policies and
    the fields set by moderators that an export of Flatthread contains for them. `is_erased` tells
    whether an undo has erased the comments. Each comment is then either deleted or left as a
    tombstone.
    """

    ids: tuple[str, ...]
    threads: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()
    is_erased: bool = False
    settings: dict[str, ThreadSettings] = {}
    entries: tuple[str, ...] = ()

    def settings_of(self, thread: str) -> ThreadSettings:
        """Return the settings with which a thread was made."""
        found = self.settings.get(thread, ThreadSettings())
        return found._replace(is_closed=thread in self.closed)


class ImportJournal:
    """The journal of a running import.

    Call `begin` first and `end` when the import is complete. A journal without an end represents an
    interrupted import.
    """

    def __init__(
        self, site: str, file: ImportedFile, now: datetime, clock: Callable[[], datetime]
    ) -> None:
        self.site = site
        self._clock = clock
        name = file.name.encode(errors="replace").decode()[:_LONGEST_NAME]
        self._file = file._replace(name=name)
        self._began = now
        self._seen = 0
        self._noted = 0.0
        self.id = ""
        self.revision = 1  # The first revision of new comments.

    def begin(self) -> None:
        """Store the import, or continue its journal.

        Raises:
            errors.UndoRunning: this or another import of the site is being undone.
        """
        self.id = transactions.transaction(self._begin)
        self._noted = time.monotonic()

    def advance(self, more: int) -> None:
        """Count more comments as processed, and write the row at most every `PAUSE` seconds.

        If the store is busy, a later call writes the row.
        """
        self._seen += more
        if time.monotonic() - self._noted >= PAUSE:
            self._noted = time.monotonic()
            with contextlib.suppress(errors.Overloaded):
                transactions.transaction(functools.partial(self._change, seen=self._seen))

    def note_counters(self, counters: Sequence[declared_counters.Declaration]) -> None:
        """Record counters that the site does not have, before the import declares them."""

        def body() -> None:
            known = get(self.site, self.id).counters
            self._change(counters=tuple(dict.fromkeys((*known, *counters))))

        transactions.transaction(body)

    def note_settings(self) -> None:
        """Record that the import replaces the site's settings."""
        transactions.transaction(functools.partial(self._change, has_settings=True))

    def end(self) -> None:
        """Record that the import is complete."""
        added = sum(len(batch.ids) for _, batch in batches(self.site, self.id))
        transactions.transaction(functools.partial(self._change, seen=self._seen, added=added))

    def batch(self, number: int, batch: Batch, now: datetime) -> ownership.Writes:
        """Return the row for what a transaction adds, in this transaction.

        Raises:
            errors.ImportRefused: the import is being undone.
        """
        _check_not_undone(_read(self.site, self.id))
        if not batch.ids and not batch.threads and not batch.entries:
            return ownership.Writes(_OWNER)
        first = (*batch.ids, *batch.entries, "threads")[0]
        key = f"{self.site}/{self.id}/{number:08}.{first}"
        return put(event_rows.ImportBatchRow(key=event_rows.import_batch_key(key), at=now), batch)

    def _begin(self) -> str:
        file, now = self._file, self._clock()
        others = check_no_undo(self.site)
        self.revision = 1 + max((each.revision for each in others), default=0)
        for number in range(1_000_000):
            name = _id(self.site, file, number)
            found = _read(self.site, name)
            if found is not None and (found.undone is not None or self._began >= found.ends):
                continue
            _check_not_undone(found)
            new = Import(file.system, file.name, file.comments, 0, self._began, now, id=name)
            stored = msgspec.structs.replace(
                found or new,
                file=file.name,
                comments=file.comments,
                digest=file.digest,
                mapping=file.mapping,
                seen=0,
                at=now,
                resumed=now,
                added=None,
                process=import_process.own(),
            )
            transactions.apply(store(self.site, stored))
            return name
        raise errors.ImportRefused(
            "The file was imported and undone too often. Change the file, then import it."
        )

    def _change(self, **changed: object) -> None:
        found = _read(self.site, self.id)
        if found is not None:
            transactions.apply(
                store(self.site, msgspec.structs.replace(found, at=self._clock(), **changed))
            )


def digest(path: Path) -> str:
    """Return a digest of the bytes of a file, which identifies the file's imports into a site."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def untrusted_digest(path: Path) -> str:
    """Return the digest of an export of Flatthread that is not trusted.

    It differs from `digest`, because an import that trusts the file stores other values.
    """
    return f"untrusted-{digest(path)}"


def of(site: str) -> list[Import]:
    """List a site's imports, starting with the most recently started, up to `MOST`."""
    return sorted(every(site), key=lambda each: each.began, reverse=True)[:MOST]


def every(site: str) -> list[Import]:
    """Return all imports of a site, in or outside a transaction."""
    return [found for _, found in _listed(f"{_JOBS}{site}/")]


def check_no_undo(site: str) -> list[Import]:
    """Check that an import into a site can begin now, and return all imports of the site.

    Raises:
        errors.UndoRunning: an import of the site is being undone.
    """
    found = every(site)
    undoing = next((each for each in found if each.is_being_undone), None)
    if undoing is not None:
        raise errors.UndoRunning(
            f"The import {undoing.id} into {site} is being undone, so no file can be imported now. "
            f"Try again in a few minutes, when `imports show {undoing.id} --site {site}` says that "
            "it is undone."
        )
    return found


def being_undone() -> list[tuple[str, Import]]:
    """Return the imports of all sites whose undo is not complete, each with its site."""
    return [(site, found) for site, found in _listed(_JOBS) if found.is_being_undone]


def get(site: str, import_id: str) -> Import:
    """Read one import, in or outside a transaction.

    Raises:
        errors.ImportRefused: the site has no such import.
    """
    is_id = import_id.isalnum() and len(import_id) <= _LONGEST_ID
    found = _read(site, import_id) if is_id else None
    if found is None:
        raise errors.ImportRefused(
            f"{site} has no import {import_id!r}. `imports list --site {site}` lists the imports."
        )
    return found


def store(site: str, changed: Import) -> ownership.Writes:
    """Return the writes that store an import."""
    key = event_rows.job_key(f"{_JOBS}{site}/{changed.id}")
    row = event_rows.JobRow(key=key, position=msgspec.json.encode(changed).decode())
    return ownership.Writes(_OWNER, put=(row,))


def batch_names(site: str, import_id: str) -> list[str]:
    """Return the key names of an import's batches, in the order in which they were written."""
    query = _beginning_with("ImportBatch", f"{site}/{import_id}/", keys_only=True)
    return [message.key.path[-1].name for message in reads.fetch(query)]


def batches(site: str, import_id: str) -> Iterator[tuple[datetime | None, Batch]]:
    """Yield an import's batches with their times, in the order in which they were written."""
    names = iter(batch_names(site, import_id))
    while part := list(itertools.islice(names, _ROWS)):
        rows = reads.get_multi([event_rows.import_batch_key(name) for name in part])
        yield from ((row.at, content(row)) for row in rows if row is not None)


def old(before: datetime, limit: int) -> list[str]:
    """Return the key names of batches that were written up to a given time, oldest first."""
    # The lower bound excludes null, which sorts before all times.
    query = reads.Query(
        "ImportBatch",
        where=(("at", ">", _NEVER), ("at", "<=", before)),
        order=("at",),
        limit=limit,
        keys_only=True,
    )
    return [message.key.path[-1].name for message in reads.fetch(query)]


def get_batch(name: str) -> Batch | None:
    """Read one batch, in or outside a transaction; None if it has been deleted."""
    row = reads.get(event_rows.import_batch_key(name))
    return None if row is None else content(row)


def content(row: event_rows.ImportBatchRow) -> Batch:
    """Decode a batch."""
    return decoders.json(Batch).decode(row.content)


def put(row: event_rows.ImportBatchRow, batch: Batch) -> ownership.Writes:
    """Return the writes that store a batch."""
    row.content = msgspec.json.encode(batch).decode()
    return ownership.Writes(_OWNER, put=(row,))


def gone(row: event_rows.ImportBatchRow) -> ownership.Writes:
    """Return the writes that delete a batch."""
    return ownership.Writes(_OWNER, delete=(row.key,))


def import_of(name: str) -> tuple[str, str]:
    """Return the site and the id of the import to which a batch belongs, given its key name."""
    site, import_id, _ = name.split("/")
    return site, import_id


def _read(site: str, import_id: str) -> Import | None:
    row = reads.get(event_rows.job_key(f"{_JOBS}{site}/{import_id}"))
    return None if row is None else decoders.json(Import).decode(row.position)


def _beginning_with(kind: str, start: str, *, keys_only: bool = False) -> reads.Query:
    """Return the query of the rows whose key names begin with a text, in the order of the names."""
    where = (("__key__", ">", start), ("__key__", "<", f"{start}{_BEHIND}"))
    return reads.Query(kind, where=where, order=("__key__",), keys_only=keys_only)


def _listed(start: str) -> Iterator[tuple[str, Import]]:
    """Yield the imports whose rows' key names begin with a text, each with its site."""
    for message in reads.fetch(_beginning_with("Job", start)):
        site = message.key.path[-1].name.split("/")[1]
        yield site, decoders.json(Import).decode(message.properties["position"].string_value)


def _check_not_undone(found: Import | None) -> None:
    """Check that an import, if it is stored, is not being undone."""
    if found is not None and found.undoing is not None:
        raise errors.ImportRefused(f"the import {found.id} is being undone, or was undone")


def _id(site: str, file: ImportedFile, number: int) -> str:
    """Return the id of a file's first, second, ... import into a site."""
    text = msgspec.json.encode((site, file.system, file.digest, number))
    return keyed_hashes.text(hashlib.sha256(text).digest())[:_LONGEST_ID]
