"""The materialised thread as this process holds it: directory, buckets and delta, made a view.

Owns what is read for a view and what is kept of it. A view costs one read for the directory and
one for each bucket it needs, both kept in a bounded cache, and a *probe*: a projection of (key,
revision) over the rows that are not folded, which bills one read, or none if it finds none. Of
those rows, only the ones are read that neither the directory nor this process holds at that
revision.

What must stay true, or a reader may see an old row:

- A directory is used only with a probe that was answered before the directory reached
  `CACHE_MAX_AGE`, by a clock that also runs while the machine sleeps. The folder clears the flag
  of a row only when every directory that does not hold the row is older than that.
- Its age counts from before it was asked for.
- A directory is read before the probe, so the probe is never behind it.
- A view is made only of rows that stand where the directory holds them, if it holds them. `tree`
  says in the row, in the commit that moves it, that it has another hash than before.

Nothing is written here, and nobody's name, mail or vote is kept: entries are what everyone gets.
"""

import dataclasses
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from comments import (
    buckets,
    caching,
    datastore,
    errors,
    heads,
    models,
    public,
    ranking,
    records,
    views,
)

T = TypeVar("T")

HOLDINGS = "materialized"  # under which `datastore.kept` keeps them
CACHE_MAX_AGE = 60.0  # seconds that a directory may be used
CACHE_BYTES = 64 * 1024 * 1024  # of one process
MOST_UNFOLDED = 500  # flagged rows that a view takes; more, and the floor is cheaper
_TRIES = 3
_PROBES = 10  # until rows did not change while they were read
_OVERHEAD = 200  # bytes of Python around an entry, roughly


# It counts the time that the machine sleeps; so does the one that macOS has instead.
_CLOCK: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def _seconds() -> float:
    return time.clock_gettime(_CLOCK)


class _AtHand(threading.local):
    """A probe that this thread has just asked, until its request is over.

    It is worth something beside the directory only that it was asked with: that is older.
    """

    name: records.ThreadName | None = None
    kept: "_Kept | None" = None
    probed: Mapping[str, int] | None = None


class Holdings:
    """What a process holds of the threads of a store: a cache, and the clock of its ages.

    Args:
        clock: seconds, monotonic, counting also the time the machine sleeps.
        most: bytes that are kept.
    """

    def __init__(self, clock: Callable[[], float] = _seconds, most: int = CACHE_BYTES) -> None:
        self.clock = clock
        self.cache = caching.Cache(most)
        self.at_hand = _AtHand()


class NotMaterialized(errors.FlatthreadError):
    """The thread has no directory yet, or rows beyond it that no view is made of, or too many."""


class Gone(Exception):
    """A bucket of a directory is not there any more: the directory is old."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Kept:
    """A directory with its head, and when it was asked for."""

    directory: buckets.Directory
    head: heads.Head | None
    since: float


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """One row that is not folded, as it was read.

    `shelved`: the directory once held it listed. `rewrites`: what it held then must go at once.
    `moved`: it was held at another hash, or may have been. `flagged`: its flag stands.
    """

    entry: buckets.Entry
    is_listed: bool
    shelved: bool
    rewrites: bool
    changed: datetime | None
    votes: tuple[int, int]
    moved: bool = False
    flagged: bool = True


@dataclasses.dataclass(frozen=True, slots=True)
class _Moment:
    """What the last view of a thread was made of, and its tag.

    `probed` are the revisions of the rows that were not folded and not in the directory either.
    """

    version: str
    probed: Mapping[str, int]
    tag: str


def tag(name: records.ThreadName) -> str | None:
    """The tag that a view of the thread has now, if a probe is enough to know; else None.

    It is that of the last view that this process made, if the probe finds what it found then in the
    same directory. A directory too old to be used, or a change, takes a view: the next one of this
    thread has the probe without asking again, until `forget_probe`.
    """
    held = datastore.kept(HOLDINGS, Holdings)
    kept: _Kept | None = held.cache.get(("directory", name))
    moment: _Moment | None = held.cache.get(("moment", name))
    if kept is None or moment is None or kept.directory.version != moment.version:
        return None
    try:
        probed = _probed(held.cache, name, kept.directory)
    except NotMaterialized:
        return None
    if probed != moment.probed or held.clock() - kept.since >= CACHE_MAX_AGE:
        _hand_on(held, name, kept, probed)
        return None
    return moment.tag


def forget_probe() -> None:
    """End of a request: what it probed says nothing of the next one's moment."""
    datastore.kept(HOLDINGS, Holdings).at_hand.probed = None


