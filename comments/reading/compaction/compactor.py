"""Compact a thread: move changed rows into buckets, in steps that keep the thread readable.

This module owns Bucket, BucketDirectory and Ranking. A changed row is *flagged*: its property
`unfolded` is set. This module alone decides when to clear a flag, but `tree` writes the row. A
compaction has five steps:

1. **Read** the directory and, with one query, the flagged rows.
2. **Write** new buckets under keys that no directory names yet. Each write is a transaction that
   fails if another process has switched the directory (`bucket_writer`).
3. **Switch** to a directory that names the new buckets. The transaction fails if another process
   has switched the directory, or if a bucket that the new directory names no longer exists.
4. **Wait** until no process can still use an older directory: `GRACE` seconds after the response to
   the switch, by this process's own clock.
5. **Clear**: delete the buckets that only older directories name, and the buckets that interrupted
   compactions left behind (`leftovers`). Then clear the flag of each row that is still at its
   compacted revision.

Invariant: Until step 5, every compacted row is also in the delta, so readers with an old directory
still see all changes
(test_compactor_processes.py::test_a_compactor_stopped_before_any_commit_misleads_no_reader).

Invariant: While a thread has an unreferenced bucket, at least one of its rows is flagged, which
guarantees a later compaction
(test_compactor_crashes.py::test_a_compactor_that_dies_before_any_commit_leaves_nothing_behind).

Every unreferenced bucket is written before the next compaction's switch, and that compaction
deletes the bucket before it clears any flag. A bucket's key is never reused. No step trusts the
clock of another machine.

The first compaction of a thread includes all listed rows. Rows from releases without the flag are
first flagged and then treated like all other rows. When a row has a new sort hash, or when a
rebuild was requested (`rebuilding`), the next compaction also includes all listed rows and ignores
the old directory. Until then, readers use the ordered query (`deltas.DeltaRow.moved`).

A changed row is stored in the directory's tail or, when the tail is full, in a new bucket
(`bucket_layout`). The old text of a retracted or edited row is removed from its bucket immediately.
"""

import functools
import math
import secrets
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

import msgspec

from comments.domain import presentation, records
from comments.domain.ids import sorthash
from comments.reading.compaction import bucket_layout, bucket_writer, due_threads, leftovers
from comments.reading.compaction.leftovers import delete_orphans
from comments.reading.materialized import (
    buckets,
    deltas,
    directories,
    first_page,
    merged_view,
    ranking,
    time_index,
    view_cache,
)
from comments.store import ownership, reads, transactions
from comments.store.models import bucket_rows, comment_rows, conversion
from comments.threads import thread_terms
from comments.tree.bulk import job_writes
from comments.tree.lists import ordered_query

BUCKET_ROWS = 128  # Maximum number of rows in a new bucket.
BUCKET_BYTES = (
    256 * 1024
)  # Maximum bytes of a bucket's JSON before compression; Datastore's limit is 1 MiB.
TAIL_ROWS = 256
TAIL_BYTES = 128 * 1024
GRACE = view_cache.CACHE_MAX_AGE + 5.0  # Seconds between a switch and the clearing of flags.
MOST_CLEARING = 256  # Maximum number of cleared rows that a directory may still list.
_OWNER = "compactor"


class CompactionResult(msgspec.Struct, frozen=True):
    """The current directory after a compaction. Pass this result to `clear` after `GRACE` seconds.

    `left` is the number of seconds until the omitted rows are due, or 0 if no rows were omitted.
    """

    name: records.ThreadName
    directory: buckets.Directory
    left: float = 0.0


class PreparedBuckets(msgspec.Struct, frozen=True):
    """The new buckets, already written, and the content of the directory that will name them."""

    name: records.ThreadName
    base: buckets.Directory
    content: buckets.DirectoryContent
    written: tuple[str, ...]
    token: str
    left: float = 0.0

    @property
    def is_change(self) -> bool:
        """Return whether the new content differs from the current directory."""
        return self.content != self.base.content


