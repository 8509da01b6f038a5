"""What a process keeps of the threads of a store, and reading what it does not.

Owns one bounded cache of each process. Its keys begin with what they hold:

    directory  a thread's directory with its first page, and when it was asked for
    bucket, top, ranking  what a directory names: never changes under its key
    rows       the thread's rows beside the directory, as they were read last
    moment     what the last view was made of, and its tag
    recent     the last probe, for sites with a `freshness`

Invariants:

1. A directory is used for `CACHE_MAX_AGE` at most, counted from before it was asked for, by a clock
   that also runs while the machine sleeps. The compactor clears the flag of a row only when every
   directory that does not hold the row is older than that.
2. A directory is read before the probe, so the probe is never behind it. A probe counts only beside
   the directory that it was asked with: both together are the thread as of the probe's moment.
3. A probe is used again only if this process has committed nothing to the thread since before it
   was asked, and only for the time that the caller gives, counted from before it was asked.
4. Rows are used at the revision that the probe found, or at a later one.
"""

import threading
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import msgspec

from comments import errors
from comments.domain import records
from comments.reading.materialized import buckets, deltas, directories, first_page, ranking
from comments.store import caches, commit_counts, per_process, reads
from comments.store.models import bucket_rows, comment_rows

CACHE_MAX_AGE = 60.0  # seconds that a directory may be used
CACHE_BYTES = 64 * 1024 * 1024  # of one process
OVERHEAD = 200  # bytes of Python around an entry, roughly
MOST_UNFOLDED = 500  # flagged rows that a view takes; more, and the ordered query is cheaper
_PROBES = 10  # until rows did not change while they were read

# It counts the time that the machine sleeps; so does the one that macOS has instead.
_CLOCK: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class NotMaterialized(errors.FlatthreadError):
    """The thread has no directory yet, or rows beyond it that no view is made of, or too many."""


def seconds() -> float:
    """Seconds of the clock that ages are told by."""
    return time.clock_gettime(_CLOCK)


class Kept(msgspec.Struct, frozen=True):
    """A directory with its head, and when it was asked for."""

    directory: buckets.Directory
    head: first_page.Head | None
    since: float

    @property
    def weight(self) -> int:
        """About how many bytes both take. A head knows it of its directory, which stays packed."""
        if self.head is None:
            return self.directory.weight
        return self.head.weight + OVERHEAD * (1 + len(self.head.hashes)) + len(self.head.sent)


class Moment(msgspec.Struct, frozen=True):
    """What a view was made of, and its tag: while a probe finds the same, the tag is the same."""

    version: str
    probed: Mapping[str, int]
    tag: str


class Recent(msgspec.Struct, frozen=True):
    """A probe for later requests: when it was asked, and `commit_counts.of_thread` at that time."""

    kept: Kept
    probed: Mapping[str, int]
    since: float
    written: int


class _AtHand(threading.local):
    """A probe that this thread has just asked, until its request is over."""

    name: records.ThreadName | None = None
    kept: Kept | None = None
    probed: Mapping[str, int] | None = None


