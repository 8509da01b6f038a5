"""The materialised thread as this process holds it: directory, buckets and delta, made a view.

Owns what is read for a view and what is kept of it. A view costs one read for the directory and one
for each bucket it needs, both kept in a bounded cache, and a *probe*: a projection of (key,
revision) over the rows that are not folded, which bills one read; if it finds none, that is free by
one reading of the service's price (`emulator/execution/cost_meter.py`). Of those rows, only the
ones are read that neither the directory nor this process holds at that revision. A caller may take
a probe of some `age` in seconds, if this process has asked one that is no older and has not written
to the thread since; 0 always probes.

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

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TypeVar

from comments import errors
from comments.domain import presentation, records
from comments.reading.materialized import (
    buckets,
    deltas,
    directories,
    first_page,
    merged_view,
    ranking,
)
from comments.reading.materialized.deltas import (
    Row,
    changed,
    merged,
    row_of,
)
from comments.reading.materialized.directories import (
    Gone,
    load_buckets,
)
from comments.reading.materialized.view_cache import (
    HOLDINGS,
    OVERHEAD,
    Holdings,
    Kept,
    Moment,
    Parts,
    Recent,
)
from comments.store import commit_counts, reads
from comments.store.models import bucket_rows, comment_rows

T = TypeVar("T")

CACHE_MAX_AGE = 60.0  # seconds that a directory may be used
_TRIES = 3
_PROBES = 10  # until rows did not change while they were read


class NotMaterialized(errors.FlatthreadError):
    """The thread has no directory yet, or rows beyond it that no view is made of, or too many."""


def tag(name: records.ThreadName, age: float = 0.0) -> str | None:
    """The tag that a view of the thread has now, if a probe is enough to know; else None.

    It is that of the last view that this process made, if the probe finds what it found then in the
    same directory. A directory too old to be used, or a change, takes a view: the next one of this
    thread has the probe without asking again, until `forget_probe`.
    """
    held = HOLDINGS.get()
    kept: Kept | None = held.cache.get(("directory", name))
    moment: Moment | None = held.cache.get(("moment", name))
    if kept is None or moment is None or kept.directory.version != moment.version:
        return None
    try:
        probed = _asked(held, name, kept, age)
    except NotMaterialized:
        return None
    if probed != moment.probed or held.clock() - kept.since >= CACHE_MAX_AGE:
        held.hand_on(name, kept, probed)
        return None
    return moment.tag


def forget_probe() -> None:
    """End of a request: what it probed says nothing of the next one's moment."""
    HOLDINGS.get().at_hand.probed = None


def head(name: records.ThreadName, limit: int, age: float = 0.0) -> first_page.Head | None:
    """The head of the thread's directory, if it is the first page of this length now; else None.

    It is while no row has changed that the directory does not hold. What was probed to know that
    is for the `view` that is taken instead, at once: see `tag`.

    Raises:
        NotMaterialized: ask the floor instead.
    """
    held = HOLDINGS.get()
    kept = _directory(held, name)
    found = kept.head
    if found is None or not found.holds(limit):
        return None
    probed = held.handed(name, kept)
    probed = _asked(held, name, kept, age) if probed is None else probed
    if probed or held.clock() - kept.since >= CACHE_MAX_AGE:
        held.hand_on(name, kept, probed)
        return None
    held.cache.keep(("moment", name), Moment(kept.directory.version, {}, found.tag), OVERHEAD)
    return found


