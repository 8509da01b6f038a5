"""Write the buckets and the ranking for one attempt to compact a thread.

Each entity's key contains the token of the attempt, so the key is new, and no directory names it
yet. Each entity is written only while the directory from which the attempt started is current.
"""

import functools
import secrets
from collections.abc import Iterator, Sequence

from comments.domain import records
from comments.domain.ids import sorthash
from comments.reading.compaction import bucket_layout
from comments.reading.materialized import (
    buckets,
    deltas,
    directories,
    merged_view,
    ranking,
    view_cache,
)
from comments.store import ownership, reads, transactions
from comments.store.models import bucket_rows

_OWNER = "compactor"


class BucketWriter:
    """Write entities for one attempt, based on one directory version."""

    def __init__(
        self, name: records.ThreadName, version: str, token: str, written: list[str]
    ) -> None:
        self._name = name
        self._version = version
        self.token = token
        self.written = written

    def write(self, content: bytes) -> str:
        """Write a bucket and return its key.

        Raises:
            directories.DirectoryOutdated: another process has switched the directory.
        """
        key = f"{self.token}-{len(self.written)}"
        self.store(
            bucket_rows.BucketRow(key=bucket_rows.bucket_key(self._name, key), content=content)
        )
        self.written.append(key)
        return key

    def store(self, row: bucket_rows.BucketRow | bucket_rows.RankingRow) -> None:
        """Write an entity for this attempt if the base directory is still current.

        Raises:
            directories.DirectoryOutdated: another process has switched the directory.
        """

        def body() -> None:
            # Without this check, a process that was paused could write erased text again, after the
            # last search for unreferenced buckets.
            stored = reads.get(bucket_rows.directory_key(self._name))
            if self._version != ("" if stored is None else stored.version):
                raise directories.DirectoryOutdated
            transactions.apply(ownership.Writes(_OWNER, put=(row,)))

        transactions.transaction(body)


class CompactionAttempt(BucketWriter):
    """One attempt to compact a thread."""

    def __init__(
        self,
        scheme: sorthash.Scheme,
        name: records.ThreadName,
        base: buckets.Directory,
        version: str,
    ) -> None:
        super().__init__(name, version, secrets.token_hex(10), [])
        self._scheme = scheme
        self._base = base

    def rewrite_buckets(
        self, sizes: bucket_layout.Sizes, marks: Sequence[buckets.ChangedEntry], urgent: set[str]
    ) -> tuple[tuple[buckets.BucketSummary, ...], tuple[buckets.ChangedEntry, ...]]:
        """Rewrite buckets where this is worthwhile. Return the new directory's lines and tail.

        Raises:
            directories.DirectoryOutdated: a bucket has been replaced.
        """
        by_line: dict[int, list[buckets.ChangedEntry]] = {}
        for mark in marks:
            by_line.setdefault(self._base.line_of(mark.sort_hash), []).append(mark)
        chosen = set(bucket_layout.buckets_to_rewrite(sizes, by_line, urgent))
        lines: list[buckets.BucketSummary] = []
        for place, line in enumerate(self._base.lines):
            if place in chosen:
                previous = lines[-1].last if lines else ""
                lines += self._rewrite_bucket(sizes, line, by_line[place], previous)
            else:
                lines.append(line)
        if -1 in chosen:  # The thread has no buckets yet
            lines += self._rewrite_bucket(sizes, None, by_line[-1], "")
        tail = [
            mark
            for place, group in by_line.items()
            if place not in chosen
            for mark in group
            if mark.json or mark.held
        ]
        return tuple(lines), tuple(tail)

    def rank(
        self, content: buckets.DirectoryContent, fresh: Sequence[deltas.DeltaRow]
    ) -> buckets.RankingKeys | None:
        """Write the ranking and its first rows if the changes affect either of them.

        Returns:
            The keys of the ranking and of its first rows, or None if no discussion is ranked.

        Raises:
            directories.DirectoryOutdated: a bucket has been replaced.
        """
        scheme, best = self._scheme, self._base.content.best
        known = (
            None
            if best is None
            else view_cache.HOLDINGS.get().load_ranking(self._name, best.ranking, is_newest=True)
        )
        hashes = {row.entry.sort_hash: row.votes for row in fresh}
        votes = {
            sort_hash: hashes[sort_hash]
            for sort_hash in hashes
            if buckets.root_of(scheme, sort_hash) == sort_hash
        }
        ranked = ranking.update(known or ranking.Ranking(), votes)
        if not ranked.ranked:
            return None
        if best is not None and ranked == known:
            top = view_cache.HOLDINGS.get().load_top(self._name, best.top)
            if not ranking.may_affect_top(scheme, ranked, top, hashes):
                return best
            key = best.ranking
        else:
            key = self._write_ranking(ranked)
        directory = buckets.Directory(self.token, content)
        view = merged_view.View(directory, content.tail, functools.partial(load_all, self._name))
        rows = self.write(ranking.encode_top(ranking.top(view, scheme, ranked)))
        return buckets.RankingKeys(key, rows, ranking.listed_hashes(ranked))

    def _write_ranking(self, ranked: ranking.Ranking) -> str:
        key = bucket_rows.ranking_key(self._name, self.token)
        self.store(bucket_rows.RankingRow(key=key, content=ranking.encode(ranked)))
        return self.token

    def _rewrite_bucket(
        self,
        sizes: bucket_layout.Sizes,
        line: buckets.BucketSummary | None,
        marks: Sequence[buckets.ChangedEntry],
        previous: str,
    ) -> Iterator[buckets.BucketSummary]:
        entries = {}
        if line is not None:
            (bucket,) = directories.load_buckets(self._name, [line.key])
            if bucket is None:
                raise directories.DirectoryOutdated
            entries = {entry.id: entry for entry in bucket.entries}
        for mark in marks:
            entries.pop(mark.id, None)
            if mark.json:
                entries[mark.id] = mark.entry
        for run in bucket_layout.runs(
            sizes, sorted(entries.values(), key=lambda entry: entry.sort_hash)
        ):
            yield buckets.line(self._scheme, self.write(buckets.encode_bucket(run)), run, previous)
            previous = run[-1].sort_hash


def load_all(name: records.ThreadName, keys: Sequence[str]) -> list[buckets.Bucket]:
    """Read the buckets with these keys, all of which must exist.

    Raises:
        directories.DirectoryOutdated: a bucket has been replaced.
    """
    loaded = [bucket for bucket in directories.load_buckets(name, keys) if bucket is not None]
    if len(loaded) < len(keys):
        raise directories.DirectoryOutdated
    return loaded
