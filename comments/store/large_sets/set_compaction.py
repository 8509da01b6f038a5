"""Compact a large set by moving its marks into its sorted segments.

This module owns the kinds FollowerList and FollowerSegment. A compaction consists of four steps,
each of which leaves the set intact:

1. **Close** the current generation of marks by opening the next generation.
2. **Write** new segments under keys of this attempt, which the set does not name yet.
3. **Switch** the set to the new segments, in a transaction that fails if another process has
   switched the set in the meantime.
4. **Clean**: delete compacted marks and unreferenced segments. Marks that request a compaction are
   deleted last.

A compaction of up to 500 marks in S segments bills at most 11 + S reads, 2 + S writes, and one
delete for each mark and each replaced segment. A compaction keeps the directory's lines and a few
segments in memory.

A bounded set keeps only its first `most` ids. Its compaction drops the other ids, so a caller that
must never show them must also limit what it reads.

`remove` deletes a set: it empties the set in one commit, deletes the rows that are no longer used,
and then deletes the set's entity if no id has joined in the meantime.

Invariant: A segment that the set does not name can be deleted as soon as the generation in its key
is compacted, because the attempt that wrote it can switch only until then
(test_set_compaction.py::test_cleaning_spares_the_segments_of_an_attempt_that_may_still_switch).

A segment's key is never reused, and no mark or segment is deleted before the switch that replaces
it. A crash in any step leaves marks, which readers merge, or unreferenced segments. In both cases,
a mark that requests a compaction remains, and the next compaction finishes the work. A set that was
removed starts again with the first generation, but with a new version. A compaction that began
before the removal finds a different version and does not switch.
"""

import dataclasses
import itertools
import secrets
from collections.abc import Iterable, Iterator, Sequence

from comments import errors
from comments.domain import records
from comments.store import ownership, reads, transactions
from comments.store.large_sets import membership, segments
from comments.store.models import set_rows

SEGMENT_BYTES = 256 * 1024  # Bytes before compression, about 10,000 ids; Datastore allows 1 MiB.
DIRECTORY_BYTES = 16 * 1024  # Maximum bytes of lines in the set's entity, which every change reads.
LINES = 400  # Maximum number of lines in a segment of lines.
LOADED = 50_000  # Maximum number of ids that `load` adds at a time.
AT_ONCE = 500  # Maximum number of keys per commit.
_TRIES = 10
_OWNER = "set_compaction"


@dataclasses.dataclass(frozen=True, slots=True)
class PreparedSegments:
    """New segments that have been written, and the directory that will name them."""

    name: records.SetName
    base: membership.Pointer
    directory: segments.SetDirectory
    token: str


def compact(name: records.SetName, *, most: int | None = None) -> bool:
    """Compact a set's marks into its segments; return False if another process switched first.

    With `most`, the set keeps only its first `most` ids.
    """
    if not is_marked(name):
        clean(name)
        return True
    return _compact(name, (), most)


def erase(name: records.SetName, member: str) -> None:
    """Compact a set until none of its rows contains an id that has left the set.

    Raises:
        errors.Overloaded: other processes keep compacting the set, or the store is busy.
    """
    for _ in range(_TRIES):
        # Compact once even without marks, because an interrupted compaction may have left segments.
        if compact(name) and not membership.is_marked(name, member):
            return
    raise errors.Overloaded(f"another process is compacting {name.text}")


def remove(name: records.SetName) -> None:
    """Delete a set with all its rows. Ids that join during the call may stay in the set.

    If the call is interrupted, the set is either empty or unchanged, so repeat the call.
    """
    token = secrets.token_hex(10)
    if transactions.transaction(lambda: _empty(name, token)):
        clean(name)
        transactions.transaction(lambda: _end(name, token))


def _empty(name: records.SetName, token: str) -> bool:
    """Restart a set without ids; return False if nothing is stored for the set."""
    at = membership.pointer(name)
    keys = [*_stored_names("FollowerSegment", name), *_stored_names("FollowerMark", name)]
    if at == membership.Pointer() and not keys:
        return False
    if at.version != token:  # Otherwise, an earlier run committed, but its response was lost.
        last = max([at.generation, *map(set_rows.generation_of, keys)])
        fresh = membership.Pointer(token, last + 1, last)
        transactions.apply(ownership.Writes(_OWNER, put=(_row(name, fresh),)))
    return True


