"""Cache directories, buckets, rankings, rows and probes in the process; load missing entries.

Each process has one bounded cache. The first part of a key names the cached data:

    directory  a thread's directory with its first page, and the time before it was read
    bucket, top, ranking  entities that a directory names; an entity never changes
    rows       the rows of the thread's delta, as last read
    moment     the directory version and the probed rows of the last view, and its tag
    recent     the last probe, for sites with a `freshness`

Invariant: A process uses a directory for at most `CACHE_MAX_AGE` seconds after it began to read the
directory, by a clock that also runs while the machine sleeps, because the compactor clears a row's
flag only when every directory without that row is older
(test_compactor_processes.py::test_a_process_stopped_past_its_directorys_age_answers_from_a_new_one).

The directory is read before the probe, so the probe is never older than the directory. A probe is
valid only together with its directory, because only the two together show the thread as of the
probe's moment. A probe is reused only if this process has committed nothing to the thread since the
probe started. The caller must also accept the probe's age, which is counted from its start. Rows
are used at the revision that the probe found, or at a later revision.
"""

import threading
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import msgspec

from comments import errors
from comments.domain import records
from comments.reading.materialized import buckets, deltas, directories, first_page, ranking
from comments.store import reads
from comments.store.memory import caches, commit_counts, per_process
from comments.store.models import bucket_rows, comment_rows

CACHE_MAX_AGE = 60.0  # Seconds for which a directory may be used.
CACHE_BYTES = 64 * 1024 * 1024  # Maximum bytes per process.
OVERHEAD = 200  # Approximate size of an entry's Python objects, in bytes.
MOST_UNCOMPACTED = 500  # Maximum flagged rows in a view; with more, the ordered query is cheaper.
_PROBES = 10  # Attempts to read all rows before one of them changes.

# CLOCK_BOOTTIME also runs while the machine sleeps. macOS lacks CLOCK_BOOTTIME, but its
# CLOCK_MONOTONIC does the same.
_CLOCK: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class NotMaterialized(errors.FlatthreadError):
    """The thread has no directory yet, too many changed rows, or rows with a new sort hash."""


def seconds() -> float:
    """Return the time in seconds, by the clock that measures ages."""
    return time.clock_gettime(_CLOCK)


class KeptDirectory(msgspec.Struct, frozen=True):
    """A directory with its head, the time when its read began, the thread's terms and its probe."""

    directory: buckets.Directory
    page: first_page.FirstPage | None
    since: float
    terms: records.ThreadTerms | None
    probe: reads.PreparedQuery

    @property
    def weight(self) -> int:
        """Return the approximate memory use in bytes.

        A head stores the weight of its directory, so the directory need not be decoded.
        """
        if self.page is None:
            return self.directory.weight
        return self.page.weight + OVERHEAD * (1 + len(self.page.hashes)) + len(self.page.sent)


class Moment(msgspec.Struct, frozen=True):
    """The directory version, probed rows and tag of a view.

    The tag is current as long as a probe finds the same rows.
    """

    version: str
    probed: Mapping[str, int]
    tag: str


class RecentProbe(msgspec.Struct, frozen=True):
    """A probe with its start time, and `commit_counts.of_thread` at that time."""

    kept: KeptDirectory
    probed: Mapping[str, int]
    since: float
    written: int


class _AtHand(threading.local):
    """The result of this OS thread's last probe, kept until the end of the request."""

    name: records.ThreadName | None = None
    kept: KeptDirectory | None = None
    probed: Mapping[str, int] | None = None


def _probe(name: records.ThreadName) -> reads.PreparedQuery:
    """Return the query for the keys and revisions of a thread's flagged rows."""
    return reads.prepare(
        reads.Query(
            "Comment",
            where=(("thread", "=", comment_rows.thread_key_name(name)), ("unfolded", "=", True)),
            order=("revision",),
            projection=("revision",),
            limit=MOST_UNCOMPACTED
            + 1,  # One row more than a view's limit, to detect when there are too many rows
        )
    )