def _hand_on(
    held: Holdings, name: records.ThreadName, kept: _Kept, probed: Mapping[str, int]
) -> None:
    """Leave what was probed to who asks next in this request."""
    hand = held.at_hand
    hand.name, hand.kept, hand.probed = name, kept, probed


def _handed(held: Holdings, name: records.ThreadName, kept: _Kept) -> Mapping[str, int] | None:
    """What this request has probed already, once."""
    hand = held.at_hand
    probed, hand.probed = hand.probed, None
    return probed if hand.name == name and hand.kept is kept else None


def head(name: records.ThreadName, limit: int) -> heads.Head | None:
    """The head of the thread's directory, if it is the first page of this length now; else None.

    It is while no row has changed that the directory does not hold. What was probed to know that
    is for the `view` that is taken instead, at once: see `tag`.

    Raises:
        NotMaterialized: ask the floor instead.
    """
    held = datastore.kept(HOLDINGS, Holdings)
    kept = _directory(held, name)
    found = kept.head
    if found is None or not found.holds(limit):
        return None
    probed = _handed(held, name, kept)
    probed = _probed(held.cache, name, kept.directory) if probed is None else probed
    if probed or held.clock() - kept.since >= CACHE_MAX_AGE:
        _hand_on(held, name, kept, probed)
        return None
    held.cache.keep(("moment", name), _Moment(kept.directory.version, {}, found.tag), _OVERHEAD)
    return found


def view(name: records.ThreadName) -> views.View:
    """The thread as it is now.

    Raises:
        NotMaterialized: ask the floor instead.
    """
    held = datastore.kept(HOLDINGS, Holdings)
    for _ in range(_TRIES):
        kept = _directory(held, name)
        if not kept.directory.version:
            # Also where an older release stored the rows: the probe does not find those.
            raise NotMaterialized("the thread was never folded")
        rows = _unfolded(held.cache, name, kept.directory, _handed(held, name, kept))
        if any(row.moved for row in rows.values()):
            # Which bucket holds such a row, and where, the next folding puts right.
            raise NotMaterialized("comments have other places than in the buckets")
        if held.clock() - kept.since < CACHE_MAX_AGE:
            made = views.View(
                kept.directory,
                merged(kept.directory, rows.values()),
                lambda keys: _read(held.cache, name, keys),
                changed=changed(kept.directory.content, rows.values()),
            )
            probed = {each: row.entry.revision for each, row in rows.items()}
            moment = _Moment(kept.directory.version, probed, made.tag)
            held.cache.keep(("moment", name), moment, _OVERHEAD * (1 + len(probed)))
            return made
        held.cache.drop(("directory", name))
    raise errors.Overloaded("the thread took longer to read than it may be kept")


def using(name: records.ThreadName, answer: Callable[[views.View], T]) -> T:
    """Answer from a view, and once more from a fresh one if its buckets were replaced meanwhile.

    Raises:
        NotMaterialized: ask the floor instead.
    """
    for _ in range(_TRIES):
        try:
            return answer(view(name))
        except Gone:
            datastore.kept(HOLDINGS, Holdings).cache.drop(("directory", name))
    raise errors.Overloaded("the thread is folded faster than it is read")


def from_rows(rows: Iterable[records.Comment], *, changed: datetime | None) -> views.View:
    """A view of listed rows that were read otherwise. `changed`: the thread's newest change."""
    marks = [
        buckets.Mark(row.sort_hash, row.id, row.revision, public.fragment(row), held=False)
        for row in rows
    ]
    return views.View(buckets.Directory(""), marks, lambda _keys: (), changed=changed)


def changed(content: buckets.Content, rows: Iterable["Row"]) -> datetime | None:
    """The newest change that a directory has taken in, or that is among these rows."""
    return records.newest([content.changed, *(row.changed for row in rows)])


def merged(directory: buckets.Directory, rows: Iterable["Row"]) -> list[buckets.Mark]:
    """The rows that differ from the buckets: those of the tail, and newer ones of the delta."""
    marks = {mark.id: mark for mark in directory.content.tail}
    for row in rows:
        entry, known = row.entry, marks.get(row.entry.id)
        if known is not None and known.revision > entry.revision:
            continue
        # `shelved` speaks of the last directory; without one no bucket holds anything.
        held = row.shelved and bool(directory.version)
        if known is not None:
            held = known.held
        elif entry.id in directory.clearing:
            held = directory.clearing[entry.id].is_listed
        json = entry.json if row.is_listed else b""
        marks[entry.id] = buckets.Mark(entry.sort_hash, entry.id, entry.revision, json, held)
    return list(marks.values())