def _end(name: records.SetName, token: str) -> None:
    is_ours = membership.pointer(name).version == token
    if (
        is_ours
        and not _stored_names("FollowerSegment", name)
        and not _stored_names("FollowerMark", name)
    ):
        transactions.apply(ownership.Writes(_OWNER, delete=(set_rows.set_key(name),)))


def load(name: records.SetName, ids: Iterable[str]) -> None:
    """Add many ids to a set, in any order, `LOADED` ids at a time.

    Ids that had left the set join it again. If the call is interrupted, repeat it.

    Raises:
        errors.BadInput: an id is invalid; the ids before it may already be stored.
    """
    left = iter(ids)
    while part := list(itertools.islice(left, LOADED)):
        for member in part:
            membership.check(member)
        _join(name, sorted(set(part)))


def _join(name: records.SetName, joining: Sequence[str]) -> None:
    # First compact a generation that is already closed. If the ids joined in that generation, they
    # would be older than the marks in the open generation.
    if membership.pointer(name).is_closed:
        _compact(name, ())
    while not _compact(name, joining):
        pass  # Another process switched first, so try again with the new state.


def _compact(name: records.SetName, joining: Sequence[str], most: int | None = None) -> bool:
    base = close(name)
    prepared = prepare(name, base, joining, most=most)
    is_done = prepared is not None and switch(prepared)
    clean(name)
    return is_done


def is_marked(name: records.SetName) -> bool:
    """Return whether a set has marks to compact."""
    at = membership.pointer(name)
    return next(membership.marks(name, at), None) is not None


def close(name: records.SetName) -> membership.Pointer:
    """Open the next generation unless a closed generation must be compacted first."""

    def body() -> membership.Pointer:
        at = membership.pointer(name)
        if at.is_closed:
            return at  # Or an earlier run committed, but its response was lost.
        version = at.version or secrets.token_hex(10)
        opened = dataclasses.replace(at, version=version, generation=at.generation + 1)
        transactions.apply(ownership.Writes(_OWNER, put=(_row(name, opened),)))
        return opened

    return transactions.transaction(body)


def prepare(
    name: records.SetName,
    base: membership.Pointer,
    joining: Sequence[str] = (),
    *,
    most: int | None = None,
) -> PreparedSegments | None:
    """Write segments that include the closed generation's marks.

    Return None if another process switched first.
    """
    writer = _Writer(name, f"{base.folded + 1:010d}-{secrets.token_hex(10)}")
    joined = ((member, True) for member in joining)
    marked = membership.marks_of(name, base.folded + 1)
    marks = segments.Ahead(segments.overlaid(marked, joined))
    if not marks.is_before(None):
        # Write nothing, because no mark would request the compaction that deletes segments left by
        # a crash.
        return PreparedSegments(name, base, base.directory, writer.token)
    try:
        stored = membership.lines(name, base.directory)
        made = (
            writer.rewritten(stored, marks) if most is None else writer.first(most, stored, marks)
        )
        lines = list(made)
    except membership.SegmentReplaced:
        return None
    return PreparedSegments(name, base, writer.directory(lines), writer.token)


def switch(prepared: PreparedSegments) -> bool:
    """Make the prepared directory current; return False if another process switched first."""
    name, base = prepared.name, prepared.base

    def body() -> bool:
        at = membership.pointer(name)
        if at.version == prepared.token:
            return True  # An earlier run committed, but its response was lost.
        if (at.folded, at.version) != (base.folded, base.version):
            return False
        new = membership.Pointer(prepared.token, at.generation, at.folded + 1, prepared.directory)
        transactions.apply(ownership.Writes(_OWNER, put=(_row(name, new),)))
        return True

    return transactions.transaction(body)


def clean(name: records.SetName) -> None:
    """Delete compacted marks and unreferenced segments."""
    # Delete marks that request a compaction last: while such a mark exists, an interrupted clean-up
    # is found and finished.
    at = membership.pointer(name)
    _forget(name, at, asks=False)
    for keys in _in_parts(_unnamed_segments(name, at)):
        _delete(name, keys)
    _forget(name, at, asks=True)


def _forget(name: records.SetName, at: membership.Pointer, *, asks: bool) -> None:
    while names := membership.compacted_marks(name, at, asks=asks):
        _apply(membership.removal_writes(name, names))


def _delete(name: records.SetName, keys: Sequence[str]) -> None:
    gone = tuple(set_rows.segment_key(name, key) for key in keys)
    _apply(ownership.Writes(_OWNER, delete=gone))