class Holdings:
    """A process's cache for the threads of one store.

    Args:
        clock: returns monotonic seconds, including the time while the machine sleeps.
        most: the cache's limit in bytes.
    """

    def __init__(self, clock: Callable[[], float] = seconds, most: int = CACHE_BYTES) -> None:
        self.clock = clock
        self.cache = caches.Cache[Hashable, Any](most)
        self._at_hand = _AtHand()
        self._lock = threading.Lock()

    def directory(self, name: records.ThreadName) -> KeptDirectory:
        """Return the thread's directory, and read it if the cached copy is missing or too old."""
        kept: KeptDirectory | None = self.cache.get(("directory", name))
        since = self.clock()
        if kept is not None and since - kept.since < CACHE_MAX_AGE:
            return kept
        directory, page, terms = directories.load(name)
        if kept is not None and kept.directory.version == directory.version:
            directory = kept.directory  # The cached directory is already decoded
        kept = KeptDirectory(directory, page, since, terms, _probe(name))
        self.cache.keep(("directory", name), kept, kept.weight)
        return kept

    def forget(self, name: records.ThreadName) -> None:
        """Drop the thread's directory, for example because its buckets have been replaced."""
        self.cache.drop(("directory", name))

    def hand_on(
        self, name: records.ThreadName, kept: KeptDirectory, probed: Mapping[str, int]
    ) -> None:
        """Keep a result for the next call of `probe` in this OS thread, until `forget_probe`."""
        hand = self._at_hand
        hand.name, hand.kept, hand.probed = name, kept, probed

    def forget_probe(self) -> None:
        """Drop the kept probe at the end of a request. The next request must not use this probe."""
        self._at_hand.probed = None

    def probe(self, name: records.ThreadName, kept: KeptDirectory, age: float) -> Mapping[str, int]:
        """Return, by comment id, the revisions of the rows that differ from the directory.

        The result is at most `age` seconds old.

        Raises:
            NotMaterialized: more than `MOST_UNCOMPACTED` rows are flagged.
        """
        hand = self._at_hand
        handed, hand.probed = hand.probed, None
        if handed is not None and hand.name == name and hand.kept is kept:
            return handed
        recent: RecentProbe | None = self.cache.get(("recent", name))
        thread = comment_rows.thread_key_name(name)
        written, since = commit_counts.of_thread(thread), self.clock()
        is_usable = recent is not None and recent.kept is kept and recent.written == written
        if recent is not None and is_usable and since - recent.since < age:
            return recent.probed
        results = list(reads.fetch(kept.probe))
        # The query's limit applies to results, so count results, not distinct rows.
        if len(results) > MOST_UNCOMPACTED:
            raise NotMaterialized(f"more than {MOST_UNCOMPACTED} rows are not compacted")
        probed = {
            message.key.path[-1].name: message.properties["revision"].integer_value
            for message in results
        }
        taken_in = kept.directory.compacted_revisions
        probed = {
            comment_id: at for comment_id, at in probed.items() if taken_in.get(comment_id) != at
        }
        if age or self.cache.get(("recent", name)) is not None:
            self._keep_recent(name, RecentProbe(kept, probed, since, written))
        return probed

    def _keep_recent(self, name: records.ThreadName, recent: RecentProbe) -> None:
        """Keep a probe for later requests, unless a newer probe is already kept."""
        # A request that sends a new probe must also replace the kept probe. Otherwise, a later
        # reader could see an older state than an earlier reader.
        with self._lock:
            known: RecentProbe | None = self.cache.get(("recent", name))
            if known is None or known.since <= recent.since:
                self.cache.keep(("recent", name), recent, OVERHEAD * (1 + len(recent.probed)))

    def changed_rows(
        self, name: records.ThreadName, kept: KeptDirectory, age: float
    ) -> Mapping[str, deltas.DeltaRow]:
        """Return the rows that differ from the directory, all as of one moment.

        Raises:
            NotMaterialized: there are too many rows, or they change faster than they are read.
        """
        # After the probe, one row may change, and then a second row that is not read yet. A view
        # with only the second change would show a state that never existed, so probe again.
        for _ in range(_PROBES):
            probed = self.probe(name, kept, age)
            rows = self._rows(name, probed) if probed else {}
            if all(
                comment_id in rows and rows[comment_id].entry.revision == probed[comment_id]
                for comment_id in probed
            ):
                return rows
            age = 0.0
        raise NotMaterialized("the rows change faster than they are read")

    def _rows(
        self, name: records.ThreadName, probed: Mapping[str, int]
    ) -> dict[str, deltas.DeltaRow]:
        """Return rows at these or later revisions, and read the rows that are not in the cache."""
        held: Mapping[str, deltas.DeltaRow] = self.cache.get(("rows", name)) or {}
        missing = [
            comment_id
            for comment_id, revision in probed.items()
            if comment_id not in held or held[comment_id].entry.revision < revision
        ]
        read = map(deltas.row_of, reads.lookup("Comment", missing))
        fresh = {row.entry.id: row for row in read}
        rows = {
            comment_id: row
            for comment_id in probed
            if (row := fresh.get(comment_id) or held.get(comment_id))
        }
        if missing:
            size = sum(OVERHEAD + len(row.entry.json) for row in rows.values())
            self.cache.keep(("rows", name), rows, size)
        return rows

    def load_buckets(self, name: records.ThreadName, keys: Sequence[str]) -> list[buckets.Bucket]:
        """Return buckets by key, and load missing buckets in one call.

        Raises:
            directories.DirectoryOutdated: a bucket has been replaced.
        """
        cached: dict[str, buckets.Bucket | None] = {
            key: self.cache.get(("bucket", name, key)) for key in keys
        }
        missing = [key for key, bucket in cached.items() if bucket is None]
        loaded = directories.load_buckets(name, missing) if missing else ()
        for key, bucket in zip(missing, loaded, strict=True):
            if bucket is None:
                raise directories.DirectoryOutdated
            size = sum(OVERHEAD + len(entry.json) for entry in bucket.entries)
            self.cache.keep(("bucket", name, key), bucket, size)
            cached[key] = bucket
        return [bucket for bucket in cached.values() if bucket is not None]

    def load_ranking(
        self, name: records.ThreadName, key: str, *, is_newest: bool
    ) -> ranking.Ranking | None:
        """Return a ranking, or None if it no longer exists. The key "" gives an empty ranking.

        The newest ranking always exists, because the current directory names it. An older ranking
        is read again after `CACHE_MAX_AGE` in the cache, so its cursors expire in every process.
        """
        if not key:
            return ranking.Ranking()
        place = ("ranking", name, key)
        ranked, since = self.cache.get(place) or (None, 0.0)
        if ranked is None or not (is_newest or self.clock() - since < CACHE_MAX_AGE):
            now = self.clock()
            row = reads.get(bucket_rows.ranking_key(name, key))
            if row is None:
                self.cache.drop(place)
                return None
            ranked = ranked or ranking.decode(row.content)
            self.cache.keep(place, (ranked, now), OVERHEAD * (1 + len(ranked.ranked)))
        return ranked

    def load_top(self, name: records.ThreadName, key: str) -> tuple[ranking.TopRow, ...]:
        """Return the first rows of a ranking.

        Raises:
            directories.DirectoryOutdated: these rows have been replaced.
        """
        top: tuple[ranking.TopRow, ...] | None = self.cache.get(("top", name, key))
        if top is None:
            row = reads.get(bucket_rows.bucket_key(name, key))
            if row is None:
                raise directories.DirectoryOutdated
            top = ranking.decode_top(row.content)
            size = sum(OVERHEAD + len(row.entry.json) for row in top)
            self.cache.keep(("top", name, key), top, size)
        return top


HOLDINGS = per_process.PerProcess(Holdings)
