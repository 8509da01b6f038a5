"""Compare a thread's materialized data with its comments, row by row.

The materialized data is the directory with its buckets and its tail, the ranking with its first
rows, and the stored first page. Every page that is made from this data must equal the ordered
query. A change that did not go through `tree` is missing from the data. The caller reads the rows
and calls `load` in the same snapshot.

A thread that only `tree` and the compactor have changed has no mismatch at any moment, no matter
which rows are flagged and which steps of a compaction are done.
"""

import functools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from comments import errors
from comments.domain import presentation, records
from comments.domain.ids import sorthash
from comments.reading.materialized import (
    buckets,
    deltas,
    directories,
    first_page,
    merged_view,
    ranking,
    time_index,
)
from comments.store import reads
from comments.store.models import bucket_rows, comment_rows
from comments.threads import thread_terms

T = TypeVar("T")
# The fields with which a comment's row records the state of the buckets; the delta cannot correct a
# mismatch in these fields.
OF_BUCKETS = frozenset({"shelved", "page sort_hash"})


class Mismatch(NamedTuple):
    """A difference. `comment` is "" if the difference does not concern a single comment."""

    comment: str
    field: str
    stored: object
    expected: object


class Materialized(NamedTuple):
    """The stored data of a thread, except its comments. Unreadable entities are None."""

    thread: comment_rows.ThreadRow | None
    stored: directories.StoredDirectory | None
    held: Mapping[str, buckets.Bucket | None]
    ranking: ranking.Ranking | None
    top: tuple[ranking.TopRow, ...] | None

    def load(self, keys: Sequence[str]) -> list[buckets.Bucket]:
        """Return the buckets with these keys, for a view. All of these buckets are readable."""
        return [bucket for bucket in map(self.held.get, keys) if bucket is not None]


def load(name: records.ThreadName) -> Materialized:
    """Read the stored data of a thread, except its comments, in the current snapshot."""
    thread = reads.get(comment_rows.thread_key(name))
    try:
        stored = directories.load(name)
        content = stored.directory.content
    except (errors.Overloaded, *directories.UNREADABLE):
        return Materialized(thread, None, {}, None, None)
    keys = [line.key for line in content.lines]
    held = dict(zip(keys, _buckets(name, keys), strict=True))
    best = content.best
    if best is None:
        return Materialized(thread, stored, held, ranking.Ranking(), ())
    ranked = reads.get(bucket_rows.ranking_key(name, best.ranking))
    top = reads.get(bucket_rows.bucket_key(name, best.top))
    return Materialized(
        thread,
        stored,
        held,
        None if ranked is None else _or_none(ranking.decode, ranked.content),
        None if top is None else _or_none(ranking.decode_top, top.content),
    )


def _buckets(name: records.ThreadName, keys: Sequence[str]) -> Iterator[buckets.Bucket | None]:
    for row in reads.read([bucket_rows.bucket_key(name, key) for key in keys]):
        yield None if row is None else _or_none(buckets.decode_bucket, bucket_rows.content(row))


def mismatches(
    scheme: sorthash.Scheme, materialized: Materialized, rows: Sequence[deltas.DeltaRow]
) -> list[Mismatch]:
    """List the differences between the materialized data and all rows of the thread."""
    if materialized.stored is None:
        if any(row.flagged and row.moved for row in rows):
            return []  # The next compaction replaces the directory
        return [Mismatch("", "directory", "unreadable", "readable")]
    directory = materialized.stored.directory
    if not directory.version:
        return []
    fresh = deltas.changes(directory, rows)
    if any(row.moved for row in fresh):
        return []  # Readers use the ordered query, and the next compaction uses only the rows
    lost = [
        key for key, bucket in materialized.held.items() if bucket is None or not bucket.entries
    ]
    if lost:
        return [Mismatch("", "bucket", f"{key} is missing or unreadable", key) for key in lost]
    return list(_Comparison(scheme, materialized, materialized.stored, rows, fresh).mismatches())