def row_of(message: Any) -> Row:
    """A stored comment as a row of the delta."""
    record = models.comment_from_message(message)
    json = public.fragment(record)
    return Row(
        buckets.Entry(record.sort_hash, record.id, record.revision, json),
        record.listed,
        message.properties["shelved"].boolean_value,
        message.properties["rewrites"].boolean_value,
        record.changed,
        (0, 0) if record.is_tombstone or not record.listed else (record.up, record.down),
        message.properties["moved"].boolean_value,
        message.properties["unfolded"].boolean_value,
    )


def flagged(name: records.ThreadName) -> Iterator[Row]:
    """The rows whose flag stands."""
    return map(row_of, datastore.fetch(_flagged(name)))


def listed_or_flagged(name: records.ThreadName) -> list[Row]:
    """All rows that a reader may see or see differently than before, as of one moment."""
    listed = datastore.Query(
        "Comment",
        where=(("thread", "=", models.thread_key_name(name)), ("listed", "=", True)),
        order=("sort_hash",),
    )
    found = datastore.snapshot(lambda: [*datastore.fetch(listed), *datastore.fetch(_flagged(name))])
    return list({row.entry.id: row for row in map(row_of, found)}.values())


def _flagged(name: records.ThreadName) -> datastore.Query:
    return datastore.Query(
        "Comment",
        where=(("thread", "=", models.thread_key_name(name)), ("unfolded", "=", True)),
    )


def load_directory(name: records.ThreadName) -> buckets.Directory:
    """Read a thread's directory; an empty one if it has none."""
    return _load(name)[0]


def _load(name: records.ThreadName) -> tuple[buckets.Directory, heads.Head | None]:
    """Read a thread's directory and its head. Unpacks of the directory nothing yet."""
    for _ in range(_TRIES):
        (stored,) = datastore.read([models.directory_path(name)])
        if stored is None:
            return buckets.Directory(""), None
        parts = [each.string_value for each in stored.properties["parts"].array_value.values]
        rest = datastore.read([models.bucket_path(name, part) for part in parts])
        if None not in rest:  # else it was switched between the two reads
            content = b"".join(map(models.content, (stored, *rest)))
            version = stored.properties["version"].string_value
            head = heads.decode(stored.properties["head"].blob_value)
            return buckets.Directory(version, content), head
    raise errors.Overloaded("the directory is switched faster than it is read")


def some(most: int) -> list[records.ThreadName]:
    """Threads that were folded, at most so many: one query, and a read for each."""
    query = datastore.Query("BucketDirectory", keys_only=True, limit=most)
    names = [message.key.path[0].name for message in datastore.fetch(query)]
    rows = datastore.get_multi([models.thread_key_of(name) for name in names])
    return [models.thread_record(row).name for row in rows if row is not None]


def parts_of(name: records.ThreadName) -> tuple[str, ...]:
    """The keys of the entities that hold the rest of a directory too large for one."""
    stored = datastore.get(models.directory_key(name))
    return () if stored is None else tuple(stored.parts)


def load_ranking(name: records.ThreadName, key: str, *, is_newest: bool) -> ranking.Ranking | None:
    """A ranking, as this process keeps it; None if it is gone. "" is the one of nothing.

    The newest one, which a directory in use names, is there. An older one is looked for again when
    it was kept for `CACHE_MAX_AGE`, so that its cursors expire in every process.
    """
    if not key:
        return ranking.Ranking()
    held = datastore.kept(HOLDINGS, Holdings)
    place = ("ranking", name, key)
    found, since = held.cache.get(place) or (None, 0.0)
    if found is None or not (is_newest or held.clock() - since < CACHE_MAX_AGE):
        now = held.clock()
        row = datastore.get(models.ranking_key(name, key))
        if row is None:
            held.cache.drop(place)
            return None
        found = found or ranking.decode(row.content)
        held.cache.keep(place, (found, now), _OVERHEAD * (1 + len(found.ranked)))
    return found


def load_top(name: records.ThreadName, key: str) -> tuple[ranking.TopRow, ...]:
    """The first rows of a ranking, as this process keeps them.

    Raises:
        Gone: they were replaced meanwhile.
    """
    cache = datastore.kept(HOLDINGS, Holdings).cache
    found: tuple[ranking.TopRow, ...] | None = cache.get(("top", name, key))
    if found is None:
        row = datastore.get(models.bucket_key(name, key))
        if row is None:
            raise Gone
        found = ranking.decode_top(row.content)
        size = sum(_OVERHEAD + len(each.entry.json) for each in found)
        cache.keep(("top", name, key), found, size)
    return found


