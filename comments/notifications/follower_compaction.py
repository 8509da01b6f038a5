"""Compaction: taking the marks of a large list into its sorted segments.

Owns FollowerList and FollowerSegment. One compaction of a list, in steps that each leave it whole:

1. **close** the generation that marks are written for, by opening the next one;
2. **write** new segments under keys of this attempt, which nobody names yet;
3. **switch** the list to them, in a transaction that fails if somebody else switched since;
4. **clean**: delete what the list does not need any more, marks that ask for a folding last.

What must stay true: a closed generation never grows (`follower_lists`), so what step 2 reads is all
of it; a segment's key is never used twice; nothing is deleted before the switch that replaces it.
Two at once both write and one switches. A crash in any step leaves marks, which readers merge, or
rubbish, and in both cases a mark that asks: the next compaction finishes the one and deletes the
other.

Every segment's key begins with the generation that it was written for. Such an attempt can switch
only while that generation is not folded, so afterwards a segment that the list does not name is
rubbish for ever: no grace, and no list of what is to be deleted.

A compaction of up to 500 marks in S segments bills at most 11 + S reads, 2 + S writes and a delete
for each mark and replaced segment. It holds the directory's lines and a few segments in memory.
"""

import dataclasses
import itertools
import secrets
from collections.abc import Iterable, Iterator, Sequence

from comments import errors
from comments.domain import records
from comments.notifications import follower_lists, id_sets
from comments.store import ownership, reads, transactions
from comments.store.models import follower_rows

SEGMENT_BYTES = 256 * 1024  # of ids before compression, about 10,000; Datastore takes 1 MiB
DIRECTORY_BYTES = 16 * 1024  # of lines in the list's entity, which everyone who joins reads
LINES = 400  # of a segment of lines
LOADED = 50_000  # ids that are loaded at once
AT_ONCE = 500  # keys of one commit
_TRIES = 10
_OWNER = "follower_compaction"


@dataclasses.dataclass(frozen=True, slots=True)
class Prepared:
    """New segments that are written, and the directory that is to name them."""

    name: records.ListName
    base: follower_lists.Pointer
    directory: id_sets.Directory
    token: str


def compact(name: records.ListName) -> bool:
    """Take a list's marks into its segments. False if somebody else was faster."""
    if not is_marked(name):
        clean(name)
        return True
    return _fold(name, ())


def erase(name: records.ListName, follower: str) -> None:
    """Fold a list until no row of it names an id that left.

    Raises:
        errors.Overloaded: others fold it faster than here, or the store is busy.
    """
    for _ in range(_TRIES):
        # At first also where nothing is marked: an interrupted folding may have left segments.
        if compact(name) and not follower_lists.is_marked(name, follower):
            return
    raise errors.Overloaded(f"another process is compacting {name.text}")


def load(name: records.ListName, ids: Iterable[str]) -> None:
    """Let many ids join a list, of any order: an import, in `LOADED` ids at a time.

    Who left before joins again. An interrupted one is finished by running it again.

    Raises:
        errors.BadInput: one of them cannot be an id; those before it may be stored.
    """
    left = iter(ids)
    while part := list(itertools.islice(left, LOADED)):
        for each in part:
            follower_lists.check(each)
        _join(name, sorted(set(part)))


def _join(name: records.ListName, joining: Sequence[str]) -> None:
    # In a generation that was closed before, who joins now would be older than the marks since.
    if follower_lists.pointer(name).is_closed:
        _fold(name, ())
    while not _fold(name, joining):
        pass  # somebody switched, so the list got further


def _fold(name: records.ListName, joining: Sequence[str]) -> bool:
    base = close(name)
    prepared = prepare(name, base, joining)
    is_done = prepared is not None and switch(prepared)
    clean(name)
    return is_done


def is_marked(name: records.ListName) -> bool:
    """Whether there are marks to fold."""
    at = follower_lists.pointer(name)
    return next(follower_lists.marks(name, at), None) is not None


def close(name: records.ListName) -> follower_lists.Pointer:
    """Open the next generation, unless one is closed already: then that is to be folded first."""

    def body() -> follower_lists.Pointer:
        at = follower_lists.pointer(name)
        if at.is_closed:
            return at  # also after our own commit, whose answer was lost
        opened = dataclasses.replace(at, generation=at.generation + 1)
        transactions.apply(ownership.Writes(_OWNER, put=(_row(name, opened),)))
        return opened

    return transactions.transaction(body)


def prepare(
    name: records.ListName, base: follower_lists.Pointer, joining: Sequence[str] = ()
) -> Prepared | None:
    """Write the segments of the closed generation. None if somebody else switched meanwhile."""
    writer = _Writer(name, f"{base.folded + 1:010d}-{secrets.token_hex(10)}")
    joined = ((each, True) for each in joining)
    marks = id_sets.overlaid(follower_lists.marks_of(name, base.folded + 1), joined)
    try:
        stored = follower_lists.lines(name, base.directory)
        lines = list(writer.rewritten(stored, id_sets.Ahead(marks)))
    except follower_lists.Gone:
        return None
    return Prepared(name, base, writer.directory(lines), writer.token)