def compact(
    scheme: sorthash.Scheme,
    name: records.ThreadName,
    *,
    now: datetime | None = None,
    only_due: bool = False,
) -> CompactionResult | None:
    """Compact the changed rows of a thread. Return None if another process was faster.

    With `only_due`, do nothing if few rows have changed and no row is due yet.
    """
    prepared = prepare(scheme, name, now=now, only_due=only_due)
    return None if prepared is None else switch(prepared)


def prepare(
    scheme: sorthash.Scheme,
    name: records.ThreadName,
    *,
    now: datetime | None = None,
    only_due: bool = False,
) -> PreparedBuckets | None:
    """Write the new buckets. Return None if another process has switched the directory.

    Also return None if the thread has moved to another scheme since it was read. `now` (default:
    this machine's time) determines when cursors of replaced rankings expire and, with `only_due`,
    whether the rows are due.
    """
    now = now or datetime.now(UTC)
    thread = reads.get(comment_rows.thread_key(name))
    shape, scheme = conversion.shape_of(thread), conversion.scheme_of(thread, scheme)
    # The sweep after the switch finds the buckets of an unreadable directory.
    stored, is_readable = directories.load_base(name)
    base, rows = stored, list(deltas.flagged_rows(name))
    fresh, created = deltas.changes(stored, rows), None
    left = due_threads.seconds_left([row.fold_by for row in fresh], now) if only_due else 0.0
    if 0 < left < math.inf:
        return PreparedBuckets(name, stored, stored.content, (), "", left)
    if time_index.is_due(stored.content.times, stored.total):
        rows, created = deltas.flagged_rows_and_times(name)
        fresh = deltas.changes(stored, rows)
    is_whole = not stored.version or not is_readable or any(row.moved for row in fresh)
    is_whole = is_whole or stored.content.shape != shape
    if is_whole:
        base, fresh = buckets.Directory(""), _all_rows(name)
        rows = [row for row in fresh if row.flagged]
    if any(row.shape != shape for row in fresh):
        return None  # The thread has moved to another scheme since it was read
    attempt, about = (
        bucket_writer.CompactionAttempt(scheme, name, base, stored.version),
        _about(thread),
    )
    if not fresh:
        content = msgspec.structs.replace(
            stored.content,
            about=about if stored.version else None,
            times=_time_index(base, fresh, created),
        )
        return PreparedBuckets(name, stored, content, (), attempt.token)
    try:
        lines, tail = attempt.rewrite_buckets(
            bucket_layout.Sizes(BUCKET_ROWS, BUCKET_BYTES, TAIL_ROWS, TAIL_BYTES),
            deltas.merge(base, fresh),
            {row.entry.id for row in fresh if row.rewrites},
        )
        best = attempt.rank(buckets.DirectoryContent(lines=lines, tail=tail), fresh)
    except directories.DirectoryOutdated:
        delete_orphans(name, attempt.written)
        return None
    content = buckets.DirectoryContent(
        lines=lines,
        tail=tail,
        clearing=tuple(
            buckets.Clearing(row.entry.id, row.entry.revision, row.is_listed) for row in rows
        ),
        dead=tuple(_dead_keys(stored, rows, lines, best)),
        # The newest change of the old directory may belong to a row that no longer exists.
        changed=ordered_query.last_change(name)
        if is_whole
        else deltas.newest_change(stored.content, fresh),
        best=best,
        about=about,
        replaced=_replaced_rankings(stored.content, best, now),
        pinned=_pinned_comments(base.content, fresh),
        shape=shape,
        scheme=sorthash.encode_scheme(scheme),
        times=_time_index(base, fresh, created),
    )
    return PreparedBuckets(name, stored, content, tuple(attempt.written), attempt.token)