def load_buckets(name: records.ThreadName, keys: Sequence[str]) -> list[buckets.Bucket | None]:
    """Read buckets; None for one that is gone."""
    found = datastore.read([models.bucket_path(name, key) for key in keys])
    return [None if row is None else buckets.decode_bucket(models.content(row)) for row in found]


def _directory(held: Holdings, name: records.ThreadName) -> _Kept:
    kept: _Kept | None = held.cache.get(("directory", name))
    if kept is not None and held.clock() - kept.since < CACHE_MAX_AGE:
        return kept
    since = held.clock()
    directory, head = _load(name)
    if kept is not None and kept.directory.version == directory.version:
        directory = kept.directory  # with what was worked out about it
    kept = _Kept(directory, head, since)
    held.cache.keep(("directory", name), kept, _weight(directory, head))
    return kept


def _weight(directory: buckets.Directory, head: heads.Head | None) -> int:
    """About how many bytes both take. A head says it of its directory, which stays packed."""
    if head is None:
        return directory.weight
    return head.weight + sum(_OVERHEAD + len(row.json) for row in head.rows)


def _unfolded(
    cache: caching.Cache,
    name: records.ThreadName,
    directory: buckets.Directory,
    probed: Mapping[str, int] | None,
) -> Mapping[str, Row]:
    """The rows that are not folded and that the directory does not hold, all as of one moment.

    A row may change between the probe and its reading, and other rows before it did: with the new
    row but without those, the thread would be one that never was. So the probe is repeated.
    `probed` is what was found just now, if somebody has asked.
    """
    for _ in range(_PROBES):
        probed = _probed(cache, name, directory) if probed is None else probed
        rows = _rows(cache, name, probed) if probed else {}
        if all(each in rows and rows[each].entry.revision == at for each, at in probed.items()):
            return rows
        probed = None
    raise NotMaterialized("the rows change faster than they are read")


def _probed(
    cache: caching.Cache, name: records.ThreadName, directory: buckets.Directory
) -> dict[str, int]:
    """The revisions of the rows that are not folded and that the directory does not hold, now.

    Raises:
        NotMaterialized: they are too many.
    """
    request = cache.get(("probe", name))
    if request is None:
        request = datastore.prepared(_probe(name))
        cache.keep(("probe", name), request, _OVERHEAD + request.ByteSize())
    found = {
        message.key.path[-1].name: message.properties["revision"].integer_value
        for message in datastore.ask(request)
    }
    if len(found) > MOST_UNFOLDED:
        raise NotMaterialized(f"more than {MOST_UNFOLDED} rows are not folded")
    return {each: at for each, at in found.items() if not directory.holds(each, at)}


def _rows(
    cache: caching.Cache, name: records.ThreadName, probed: Mapping[str, int]
) -> dict[str, Row]:
    """Rows at their revisions or later ones, reading those that this process does not hold."""
    held: Mapping[str, Row] = cache.get(("rows", name)) or {}
    missing = [
        comment_id
        for comment_id, revision in probed.items()
        if comment_id not in held or held[comment_id].entry.revision < revision
    ]
    fresh = {row.entry.id: row for row in map(row_of, datastore.lookup("Comment", missing))}
    rows = {each: row for each in probed if (row := fresh.get(each) or held.get(each))}
    if missing:
        size = sum(_OVERHEAD + len(row.entry.json) for row in rows.values())
        cache.keep(("rows", name), rows, size)
    return rows


def _probe(name: records.ThreadName) -> datastore.Query:
    return datastore.Query(
        "Comment",
        where=(("thread", "=", models.thread_key_name(name)), ("unfolded", "=", True)),
        order=("revision",),
        projection=("revision",),
        limit=MOST_UNFOLDED + 1,
    )


def _read(
    cache: caching.Cache, name: records.ThreadName, keys: Sequence[str]
) -> list[buckets.Bucket]:
    """Read buckets, those that are not kept in one call."""
    found: dict[str, buckets.Bucket | None] = {
        key: cache.get(("bucket", name, key)) for key in keys
    }
    missing = [key for key, bucket in found.items() if bucket is None]
    for key, bucket in zip(missing, load_buckets(name, missing) if missing else (), strict=True):
        if bucket is None:
            raise Gone
        size = sum(_OVERHEAD + len(entry.json) for entry in bucket.entries)
        cache.keep(("bucket", name, key), bucket, size)
        found[key] = bucket
    return [bucket for bucket in found.values() if bucket is not None]