def view(name: records.ThreadName, age: float = 0.0) -> merged_view.View:
    """The thread as it is now, or was at most `age` seconds ago.

    Raises:
        NotMaterialized: ask the floor instead.
    """
    held = HOLDINGS.get()
    for _ in range(_TRIES):
        kept = _directory(held, name)
        if not kept.directory.version:
            # Also where an older release stored the rows: the probe does not find those.
            raise NotMaterialized("the thread was never folded")
        rows = _unfolded(held, name, kept, age)
        if any(row.moved for row in rows.values()):
            # Which bucket holds such a row, and where, the next folding puts right.
            raise NotMaterialized("comments have other places than in the buckets")
        if held.clock() - kept.since < CACHE_MAX_AGE:
            made = merged_view.View(
                kept.directory,
                merged(kept.directory, rows.values()),
                lambda keys: _read(held.cache, name, keys),
                changed=changed(kept.directory.content, rows.values()),
            )
            probed = {each: row.entry.revision for each, row in rows.items()}
            moment = Moment(kept.directory.version, probed, made.tag)
            held.cache.keep(("moment", name), moment, OVERHEAD * (1 + len(probed)))
            return made
        held.cache.drop(("directory", name))
    raise errors.Overloaded("the thread took longer to read than it may be kept")


def using(
    name: records.ThreadName, answer: Callable[[merged_view.View], T], *, age: float = 0.0
) -> T:
    """Answer from a view, and once more from a fresh one if its buckets were replaced meanwhile.

    Raises:
        NotMaterialized: ask the floor instead.
    """
    for _ in range(_TRIES):
        try:
            return answer(view(name, age))
        except Gone:
            HOLDINGS.get().cache.drop(("directory", name))
    raise errors.Overloaded("the thread is folded faster than it is read")


def from_rows(rows: Iterable[records.Comment], *, changed: datetime | None) -> merged_view.View:
    """A view of listed rows that were read otherwise. `changed`: the thread's newest change."""
    marks = [
        buckets.Mark(row.sort_hash, row.id, row.revision, presentation.fragment(row), held=False)
        for row in rows
    ]
    return merged_view.View(buckets.Directory(""), marks, lambda _keys: (), changed=changed)


def load_ranking(name: records.ThreadName, key: str, *, is_newest: bool) -> ranking.Ranking | None:
    """A ranking, as this process keeps it; None if it is gone. "" is the one of nothing.

    The newest one, which a directory in use names, is there. An older one is looked for again when
    it was kept for `CACHE_MAX_AGE`, so that its cursors expire in every process.
    """
    if not key:
        return ranking.Ranking()
    held = HOLDINGS.get()
    place = ("ranking", name, key)
    found, since = held.cache.get(place) or (None, 0.0)
    if found is None or not (is_newest or held.clock() - since < CACHE_MAX_AGE):
        now = held.clock()
        row = reads.get(bucket_rows.ranking_key(name, key))
        if row is None:
            held.cache.drop(place)
            return None
        found = found or ranking.decode(row.content)
        held.cache.keep(place, (found, now), OVERHEAD * (1 + len(found.ranked)))
    return found


def load_top(name: records.ThreadName, key: str) -> tuple[ranking.TopRow, ...]:
    """The first rows of a ranking, as this process keeps them.

    Raises:
        Gone: they were replaced meanwhile.
    """
    cache = HOLDINGS.get().cache
    found: tuple[ranking.TopRow, ...] | None = cache.get(("top", name, key))
    if found is None:
        row = reads.get(bucket_rows.bucket_key(name, key))
        if row is None:
            raise Gone
        found = ranking.decode_top(row.content)
        size = sum(OVERHEAD + len(each.entry.json) for each in found)
        cache.keep(("top", name, key), found, size)
    return found


def _directory(held: Holdings, name: records.ThreadName) -> Kept:
    kept: Kept | None = held.cache.get(("directory", name))
    if kept is not None and held.clock() - kept.since < CACHE_MAX_AGE:
        return kept
    since = held.clock()
    directory, head = directories.load(name)
    if kept is not None and kept.directory.version == directory.version:
        directory = kept.directory  # with what was worked out about it
    kept = Kept(directory, head, since)
    held.cache.keep(("directory", name), kept, _weight(directory, head))
    return kept