def _time_index(
    base: buckets.Directory,
    fresh: Sequence[deltas.DeltaRow],
    created: Sequence[datetime] | None,
) -> time_index.TimeIndex | None:
    """Return the time index of a directory that adds `fresh` to `base`.

    `created` are the times of all rows that the directory will list, if they were read.
    """
    if not base.version:
        created = [row.created for row in fresh if row.is_listed and row.created is not None]
    if created is not None:
        return time_index.of_times(created)
    index = base.content.times
    return index and time_index.update(index, deltas.shifts(base, fresh))


def _dead_keys(
    stored: buckets.Directory,
    rows: Sequence[deltas.DeltaRow],
    lines: Sequence[buckets.BucketSummary],
    best: buckets.RankingKeys | None,
) -> Iterator[str]:
    """Yield the keys of buckets that are named only by the stored or an earlier directory."""
    kept = {line.key for line in lines}
    yield from (line.key for line in stored.lines if line.key not in kept)
    if stored.content.best is not None and (best is None or best.top != stored.content.best.top):
        yield stored.content.best.top
    if any(stored.has_compacted(row.entry.id, row.entry.revision) for row in rows):
        yield from stored.content.dead  # The stored directory has not been cleared yet


def _pinned_comments(
    content: buckets.DirectoryContent, fresh: Sequence[deltas.DeltaRow]
) -> tuple[tuple[str, str], ...]:
    """List the pinned comments: changed comments, and unchanged comments from the directory."""
    changed = {row.entry.id for row in fresh}
    kept = [place for place in content.pinned if place[1] not in changed]
    listed = (row.entry for row in fresh if row.is_listed)
    new = [(row.sort_hash, row.id) for row in listed if presentation.is_pinned(row.json)]
    return tuple(sorted([*kept, *new]))


def _replaced_rankings(
    content: buckets.DirectoryContent, best: buckets.RankingKeys | None, now: datetime
) -> tuple[buckets.ReplacedRanking, ...]:
    """List the replaced rankings to keep, because cursors may still name them."""
    kept = [old for old in content.replaced if old.until > now]
    if content.best is not None and (best is None or best.ranking != content.best.ranking):
        until = now + timedelta(seconds=ranking.KEPT + ranking.SKEW)
        kept.append(buckets.ReplacedRanking(content.best.ranking, until))
    return tuple(kept)


def switch(prepared: PreparedBuckets) -> CompactionResult | None:
    """Make the prepared directory current. Return None if another process was faster."""
    name, content = prepared.name, prepared.content
    if not prepared.is_change:
        return CompactionResult(name, prepared.base, prepared.left)
    first, *rest = bucket_layout.parts(buckets.encode_content(content))
    writer = bucket_writer.BucketWriter(
        name, prepared.base.version, prepared.token, list(prepared.written)
    )
    directory = buckets.Directory(prepared.token, content)
    try:
        page = _first_page(name, directory)
        parts = [writer.write(part) for part in rest]
    except directories.DirectoryOutdated:
        delete_orphans(name, writer.written)
        return None
    key = bucket_rows.directory_key(name)
    row = bucket_rows.BucketDirectoryRow(
        key=key,
        version=prepared.token,
        content=first,
        parts=parts,
        head=first_page.encode(page),
        due=leftovers.first_expiry(content.replaced),
    )
    expired = {replaced.ranking for replaced in prepared.base.content.replaced}
    expired -= {replaced.ranking for replaced in content.replaced}
    needed = [bucket_rows.bucket_key(name, token) for token in writer.written]
    if content.best is not None:
        needed.append(bucket_rows.ranking_key(name, content.best.ranking))

    def body() -> bool:
        stored, *written = reads.get_multi([key, *needed])
        version = "" if stored is None else stored.version
        if version == prepared.token:
            return True  # An earlier run of this body committed, but its response was lost
        if version != prepared.base.version or None in written:
            return False
        # A process that is reading the old parts detects the deletion and reads the new directory.
        old = () if stored is None else stored.parts
        gone = [bucket_rows.bucket_key(name, part) for part in old]
        gone += [bucket_rows.ranking_key(name, part) for part in expired]
        row.terms = (stored and stored.terms) or _terms(name)
        transactions.apply(ownership.Writes(_OWNER, put=(row,), delete=tuple(gone)))
        return True

    if not transactions.transaction(body):
        # Delete only unreferenced buckets. If this switch succeeded before another process switched
        # again, some of the buckets may now be in use.
        delete_orphans(name, writer.written)
        return None
    return CompactionResult(name, directory)


