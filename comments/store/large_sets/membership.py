"""Store large sets of ids that change concurrently, such as the followers of a thread.

This module owns the kind FollowerMark and the code that reads sets. A set consists of sorted
segments of ids, which the set's entity names, and of marks that override the segments. To add or
remove an id, a transaction reads the set's entity and writes one mark in the set's current
*generation*. `set_compaction` closes a generation, merges its marks into new segments and switches
the set to these segments.

A mark costs 2 reads and 1 write, or no write if the same mark exists. `contains` costs at most 5
reads: the set, marks of two generations, a segment, and a segment of lines if the set has more
than about 1,000,000 ids. While no compaction runs, and without a segment of lines, `contains` costs
at most 3 reads. Counting marks would require a read each time, or an entity for which all writers
contend. Instead, about one in `_between` marks, chosen by a digest of its key, requests a
compaction (`asks`). The request is stored with the mark, so it cannot be lost.

Invariant: A mark is written for the generation that is open when the mark commits, so a closed
generation never grows
(test_membership_machine.py::test_a_mark_read_before_a_generation_is_closed_belongs_to_the_next_one).

Marks of newer generations override older marks, and all marks override the segments. Within a
snapshot, all segments that a set names exist. For each id, the order of commits in the store is
decisive: overlapping calls for one id can take effect in either order. If the response to a call is
lost, repeating the call ensures that it takes effect.
"""

import dataclasses
import hashlib
import itertools
from collections.abc import Iterator, Sequence

from comments import errors
from comments.domain import records
from comments.store import ownership, reads, transactions
from comments.store.large_sets import segments
from comments.store.models import set_rows

LONGEST = 500  # Maximum bytes in an id. Ids are part of keys, which are limited to 1,500.
# The average number of marks in a generation is `MARKS` plus one for every `IDS_FOR_MARK` ids. A
# compaction rewrites most segments, so a set with many segments waits for more marks.
MARKS = 64
IDS_FOR_MARK = 500
AT_ONCE = 500  # Maximum number of marks per query or commit.
OWNER = "membership"


@dataclasses.dataclass(frozen=True, slots=True)
class Pointer:
    """The state of a set.

    Marks of generations after `folded` are not yet in the set's segments.
    """

    version: str = ""
    generation: int = 1
    folded: int = 0
    directory: segments.SetDirectory = segments.SetDirectory()  # noqa: RUF009 - a frozen value

    @property
    def is_closed(self) -> bool:
        """Return whether a closed generation has not been fully compacted."""
        return self.generation - self.folded > 1


@dataclasses.dataclass(frozen=True, slots=True)
class MemberPage:
    """One page of a set's ids, in order.

    The next page begins after `position`, which is None on the last page.
    """

    ids: tuple[str, ...]
    position: str | None


class SegmentReplaced(Exception):
    """Another process's compaction replaced a segment while it was being read."""


@dataclasses.dataclass(frozen=True, slots=True)
class Marked:
    """The writes for a mark, and whether the mark requests a compaction.

    `writes` is empty if the mark already exists.
    """

    writes: ownership.Writes
    asks: bool


def mark(name: records.SetName, member: str, *, belongs: bool) -> bool:
    """Add an id to a set or remove it; return whether the mark requests a compaction.

    Raises:
        errors.BadInput: the id is empty, is longer than `LONGEST` bytes, or is not valid text.
        errors.Overloaded: the store did not respond in time.
    """
    check(member)

    def body() -> bool:
        marked = mark_within(name, member, belongs=belongs)
        transactions.apply(marked.writes)
        return marked.asks

    return transactions.transaction(body)


def mark_within(name: records.SetName, member: str, *, belongs: bool, asks: bool = False) -> Marked:
    """Add a valid id (see `check`) to a set or remove it, in the current transaction.

    With `asks`, a new mark also requests a compaction. An existing equal mark stays as it is.
    """
    at = pointer(name)
    # Read the mark although it is overwritten. A commit that arrives after its caller gave up then
    # conflicts with later decisions instead of replacing them.
    row = reads.get(set_rows.mark_key(name, at.generation, member))
    return make_mark(name, at, member, row, belongs=belongs, asks=asks)


def make_mark(
    name: records.SetName,
    at: Pointer,
    member: str,
    found: set_rows.FollowerMarkRow | None,
    *,
    belongs: bool,
    asks: bool = False,
) -> Marked:
    """Return the mark that changes a set, given the set's state and the stored mark, if any."""
    key = set_rows.mark_key(name, at.generation, member)
    entry = set_rows.mark_entry(name, at.generation, belongs=belongs)
    if found is not None and found.entry == entry:
        return Marked(ownership.Writes(OWNER), bool(found.asks))
    row = set_rows.FollowerMarkRow(
        key=key, entry=entry, asks=asks or _requests_compaction(key.id(), name, at)
    )
    return Marked(ownership.Writes(OWNER, put=(row,)), bool(row.asks))