def _weight(directory: buckets.Directory, head: first_page.Head | None) -> int:
    """About how many bytes both take. A head says it of its directory, which stays packed."""
    if head is None:
        return directory.weight
    return head.weight + OVERHEAD * (1 + len(head.hashes)) + len(head.sent)


def _unfolded(
    held: Holdings, name: records.ThreadName, kept: Kept, age: float
) -> Mapping[str, Row]:
    """The rows that are not folded and that the directory does not hold, all as of one moment.

    A row may change between the probe and its reading, and other rows before it did: with the new
    row but without those, the thread would be one that never was. So the probe is repeated.
    What this request has probed already is not asked again.
    """
    probed = held.handed(name, kept)
    for _ in range(_PROBES):
        probed = _asked(held, name, kept, age) if probed is None else probed
        rows = _rows(held.cache, name, probed) if probed else {}
        if all(each in rows and rows[each].entry.revision == at for each, at in probed.items()):
            return rows
        probed, age = None, 0.0
    raise NotMaterialized("the rows change faster than they are read")


def _asked(held: Holdings, name: records.ThreadName, kept: Kept, age: float) -> Mapping[str, int]:
    """What is probed beside a directory, now or at most `age` seconds ago by this process.

    Raises:
        NotMaterialized: the rows are too many.
    """
    written = commit_counts.of_thread(comment_rows.thread_key_name(name))
    found = held.recent(name, kept, age, written)
    if found is not None:
        return found
    since = held.clock()
    probed = _probed(held.cache, name, kept.directory)
    held.keep_recent(name, Recent(kept, probed, since, written), age)
    return probed


def _probed(cache: Parts, name: records.ThreadName, directory: buckets.Directory) -> dict[str, int]:
    """The revisions of the rows that are not folded and that the directory does not hold, now.

    Raises:
        NotMaterialized: they are too many.
    """
    request = cache.get(("probe", name))
    if request is None:
        request = deltas.probe(name)
        cache.keep(("probe", name), request, OVERHEAD + request.ByteSize())
    results = list(reads.ask(request))
    # The limit cuts results, so results are counted, and not the different rows among them.
    if len(results) > deltas.MOST_UNFOLDED:
        raise NotMaterialized(f"more than {deltas.MOST_UNFOLDED} rows are not folded")
    found = {
        message.key.path[-1].name: message.properties["revision"].integer_value
        for message in results
    }
    return {each: at for each, at in found.items() if not directory.holds(each, at)}


def _rows(cache: Parts, name: records.ThreadName, probed: Mapping[str, int]) -> dict[str, Row]:
    """Rows at their revisions or later ones, reading those that this process does not hold."""
    held: Mapping[str, Row] = cache.get(("rows", name)) or {}
    missing = [
        comment_id
        for comment_id, revision in probed.items()
        if comment_id not in held or held[comment_id].entry.revision < revision
    ]
    fresh = {row.entry.id: row for row in map(row_of, reads.lookup("Comment", missing))}
    rows = {each: row for each in probed if (row := fresh.get(each) or held.get(each))}
    if missing:
        size = sum(OVERHEAD + len(row.entry.json) for row in rows.values())
        cache.keep(("rows", name), rows, size)
    return rows


def _read(cache: Parts, name: records.ThreadName, keys: Sequence[str]) -> list[buckets.Bucket]:
    """Read buckets, those that are not kept in one call."""
    found: dict[str, buckets.Bucket | None] = {
        key: cache.get(("bucket", name, key)) for key in keys
    }
    missing = [key for key, bucket in found.items() if bucket is None]
    for key, bucket in zip(missing, load_buckets(name, missing) if missing else (), strict=True):
        if bucket is None:
            raise Gone
        size = sum(OVERHEAD + len(entry.json) for entry in bucket.entries)
        cache.keep(("bucket", name, key), bucket, size)
        found[key] = bucket
    return [bucket for bucket in found.values() if bucket is not None]