def _terms(name: records.ThreadName) -> str:
    """Read the thread's terms for a directory that cannot copy them from another directory."""
    return thread_terms.encode(thread_terms.of(reads.get(comment_rows.thread_key(name))))


def _first_page(
    name: records.ThreadName, directory: buckets.Directory
) -> first_page.FirstPage | None:
    """Make the thread's first page from the directory and the necessary buckets.

    Raises:
        directories.DirectoryOutdated: a bucket has been replaced.
    """
    content, load = directory.content, functools.partial(bucket_writer.load_all, name)
    return first_page.of(merged_view.View(directory, content.tail, load, changed=content.changed))


def clear(compacted: CompactionResult, orphans: Sequence[str] = ()) -> None:
    """`GRACE` after the switch, delete replaced buckets and clear the compacted rows' flags.

    `orphans` contains the unreferenced buckets that `leftovers.orphans` found after the switch.
    """
    # Clear the flags last: after a crash, a later compaction finds the thread by a remaining flag,
    # and deletes the remaining buckets.
    content = compacted.directory.content
    for keys in leftovers.in_parts(content.dead):
        transactions.transaction(functools.partial(leftovers.delete, compacted.name, keys))
    delete_orphans(compacted.name, orphans)
    is_long = len(content.clearing) > MOST_CLEARING
    first = len(content.clearing) - MOST_CLEARING if is_long else 0
    for part in leftovers.in_parts(content.clearing[:first]):
        transactions.transaction(functools.partial(_clear, part))
    if is_long:
        _forget_cleared(compacted)
    for part in leftovers.in_parts(content.clearing[first:]):
        transactions.transaction(functools.partial(_clear, part))


def _forget_cleared(compacted: CompactionResult) -> None:
    """Switch to a directory without the list of cleared rows.

    A short list remains until the next compaction. After a large import, the list is so long that
    it would slow down every reader until the next compaction.

    When this function is called, some rows must still be flagged (`clear` ensures this), because
    the switch may also write buckets.
    """
    content = compacted.directory.content
    flagged = {row.entry.id for row in deltas.flagged_rows(compacted.name)}
    left = tuple(mark for mark in content.clearing if mark.id in flagged)
    slim = msgspec.structs.replace(content, clearing=left, dead=())
    token = secrets.token_hex(10)
    switch(PreparedBuckets(compacted.name, compacted.directory, slim, (), token))


def _clear(part: Sequence[buckets.Clearing]) -> None:
    seen = {mark.id: (mark.revision, mark.is_listed) for mark in part}
    transactions.apply(job_writes.compaction_writes(seen))


def _all_rows(name: records.ThreadName) -> list[deltas.DeltaRow]:
    """Read all listed or flagged rows. First flag the rows that no compaction would find."""
    while True:
        rows = deltas.listed_or_flagged_rows(name)
        strangers = [row.entry.id for row in rows if not (row.flagged or row.shelved)]
        if not strangers:
            return rows
        for part in leftovers.in_parts(strangers):
            transactions.transaction(functools.partial(_flag_rows, part))


def _flag_rows(ids: Sequence[str]) -> None:
    transactions.apply(job_writes.missing_flag_writes(ids))


def _about(row: comment_rows.ThreadRow | None) -> records.ThreadHeading | None:
    return None if row is None else records.ThreadHeading(row.title, row.url, row.named_by)
