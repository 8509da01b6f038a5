"""The journal of imports: what each import added, and its progress.

This module owns the kind ImportBatch and the Job rows of imports. Each file that is imported into a
site has one journal. Each transaction that adds comments also records them in the journal
(`running_import`). The journal is therefore complete at every moment, and an undo (`import_undo`)
removes exactly what the import added.

    Job          key: "import/{site id}/{import id}"; `position` is an Import as JSON
    ImportBatch  key: "{site id}/{import id}/{number of the batch}.{the first added comment}";
                 `content` is a Batch as JSON; `at` is the time of the run that added the comments.
                 After `TERM`, `import_undo.expire` deletes the row and erases the addresses of its
                 comments

Invariant: A comment that is imported again after an undo gets a revision that the deleted comment
never had (`Import.revision`), so no process and no directory confuses the two
(test_repeated_imports.py::test_a_comment_that_is_imported_again_with_another_text_is_shown_with_it).

No import into a site begins while an import of this site is being undone, and no undo begins while
an import runs. The numbers of processed comments are only displayed. A repeated import
looks for the stored comments instead of relying on these numbers (`import_writer`).
"""

import itertools
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import msgspec

from comments import errors
from comments.domain import decoders
from comments.domain.counters import declared_counters
from comments.moderation import retention
from comments.store import ownership, reads
from comments.store.models import event_rows
from comments.transfer.importing import import_process, time_left
from comments.tree.values import ThreadSettings

OWNER = "import_journal"
_JOBS = "import/"
_BEHIND = "\U0010ffff"
LATE = 60  # Seconds without a write after which an import counts as interrupted.
TERM: timedelta = retention.TERM  # Time for which an import can be undone.
_LONGEST_ID = 10  # Maximum number of characters.
_ROWS = 50  # Maximum number of batches per query.
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)
MOST = 100  # Maximum number of imports in a list.


class Import(msgspec.Struct, frozen=True):
    """One import.

    `seen` of `comments` comments have been processed. `added` is the number of comments that all
    runs of the import together added; None until a run ends. `at` is the time of the last write.
    `resumed` is the time when the last run began; None in rows that an older release wrote.
    `undoing` and `undone` are the times when an undo began and ended. `removed` is the number of
    comments that the undo removed, and `kept` the number of those that stay as tombstones above
    other comments. At the end of an undo, `waiting` is the number of comments without content that
    wait for a compaction. `revision` is the highest revision of the removed comments.

    For an export of Flatthread, `counters` are the counters that the site did not have before the
    import, and `has_settings` tells whether the import replaced the site's settings.

    `process` is the mark of the process that runs the import (`import_process`).

    `id` is empty if the import was run by an earlier release, which kept no journal.
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

    def may_still_run(self, now: datetime) -> bool:
        """Return whether the import is unfinished and wrote recently, so it may still run."""
        is_recent = (now - self.at).total_seconds() < LATE
        return self.added is None and is_recent and not import_process.has_ended(self.process)

    @property
    def percent(self) -> int:
        """Return the percentage of the import that is processed."""
        return time_left.percent(self.seen, self.comments)

    @property
    def seconds_left(self) -> float | None:
        """Return the estimated number of seconds until the import ends; None if not known yet."""
        if self.resumed is None:
            return None
        elapsed = (self.at - self.resumed).total_seconds()
        return time_left.seconds(self.seen, self.comments, elapsed)

    @property
    def ends(self) -> datetime:
        """Return the time from which the import can no longer be undone."""
        return self.began + TERM

    def can_be_undone(self, now: datetime) -> bool:
        """Return whether an undo may begin, or has begun and must continue."""
        if self.undone is not None or not self.id:
            return False
        return self.undoing is not None or (now < self.ends and not self.may_still_run(now))


class Batch(msgspec.Struct, frozen=True):
    """What one transaction added: comments by id, and the threads that it created, by thread id.

    `entries` contains the ids of the audit log entries that the transaction added from an export of
    Flatthread.

    `closed` contains those of the new threads that were created closed. `settings` contains the
    policies and the moderators' fields that an export of Flatthread specifies for the new threads.
    `is_erased` tells whether an undo has erased the comments. Each comment of an erased batch is
    either deleted or left as a tombstone.
    """

    ids: tuple[str, ...]
    threads: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()
    is_erased: bool = False
    settings: dict[str, ThreadSettings] = {}
    entries: tuple[str, ...] = ()

    def settings_of(self, thread: str) -> ThreadSettings:
        """Return the settings with which a thread was created."""
        settings = self.settings.get(thread, ThreadSettings())
        return settings._replace(is_closed=thread in self.closed)


def recent_imports(site: str) -> list[Import]:
    """List up to `MOST` imports of a site, starting with the most recently started one."""
    return sorted(all_imports(site), key=lambda each: each.began, reverse=True)[:MOST]


def all_imports(site: str) -> list[Import]:
    """Return all imports of a site, in or outside a transaction."""
    return [stored for _, stored in _imports_beginning_with(f"{_JOBS}{site}/")]


def check_no_undo(site: str) -> list[Import]:
    """Check that an import into a site can begin now, and return all imports of the site.

    Raises:
        errors.UndoRunning: an import of the site is being undone.
    """
    imports = all_imports(site)
    undoing = next((stored for stored in imports if stored.is_being_undone), None)
    if undoing is not None:
        raise errors.UndoRunning(
            f"The import {undoing.id} into {site} is being undone, so no file can be imported now. "
            f"Try again in a few minutes, when `imports show {undoing.id} --site {site}` says that "
            "it is undone."
        )
    return imports


def unfinished_undos() -> list[tuple[str, Import]]:
    """Return the unfinished undos of all sites: each import with its site."""
    return [
        (site, stored) for site, stored in _imports_beginning_with(_JOBS) if stored.is_being_undone
    ]


def get(site: str, import_id: str) -> Import:
    """Read one import, in or outside a transaction.

    Raises:
        errors.ImportRefused: the site has no such import.
    """
    is_id = import_id.isalnum() and len(import_id) <= _LONGEST_ID
    stored = find(site, import_id) if is_id else None
    if stored is None:
        raise errors.ImportRefused(
            f"{site} has no import {import_id!r}. `imports list --site {site}` lists the imports."
        )
    return stored


def import_writes(site: str, given: Import) -> ownership.Writes:
    """Return the writes that store an import."""
    key = event_rows.job_key(f"{_JOBS}{site}/{given.id}")
    row = event_rows.JobRow(key=key, position=msgspec.json.encode(given).decode())
    return ownership.Writes(OWNER, put=(row,))


def change_writes(site: str, stored: Import, **values: object) -> ownership.Writes:
    """Return the writes that change an import."""
    return import_writes(site, msgspec.structs.replace(stored, **values))


def batch_names(site: str, import_id: str) -> list[str]:
    """Return the key names of an import's batches, in the order in which they were written."""
    query = _query_beginning_with("ImportBatch", f"{site}/{import_id}/", keys_only=True)
    return [message.key.path[-1].name for message in reads.fetch(query)]