class _Comparison:
    """The comparison of a readable directory with the rows. `fresh` is the delta."""

    def __init__(
        self,
        scheme: sorthash.Scheme,
        materialized: Materialized,
        stored: directories.StoredDirectory,
        rows: Sequence[deltas.DeltaRow],
        fresh: Sequence[deltas.DeltaRow],
    ) -> None:
        self._scheme = scheme
        self._materialized = materialized
        self._stored = stored
        self._directory = stored.directory
        self._content = stored.directory.content
        self._rows = rows
        self._fresh = {row.entry.id: row for row in fresh}
        self._listed = sorted(
            (row.entry for row in rows if row.is_listed), key=lambda entry: entry.sort_hash
        )

    def mismatches(self) -> Iterator[Mismatch]:
        """Yield all differences."""
        view = merged_view.View(
            self._directory,
            deltas.merge(self._directory, self._fresh.values()),
            self._materialized.load,
            changed=deltas.newest_change(self._content, self._fresh.values()),
            shifts=tuple(deltas.shifts(self._directory, self._fresh.values())),
        )
        yield from self._pages(view)
        yield from self._memberships()
        yield from self._lines()
        yield from self._summary(view)
        yield from self._best()

    def _pages(self, view: merged_view.View) -> Iterator[Mismatch]:
        """Compare the rows of the merged view with the listed rows."""
        shown: dict[str, buckets.ListedEntry] = {}
        for entry in view.rows():
            if entry.id in shown:
                yield Mismatch(entry.id, "page", "shown twice", "shown once")
            shown[entry.id] = entry
        for entry in self._listed:
            known = shown.pop(entry.id, None)
            if known is None:
                yield Mismatch(entry.id, "page", "not shown", "shown")
            elif known != entry:
                yield from _members(known, entry)
        for comment_id in shown:
            yield Mismatch(comment_id, "page", "shown", "not shown")

    def _memberships(self) -> Iterator[Mismatch]:
        """Check that rows and marks describe the content of the buckets correctly."""
        held = {
            entry.id
            for bucket in self._materialized.held.values()
            if bucket
            for entry in bucket.entries
        }
        tail = {mark.id: mark.held for mark in self._content.tail}
        clearing = self._directory.rows_to_clear
        for row in self._rows:
            comment_id = row.entry.id
            if comment_id in tail:
                flags = tail[comment_id]
            else:
                flags = clearing[comment_id].is_listed if comment_id in clearing else row.shelved
            if flags != (comment_id in held):
                yield Mismatch(comment_id, "shelved", flags, comment_id in held)

    def _lines(self) -> Iterator[Mismatch]:
        previous = ""
        for line in self._directory.lines:
            entries = self._materialized.load([line.key])[0].entries
            made = buckets.line(self._scheme, line.key, entries, previous)
            if _plain(made) != _plain(line):
                yield Mismatch("", "directory", _plain(line), _plain(made))
            previous = line.last

    def _summary(self, view: merged_view.View) -> Iterator[Mismatch]:
        """Compare the values of the whole thread, and the stored first page."""
        pinned = [entry.id for entry in self._listed if presentation.is_pinned(entry.json)]
        times = [row.created for row in self._rows if row.is_listed and row.created]
        pairs: dict[str, tuple[object, object]] = {
            "total": (view.total, len(self._listed)),
            "changed": (view.changed, records.newest(row.changed for row in self._rows)),
            "times": (view.times, view.times and time_index.recount(view.times, times)),
            "pinned": ([entry.id for entry in view.pinned_entries], pinned),
        }
        if self._stored.terms is not None:
            pairs["terms"] = (self._stored.terms, thread_terms.of(self._materialized.thread))
        about, thread = self._content.about, self._materialized.thread
        # A change of the heading flags a comment that readers see, if any.
        if not self._fresh and self._listed and thread and about and about.by is not None:
            heading = records.ThreadHeading(thread.title, thread.url, thread.named_by)
            pairs["heading"] = (about, heading)
        pairs |= self._first_page()
        for field, pair in pairs.items():
            if pair[0] != pair[1]:
                yield Mismatch("", field, *pair)

    def _first_page(self) -> dict[str, tuple[object, object]]:
        page = self._stored.page
        made = first_page.of(self._alone(changed=True))
        if page is None or made is None:
            return {}
        fields = [field for field in page.__struct_fields__ if field != "weight"]
        return {
            f"first page {field}": (getattr(page, field), getattr(made, field)) for field in fields
        }

    def _best(self) -> Iterator[Mismatch]:
        """Compare the ranking with the votes, except for votes in the delta."""
        ranked, top = self._materialized.ranking, self._materialized.top
        if ranked is None or top is None:
            yield Mismatch("", "ranking", "missing or unreadable", "readable")
            return
        root_of = functools.partial(buckets.root_of, self._scheme)
        votes = {discussion.sort_hash: (0, 0) for discussion in ranked.ranked}
        votes |= {row.entry.sort_hash: row.votes for row in self._rows}
        waiting = {row.entry.sort_hash for row in self._fresh.values()}
        settled = {
            sort_hash: votes[sort_hash]
            for sort_hash in votes
            if sort_hash not in waiting and root_of(sort_hash) == sort_hash
        }
        made = ranking.update(ranked, settled)
        if made != ranked:
            yield Mismatch("", "ranking", *_first_difference(ranked.ranked, made.ranked))
        best = self._content.best
        if best is not None and best.ranked not in {(), ranking.listed_hashes(ranked)}:
            yield Mismatch(
                "", "ranking", *_first_difference(best.ranked, ranking.listed_hashes(ranked))
            )
        shown = tuple(ranking.top(self._alone(), self._scheme, ranked)) if ranked.ranked else ()
        if shown != top:
            yield Mismatch("", "best page", *_first_difference(top, shown))

    def _alone(self, *, changed: bool = False) -> merged_view.View:
        """Return the view of the directory without the delta."""
        when = self._content.changed if changed else None
        return merged_view.View(
            self._directory, self._content.tail, self._materialized.load, changed=when
        )


def _members(stored: buckets.ListedEntry, row: buckets.ListedEntry) -> Iterator[Mismatch]:
    """Yield the members in which a materialized row differs from the stored row."""
    if stored.sort_hash != row.sort_hash:
        yield Mismatch(row.id, "page sort_hash", stored.sort_hash, row.sort_hash)
    was, now = json.loads(stored.json), json.loads(row.json)
    for member in {**now, **was}:
        if was.get(member) != now.get(member):
            yield Mismatch(row.id, f"page {member}", was.get(member), now.get(member))
    if was == now and stored.revision != row.revision:
        yield Mismatch(row.id, "page revision", stored.revision, row.revision)


def _plain(line: buckets.BucketSummary) -> tuple[object, ...]:
    return (line.key, line.first, line.last, line.count, line.heads, line.roots)


def _first_difference(stored: Sequence[object], made: Sequence[object]) -> tuple[object, object]:
    for pair in zip(stored, made, strict=False):
        if pair[0] != pair[1]:
            return pair
    return len(stored), len(made)


def _or_none(decode: Callable[[bytes], T], content: bytes) -> T | None:
    try:
        return decode(content)
    except directories.UNREADABLE:
        return None