class Holdings:
    """What a process keeps of the threads of a store.

    Args:
        clock: seconds, monotonic, counting also the time the machine sleeps.
        most: bytes that are kept.
    """

    def __init__(self, clock: Callable[[], float] = seconds, most: int = CACHE_BYTES) -> None:
        self.clock = clock
        self.cache = caches.Cache[Hashable, Any](most)
        self._at_hand = _AtHand()
        self._lock = threading.Lock()

    def directory(self, name: records.ThreadName) -> Kept:
        """The thread's directory, young enough to be used."""
        kept: Kept | None = self.cache.get(("directory", name))
        since = self.clock()
        if kept is not None and since - kept.since < CACHE_MAX_AGE:
            return kept
        directory, head = directories.load(name)
        if kept is not None and kept.directory.version == directory.version:
            directory = kept.directory  # with what was worked out about it
        kept = Kept(directory, head, since)
        self.cache.keep(("directory", name), kept, kept.weight)
        return kept

    def forget(self, name: records.ThreadName) -> None:
        """Read the thread's directory anew: its buckets were replaced, or it is too old."""
        self.cache.drop(("directory", name))

    def hand_on(self, name: records.ThreadName, kept: Kept, probed: Mapping[str, int]) -> None:
        """Leave what was probed to the next `probe` of this thread, until `forget_probe`."""
        hand = self._at_hand
        hand.name, hand.kept, hand.probed = name, kept, probed

    def forget_probe(self) -> None:
        """End of a request: what it probed says nothing of the next one's moment."""
        self._at_hand.probed = None

    def probe(self, name: records.ThreadName, kept: Kept, age: float) -> Mapping[str, int]:
        """The revisions of the rows that the directory does not hold: now, or `age` seconds ago.

        Raises:
            NotMaterialized: they are too many.
        """
        hand = self._at_hand
        handed, hand.probed = hand.probed, None
        if handed is not None and hand.name == name and hand.kept is kept:
            return handed
        recent: Recent | None = self.cache.get(("recent", name))
        thread = comment_rows.thread_key_name(name)
        written, since = commit_counts.of_thread(thread), self.clock()
        is_usable = recent is not None and recent.kept is kept and recent.written == written
        if recent is not None and is_usable and since - recent.since < age:
            return recent.probed
        results = list(reads.ask(reads.varied(_PROBE.get(), thread)))
        # The limit cuts results, so results are counted, and not the different rows among them.
        if len(results) > MOST_UNFOLDED:
            raise NotMaterialized(f"more than {MOST_UNFOLDED} rows are not folded")
        probed = {
            message.key.path[-1].name: message.properties["revision"].integer_value
            for message in results
        }
        taken_in = kept.directory.taken_in
        probed = {each: at for each, at in probed.items() if taken_in.get(each) != at}
        if age or self.cache.get(("recent", name)) is not None:
            self._keep_recent(name, Recent(kept, probed, since, written))
        return probed

    def _keep_recent(self, name: records.ThreadName, recent: Recent) -> None:
        """Keep a probe for later requests.

        An exact request replaces a probe that is kept, or the next reader would see an older thread
        than somebody has seen here. A slow one must not put an older probe in a newer one's place.
        """
        with self._lock:
            known: Recent | None = self.cache.get(("recent", name))
            if known is None or known.since <= recent.since:
                self.cache.keep(("recent", name), recent, OVERHEAD * (1 + len(recent.probed)))

    def unfolded(
        self, name: records.ThreadName, kept: Kept, age: float
    ) -> Mapping[str, deltas.Row]:
        """The rows that the directory does not hold, all as of one moment.

        A row may change between the probe and its reading, and other rows before it did: with the
        new row but without those, the thread would be one that never was. So the probe is repeated.

        Raises:
            NotMaterialized: they are too many, or change faster than they are read.
        """
        for _ in range(_PROBES):
            probed = self.probe(name, kept, age)
            rows = self._rows(name, probed) if probed else {}
            if all(each in rows and rows[each].entry.revision == probed[each] for each in probed):
                return rows
            age = 0.0
        raise NotMaterialized("the rows change faster than they are read")

    def _rows(self, name: records.ThreadName, probed: Mapping[str, int]) -> dict[str, deltas.Row]:
        """Rows at their revisions or later ones, reading those that this process does not hold."""
        held: Mapping[str, deltas.Row] = self.cache.get(("rows", name)) or {}
        missing = [
            comment_id
            for comment_id, revision in probed.items()
            if comment_id not in held or held[comment_id].entry.revision < revision
        ]
        found = map(deltas.row_of, reads.lookup("Comment", missing))
        fresh = {row.entry.id: row for row in found}
        rows = {each: row for each in probed if (row := fresh.get(each) or held.get(each))}
        if missing:
            size = sum(OVERHEAD + len(row.entry.json) for row in rows.values())
            self.cache.keep(("rows", name), rows, size)
        return rows

    def load_buckets(self, name: records.ThreadName, keys: Sequence[str]) -> list[buckets.Bucket]:
        """Buckets by key; those that are not kept are read in one call.

        Raises:
            directories.Gone: one was replaced meanwhile.
        """
        found: dict[str, buckets.Bucket | None] = {
            key: self.cache.get(("bucket", name, key)) for key in keys
        }
        missing = [key for key, bucket in found.items() if bucket is None]
        loaded = directories.load_buckets(name, missing) if missing else ()
        for key, bucket in zip(missing, loaded, strict=True):
            if bucket is None:
                raise directories.Gone
            size = sum(OVERHEAD + len(entry.json) for entry in bucket.entries)
            self.cache.keep(("bucket", name, key), bucket, size)
            found[key] = bucket
        return [bucket for bucket in found.values() if bucket is not None]

    def load_ranking(
        self, name: records.ThreadName, key: str, *, is_newest: bool
    ) -> ranking.Ranking | None:
        """A ranking; None if it is gone. "" is the one of nothing.

        The newest one, which a directory in use names, is there. An older one is looked for again
        when it was kept for `CACHE_MAX_AGE`, so that its cursors expire in every process.
        """
        if not key:
            return ranking.Ranking()
        place = ("ranking", name, key)
        found, since = self.cache.get(place) or (None, 0.0)
        if found is None or not (is_newest or self.clock() - since < CACHE_MAX_AGE):
            now = self.clock()
            row = reads.get(bucket_rows.ranking_key(name, key))
            if row is None:
                self.cache.drop(place)
                return None
            found = found or ranking.decode(row.content)
            self.cache.keep(place, (found, now), OVERHEAD * (1 + len(found.ranked)))
        return found

    def load_top(self, name: records.ThreadName, key: str) -> tuple[ranking.TopRow, ...]:
        """The first rows of a ranking.

        Raises:
            directories.Gone: they were replaced meanwhile.
        """
        found: tuple[ranking.TopRow, ...] | None = self.cache.get(("top", name, key))
        if found is None:
            row = reads.get(bucket_rows.bucket_key(name, key))
            if row is None:
                raise directories.Gone
            found = ranking.decode_top(row.content)
            size = sum(OVERHEAD + len(each.entry.json) for each in found)
            self.cache.keep(("top", name, key), found, size)
        return found


HOLDINGS = per_process.PerProcess(Holdings)


def _probe() -> Any:
    """The request which rows of a thread are flagged, at which revision.

    It is for any thread, and for one row more than a view takes.
    """
    query = reads.Query(
        "Comment",
        where=(("thread", "=", ""), ("unfolded", "=", True)),
        order=("revision",),
        projection=("revision",),
        limit=MOST_UNFOLDED + 1,
    )
    return reads.prepared(query)


_PROBE = per_process.PerProcess(_probe)