def switch(prepared: Prepared) -> bool:
    """Make the prepared directory the list's, unless somebody was faster."""
    name, base = prepared.name, prepared.base

    def body() -> bool:
        at = follower_lists.pointer(name)
        if at.version == prepared.token:
            return True  # our own commit, whose answer was lost
        if at.folded != base.folded:
            return False
        new = follower_lists.Pointer(
            prepared.token, at.generation, at.folded + 1, prepared.directory
        )
        transactions.apply(ownership.Writes(_OWNER, put=(_row(name, new),)))
        return True

    return transactions.transaction(body)


def clean(name: records.ListName) -> None:
    """Delete folded marks, and segments that nobody can name any more.

    The marks that ask go last: while one of them stands, an interrupted cleaning is found again.
    """
    at = follower_lists.pointer(name)
    _forget(name, at, asks=False)
    for keys in _in_parts(_unnamed(name, at)):
        _delete(name, keys)
    _forget(name, at, asks=True)


def _forget(name: records.ListName, at: follower_lists.Pointer, *, asks: bool) -> None:
    while found := follower_lists.folded_marks(name, at, asks=asks):
        _apply(follower_lists.removal(name, found))


def _delete(name: records.ListName, keys: Sequence[str]) -> None:
    gone = tuple(follower_rows.follower_segment_key(name, key) for key in keys)
    _apply(ownership.Writes(_OWNER, delete=gone))


def _apply(writes: ownership.Writes) -> None:
    transactions.transaction(lambda: transactions.apply(writes))


def _unnamed(name: records.ListName, at: follower_lists.Pointer) -> list[str]:
    """The segments of folded generations that the list does not name."""
    query = reads.Query(
        "FollowerSegment", ancestor=follower_rows.follower_list_key(name), keys_only=True
    )
    stored = [message.key.path[-1].name for message in reads.fetch(query)]
    old = [key for key in stored if follower_rows.generation_of(key) <= at.folded]
    try:
        named = set(follower_lists.keys(name, at.directory)) if old else set()
    except follower_lists.Gone:
        return []  # somebody switched since, and cleans
    return [key for key in old if key not in named]


def _row(name: records.ListName, at: follower_lists.Pointer) -> follower_rows.FollowerList:
    return follower_rows.FollowerList(
        key=follower_rows.follower_list_key(name),
        version=at.version,
        generation=at.generation,
        folded=at.folded,
        content=id_sets.encode_directory(at.directory),
    )


def _in_parts(keys: Sequence[str]) -> Iterator[Sequence[str]]:
    return (keys[first : first + AT_ONCE] for first in range(0, len(keys), AT_ONCE))


class _Writer:
    """Writes the segments of one attempt. Its token is in every key."""

    def __init__(self, name: records.ListName, token: str) -> None:
        self._name = name
        self.token = token
        self._numbers = itertools.count()

    def rewritten(
        self, stored: Iterable[id_sets.Line], marks: id_sets.Ahead
    ) -> Iterator[id_sets.Line]:
        """Write the segments that marks change; the lines of all.

        What is left of a segment and too small for one goes to the next.
        """
        spans: Iterator[tuple[id_sets.Line | None, str | None]] = id_sets.spans(stored)
        small: list[str] = []
        for line, end in itertools.chain([next(spans, (None, None))], spans):
            if line is not None and not small and not marks.is_before(end):
                yield line
                continue
            old = [] if line is None else follower_lists.read_ids(self._name, line)
            new = itertools.chain(small, id_sets.changed(old, marks.until(end)))
            small = []
            for run in id_sets.runs(new, SEGMENT_BYTES):
                yield from self._segment(small)
                small = run
            if end is None or id_sets.size(small) >= SEGMENT_BYTES // 2:
                yield from self._segment(small)
                small = []

    def directory(self, lines: Sequence[id_sets.Line]) -> id_sets.Directory:
        """The directory of these lines, in segments of lines where they are too many."""
        depth = 0
        while len(lines) > 1 and len(id_sets.encode_lines(lines)) > DIRECTORY_BYTES:
            parts = (lines[first : first + LINES] for first in range(0, len(lines), LINES))
            lines = [self._above(part) for part in parts]
            depth += 1
        return id_sets.Directory(depth, tuple(lines))

    def _above(self, lines: Sequence[id_sets.Line]) -> id_sets.Line:
        count = sum(line.count for line in lines)
        return id_sets.Line(self._write(id_sets.encode_lines(lines)), lines[0].first, count)

    def _segment(self, ids: Sequence[str]) -> Iterator[id_sets.Line]:
        if ids:
            yield id_sets.Line(self._write(id_sets.encode_ids(ids)), ids[0], len(ids))

    def _write(self, content: bytes) -> str:
        key = f"{self.token}-{next(self._numbers)}"
        row = follower_rows.FollowerSegment(
            key=follower_rows.follower_segment_key(self._name, key), content=content
        )
        _apply(ownership.Writes(_OWNER, put=(row,)))
        return key