def _apply(writes: ownership.Writes) -> None:
    transactions.transaction(lambda: transactions.apply(writes))


def _unnamed_segments(name: records.SetName, at: membership.Pointer) -> list[str]:
    """Return the segments of compacted generations that the set does not name."""
    stored = _stored_names("FollowerSegment", name)
    if at == membership.Pointer() == membership.pointer(name):
        return stored  # The set was removed, so no attempt that wrote a segment can switch.
    old = [key for key in stored if set_rows.generation_of(key) <= at.folded]
    try:
        named = set(membership.keys(name, at.directory)) if old else set()
    except membership.SegmentReplaced:
        return []  # Another process has switched the set in the meantime, and will clean up.
    return [key for key in old if key not in named]


def _stored_names(kind: str, name: records.SetName) -> list[str]:
    """Return the names of a set's stored marks or segments."""
    return reads.names(kind, ancestor=set_rows.set_key(name))


def _row(name: records.SetName, at: membership.Pointer) -> set_rows.FollowerListRow:
    return set_rows.FollowerListRow(
        key=set_rows.set_key(name),
        version=at.version,
        generation=at.generation,
        folded=at.folded,
        content=segments.encode_directory(at.directory),
    )


def _in_parts(keys: Sequence[str]) -> Iterator[Sequence[str]]:
    return (keys[first : first + AT_ONCE] for first in range(0, len(keys), AT_ONCE))


class _Writer:
    """Writes the segments of one attempt. Every key contains the attempt's token."""

    def __init__(self, name: records.SetName, token: str) -> None:
        self._name = name
        self.token = token
        self._numbers = itertools.count()

    def rewritten(
        self, stored: Iterable[segments.SegmentSummary], marks: segments.Ahead
    ) -> Iterator[segments.SegmentSummary]:
        """Write the segments that marks change, and yield the lines of all segments.

        A remainder that is too small for a segment is merged into the next segment.
        """
        spans: Iterator[tuple[segments.SegmentSummary | None, str | None]] = segments.spans(stored)
        small: list[str] = []
        for line, end in itertools.chain([next(spans, (None, None))], spans):
            if line is not None and not small and not marks.is_before(end):
                yield line
                continue
            old = [] if line is None else membership.read_ids(self._name, line)
            new = itertools.chain(small, segments.apply_marks(old, marks.until(end)))
            small = []
            for run in segments.runs(new, SEGMENT_BYTES):
                yield from self._segment(small)
                small = run
            if end is None or segments.size(small) >= SEGMENT_BYTES // 2:
                yield from self._segment(small)
                small = []

    def first(
        self, most: int, stored: Iterable[segments.SegmentSummary], marks: Iterable[segments.Mark]
    ) -> Iterator[segments.SegmentSummary]:
        """Write the first `most` ids of a set, and yield the lines of their segments."""
        read = (membership.read_ids(self._name, line) for line in stored)
        ids = segments.apply_marks(itertools.chain.from_iterable(read), marks)
        for run in segments.runs(itertools.islice(ids, most), SEGMENT_BYTES):
            yield from self._segment(run)

    def directory(self, lines: Sequence[segments.SegmentSummary]) -> segments.SetDirectory:
        """Make a directory of these lines, or write segments of lines if it would be too large."""
        depth = 0
        while len(lines) > 1 and len(segments.encode_lines(lines)) > DIRECTORY_BYTES:
            parts = (lines[first : first + LINES] for first in range(0, len(lines), LINES))
            lines = [self._above(part) for part in parts]
            depth += 1
        return segments.SetDirectory(depth, tuple(lines))

    def _above(self, lines: Sequence[segments.SegmentSummary]) -> segments.SegmentSummary:
        count = sum(line.count for line in lines)
        return segments.SegmentSummary(
            self._write(segments.encode_lines(lines)), lines[0].first, count
        )

    def _segment(self, ids: Sequence[str]) -> Iterator[segments.SegmentSummary]:
        if ids:
            yield segments.SegmentSummary(self._write(segments.encode_ids(ids)), ids[0], len(ids))

    def _write(self, content: bytes) -> str:
        key = f"{self.token}-{next(self._numbers)}"
        row = set_rows.FollowerSegmentRow(
            key=set_rows.segment_key(self._name, key), content=content
        )
        _apply(ownership.Writes(_OWNER, put=(row,)))
        return key