def contains(name: records.SetName, member: str) -> bool:
    """Return whether an id belongs to a set."""
    check(member)

    def body() -> bool:
        at = pointer(name)
        open_ = range(at.generation, at.folded, -1)
        rows = reads.get_multi([set_rows.mark_key(name, n, member) for n in open_])
        for row, generation in zip(rows, open_, strict=True):
            if row is not None:
                joined = set_rows.mark_entry(name, generation, belongs=True)
                return bool(row.entry == joined)
        return member in _segment_of(name, at.directory, member)

    return transactions.snapshot(body)


def page(
    name: records.SetName, *, after: str = "", before: str | None = None, limit: int
) -> MemberPage:
    """Return the next ids in a set, after a position and below `before`, in the order of ids.

    Each page shows the set at a single moment. Positions are ids, so compactions between two pages
    do not matter: no id is returned twice, and an id that belongs to the set throughout is
    returned exactly once.
    """

    def body() -> tuple[str, ...]:
        at = pointer(name)
        ids = segments.apply_marks(
            _ids_behind(name, at.directory, after), marks(name, at, after=after)
        )
        wanted = itertools.takewhile(lambda each: before is None or each < before, ids)
        return tuple(itertools.islice(wanted, limit))

    ids = transactions.snapshot(body)
    return MemberPage(ids, ids[-1] if len(ids) == limit else None)


def every(name: records.SetName, *, limit: int) -> Iterator[str]:
    """Yield all ids in a set, one page per read (see `page`)."""
    position: str | None = ""
    while position is not None:
        ids = page(name, after=position, limit=limit)
        yield from ids.ids
        position = ids.position


def count(name: records.SetName) -> int:
    """Count the ids in a set. Counting reads the set and the segments that marks change."""
    return transactions.snapshot(lambda: count_within(name))


def count_within(name: records.SetName, *, after: str = "") -> int:
    """Inside a snapshot, count the ids in a set that come after an id.

    The function also reads the segment that contains the place of `after`.
    """
    at = pointer(name)
    ahead = segments.Ahead(marks(name, at, after=after))
    total = 0
    for line, end in segments.spans(lines(name, at.directory)):
        if end is not None and end <= after:
            continue
        is_cut = line.first <= after
        if not (is_cut or ahead.is_before(end)):
            total += line.count
            continue
        ids = [member for member in read_ids(name, line) if member > after]
        total += len(ids) + segments.gain(ids, list(ahead.until(end)))
    return total + sum(belongs for _, belongs in ahead)


def check(member: str) -> None:
    """Check that a text can be an id.

    Raises:
        errors.BadInput: the text is empty, is longer than `LONGEST` bytes, or is not valid Unicode.
    """
    try:
        size = len(member.encode())
    except UnicodeEncodeError as error:
        raise errors.BadInput("member", "bad-characters") from error
    if not 0 < size <= LONGEST:
        raise errors.BadInput("member", "too-many-bytes", limit=LONGEST)


def pointer(name: records.SetName) -> Pointer:
    """Read the state of a set, which has no entity before its first compaction."""
    return pointer_from(reads.get(set_rows.set_key(name)))


def pointer_from(row: set_rows.FollowerListRow | None) -> Pointer:
    """Decode the state of a set from its entity."""
    if row is None:
        return Pointer()
    directory = segments.decode_directory(row.content)
    return Pointer(row.version, row.generation, row.folded, directory)


def marks(name: records.SetName, at: Pointer, *, after: str = "") -> Iterator[segments.Mark]:
    """Yield the uncompacted marks after an id, in the order of ids."""
    marked = marks_of(name, at.folded + 1, after=after)
    if at.is_closed:
        return segments.overlaid(marked, marks_of(name, at.generation, after=after))
    return marked


def marks_of(name: records.SetName, generation: int, *, after: str = "") -> Iterator[segments.Mark]:
    """Yield one generation's marks after an id, in the order of ids."""
    joined, left = (
        _marked_ids(name, generation, belongs=belongs, after=after) for belongs in (True, False)
    )
    return segments.merge_signed(joined, left)