def batches(site: str, import_id: str) -> Iterator[tuple[datetime | None, Batch]]:
    """Yield an import's batches with their times, in the order in which they were written."""
    names = iter(batch_names(site, import_id))
    while part := list(itertools.islice(names, _ROWS)):
        rows = reads.get_multi([event_rows.import_batch_key(name) for name in part])
        yield from ((row.at, decode_batch(row)) for row in rows if row is not None)


def old_batches(before: datetime, limit: int) -> list[str]:
    """Return the key names of batches that were written up to a given time, oldest first."""
    # The lower bound excludes null, which sorts before all times.
    where = (("at", ">", _NEVER), ("at", "<=", before))
    return reads.names("ImportBatch", where, order=("at",), limit=limit)


def get_batch(name: str) -> Batch | None:
    """Read one batch, in or outside a transaction; None if it has been deleted."""
    row = reads.get(event_rows.import_batch_key(name))
    return None if row is None else decode_batch(row)


def decode_batch(row: event_rows.ImportBatchRow) -> Batch:
    """Decode a batch."""
    return decoders.json(Batch).decode(row.content)


def batch_writes(row: event_rows.ImportBatchRow, batch: Batch) -> ownership.Writes:
    """Return the writes that store a batch."""
    row.content = msgspec.json.encode(batch).decode()
    return ownership.Writes(OWNER, put=(row,))


def batch_deletion_writes(row: event_rows.ImportBatchRow) -> ownership.Writes:
    """Return the writes that delete a batch."""
    return ownership.Writes(OWNER, delete=(row.key,))


def import_of(name: str) -> tuple[str, str]:
    """Return the site and the import id that a batch's key name contains."""
    site, import_id, _ = name.split("/")
    return site, import_id


def find(site: str, import_id: str) -> Import | None:
    """Read one import, in or outside a transaction; None if the site has no such import."""
    row = reads.get(event_rows.job_key(f"{_JOBS}{site}/{import_id}"))
    return None if row is None else decoders.json(Import).decode(row.position)


def _query_beginning_with(kind: str, start: str, *, keys_only: bool = False) -> reads.Query:
    """Return the query for rows whose key names begin with this text, in the order of the names."""
    where = (("__key__", ">", start), ("__key__", "<", f"{start}{_BEHIND}"))
    return reads.Query(kind, where=where, order=("__key__",), keys_only=keys_only)


def _imports_beginning_with(start: str) -> Iterator[tuple[str, Import]]:
    """Yield the imports whose key names begin with this text, each with its site."""
    for message in reads.fetch(_query_beginning_with("Job", start)):
        site = message.key.path[-1].name.split("/")[1]
        yield site, decoders.json(Import).decode(message.properties["position"].string_value)


def check_not_undone(found: Import | None) -> None:
    """Check that an import, if it is stored, is not being undone and was not undone.

    Raises:
        errors.ImportRefused: the import is being undone, or was undone.
    """
    if found is not None and found.undoing is not None:
        raise errors.ImportRefused(f"the import {found.id} is being undone, or was undone")