def _marked_ids(
    name: records.SetName, generation: int, *, belongs: bool, after: str
) -> Iterator[str]:
    """Yield the ids that have a mark in this generation.

    A keys-only query bills one read for any number of marks.
    """
    entry = set_rows.mark_entry(name, generation, belongs=belongs)
    position: str | None = after
    while position is not None:
        behind = set_rows.mark_key(name, generation, position)
        where = (("entry", "=", entry), ("__key__", ">", behind))
        marks = reads.names("FollowerMark", where, order=("__key__",), limit=AT_ONCE)
        ids = [set_rows.member_of(mark) for mark in marks]
        yield from ids
        position = ids[-1] if len(ids) == AT_ONCE else None


def lines(
    name: records.SetName, directory: segments.SetDirectory
) -> Iterator[segments.SegmentSummary]:
    """Yield the lines for all segments of ids, in order.

    Raises:
        SegmentReplaced: the set was compacted after the directory was read, which cannot happen
            inside a snapshot.
    """
    for line in directory.lines:
        if directory.depth:
            yield from lines(name, _below(name, directory, line))
        else:
            yield line


def keys(name: records.SetName, directory: segments.SetDirectory) -> Iterator[str]:
    """Yield the keys of all segments, including segments of lines.

    Raises:
        SegmentReplaced: see `lines`.
    """
    for line in directory.lines:
        yield line.key
        if directory.depth:
            yield from keys(name, _below(name, directory, line))


def read_ids(name: records.SetName, line: segments.SegmentSummary) -> list[str]:
    """Read the ids in a segment.

    Raises:
        SegmentReplaced: see `lines`.
    """
    return segments.decode_ids(_content(name, line))


def _ids_behind(
    name: records.SetName, directory: segments.SetDirectory, after: str
) -> Iterator[str]:
    for line in directory.lines[segments.place_of(directory.lines, after) :]:
        if directory.depth:
            yield from _ids_behind(name, _below(name, directory, line), after)
        else:
            yield from (member for member in read_ids(name, line) if member > after)


def _segment_of(
    name: records.SetName, directory: segments.SetDirectory, member: str
) -> Sequence[str]:
    if not directory.lines:
        return ()
    line = directory.lines[segments.place_of(directory.lines, member)]
    if directory.depth:
        return _segment_of(name, _below(name, directory, line), member)
    return read_ids(name, line)


def _below(
    name: records.SetName, directory: segments.SetDirectory, line: segments.SegmentSummary
) -> segments.SetDirectory:
    return segments.SetDirectory(directory.depth - 1, segments.decode_lines(_content(name, line)))


def _content(name: records.SetName, line: segments.SegmentSummary) -> bytes:
    row = reads.get(set_rows.segment_key(name, line.key))
    if row is None:
        raise SegmentReplaced
    content: bytes = row.content
    return content


def _requests_compaction(key: str, name: records.SetName, at: Pointer) -> bool:
    """Return whether a mark requests a compaction.

    The result depends only on the mark's key, so repeating a mark never makes a second request.
    """
    digest = hashlib.sha256(f"{name.text}\n{key}".encode()).digest()
    return int.from_bytes(digest[:8]) % _between(at) == 0


def _between(at: Pointer) -> int:
    return MARKS + at.directory.count // IDS_FOR_MARK


def is_stored(name: records.SetName, member: str) -> bool:
    """Return whether a segment contains an id, inside a snapshot; marks are ignored."""
    return member in _segment_of(name, pointer(name).directory, member)


def compacted_marks(name: records.SetName, at: Pointer, *, asks: bool) -> list[str]:
    """Return up to `AT_ONCE` names of compacted marks whose `asks` has the given value."""
    first, behind = (set_rows.mark_key(name, n, "") for n in (0, at.folded + 1))
    where = (("asks", "=", asks), ("__key__", ">", first), ("__key__", "<", behind))
    return reads.names("FollowerMark", where, order=("__key__",), limit=AT_ONCE)


def is_marked(name: records.SetName, member: str) -> bool:
    """Return whether an id has a stored mark, in any generation that may still have marks."""
    at = pointer(name)
    keys = [
        set_rows.mark_key(name, generation, member)
        for generation in range(max(1, at.folded), at.generation + 1)
    ]
    return any(row is not None for row in reads.get_multi(keys))


def removal_writes(name: records.SetName, found: Sequence[str]) -> ownership.Writes:
    """Return the writes that delete marks by their names from `compacted_marks`.

    A name contains the mark's generation, so newer marks for the same ids are not deleted.
    """
    keys = [
        set_rows.mark_key(name, set_rows.generation_of(mark), set_rows.member_of(mark))
        for mark in found
    ]
    return ownership.Writes(OWNER, delete=tuple(keys))
