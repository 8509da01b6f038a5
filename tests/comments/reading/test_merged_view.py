"""A view returns the same rows as the whole list, however the list is split into buckets."""

import itertools

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from comments.domain.ids import sorthash
from comments.reading.materialized import buckets, merged_view

SCHEME = sorthash.Scheme(width=1, levels=6)


@st.composite
def threads(draw: st.DrawFn) -> list[str]:
    """Draw the hashes of a random tree in the order in which the tree grew."""
    hashes: list[str] = []
    counters: dict[str, int] = {}
    for pick in draw(st.lists(st.integers(0, 200), max_size=60)):
        parent = hashes[-1 - pick % len(hashes)] if hashes and pick % 4 else ""
        if parent and sorthash.level(SCHEME, parent) == SCHEME.levels - 1:
            parent = ""
        counters[parent] = counters.get(parent, 0 if parent else -1) + 1
        hashes.append(sorthash.child(SCHEME, parent, counters[parent]))
    return hashes


class Stored:
    """Rows in buckets, new and changed rows in marks, and the resulting list."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.rows: dict[str, buckets.ListedEntry] = {}
        self.marks: list[buckets.ChangedEntry] = []
        self.loads: list[list[str]] = []
        self.stored: dict[str, bytes] = {}
        held = []
        self.hashes = draw(threads())
        for place, sort_hash in enumerate(self.hashes):
            entry = buckets.ListedEntry(sort_hash, f"id{place}", 1, b'{"n":%d}' % place)
            fate = draw(st.integers(0, 9))
            if fate < 6:
                held.append(entry)
            if fate < 4:
                self.rows[sort_hash] = entry
            elif fate == 4:
                self._mark(entry, b'{"edited":1}', held=True)
            elif fate == 5:
                self._mark(entry, b"", held=True)
            elif fate == 7:
                self._mark(entry, b"", held=False)
            else:
                self._mark(entry, entry.json, held=False)
        self.directory = self._shelved(sorted(held, key=lambda e: e.sort_hash), draw)

    def _mark(self, entry: buckets.ListedEntry, json: bytes, *, held: bool) -> None:
        mark = buckets.ChangedEntry(entry.sort_hash, entry.id, 2, json, held)
        self.marks.append(mark)
        if json:
            self.rows[entry.sort_hash] = mark.entry

    def _shelved(self, held: list[buckets.ListedEntry], draw: st.DrawFn) -> buckets.Directory:
        lines, previous = [], ""
        while held:
            size = draw(st.integers(1, 9))
            run, held = held[:size], held[size:]
            key = f"k-{len(lines)}"
            self.stored[key] = buckets.encode_bucket(run)
            lines.append(buckets.line(SCHEME, key, run, previous))
            previous = run[-1].sort_hash
        content = buckets.encode_content(buckets.DirectoryContent(lines=tuple(lines)))
        return buckets.Directory("v", buckets.decode_content(content))

    def view(self) -> merged_view.View:
        self.loads.clear()
        return merged_view.View(self.directory, self.marks, self._load)

    def _load(self, keys: object) -> list[buckets.Bucket]:
        wanted = list(keys)  # type: ignore[call-overload]
        self.loads.append(wanted)
        return [buckets.decode_bucket(self.stored[key]) for key in wanted]

    @property
    def listed(self) -> list[buckets.ListedEntry]:
        return [self.rows[sort_hash] for sort_hash in sorted(self.rows)]


stored = st.composite(Stored)


@given(stored())
def test_a_view_returns_every_row_once_in_order(made: Stored) -> None:
    view = made.view()
    assert list(view.rows()) == made.listed
    assert len(made.loads) <= 1
    assert view.total == len(made.listed)


@given(stored(), st.integers(1, 12), st.integers(0, 60))
def test_a_run_of_rows_equals_a_slice_of_the_whole_list(
    made: Stored, limit: int, pick: int
) -> None:
    low = ([*made.hashes, "", sorthash.ABOVE])[pick % (len(made.hashes) + 2)]
    found = itertools.islice(made.view().rows(low, limit=limit), limit)
    assert list(found) == [row for row in made.listed if row.sort_hash >= low][:limit]


@given(stored())
def test_counting_a_subtree_reads_only_its_own_bucket(made: Stored) -> None:
    for sort_hash in made.hashes:
        below = [row for row in made.listed if row.sort_hash.startswith(sort_hash)]
        view = made.view()
        assert view.below(sort_hash) == len([row for row in below if row.sort_hash != sort_hash])
        assert sum(map(len, made.loads)) <= 1
        subtree = sorthash.subtree_range(sort_hash)
        assert list(made.view().rows(*subtree)) == below


@given(stored())
def test_a_position_is_the_number_of_earlier_rows(made: Stored) -> None:
    for sort_hash in [*made.hashes, "", sorthash.ABOVE]:
        before = sum(row.sort_hash < sort_hash for row in made.listed)
        assert made.view().position(sort_hash) == before


@given(stored())
def test_discussions_and_their_sizes_need_no_bucket(made: Stored) -> None:
    view = made.view()
    sizes = {root: view.size_of_root(root) for root in view.roots(SCHEME)}
    assert not made.loads
    found: dict[str, int] = {}
    for row in made.listed:
        root = buckets.root_of(SCHEME, row.sort_hash)
        found[root] = found.get(root, 0) + 1
    assert {root: size for root, size in sizes.items() if size} == found
    assert list(sizes) == sorted(sizes)


@pytest.mark.parametrize("limit", [1, 10, 100])
def test_a_page_reads_its_buckets_in_two_calls(limit: int) -> None:
    entries = [
        buckets.ListedEntry(sorthash.encode_segment(SCHEME, n), f"id{n}", 1, b"{}")
        for n in range(1000)
    ]
    lines, kept = [], {}
    for first in range(0, 1000, 10):
        run = entries[first : first + 10]
        kept[f"k{first}"] = buckets.Bucket(tuple(run))
        lines.append(buckets.line(SCHEME, f"k{first}", run, entries[first - 1].sort_hash))
    calls: list[int] = []

    def load(keys: object) -> list[buckets.Bucket]:
        wanted = list(keys)  # type: ignore[call-overload]
        calls.append(len(wanted))
        return [kept[key] for key in wanted]

    directory = buckets.Directory("v", buckets.DirectoryContent(lines=tuple(lines)))
    view = merged_view.View(directory, [], load)
    start = entries[505].sort_hash
    assert list(itertools.islice(view.rows(start, limit=limit), limit)) == entries[505:][:limit]
    assert len(calls) <= 2
    assert sum(calls) <= 2 + limit // 10


def test_everything_a_view_shows_changes_its_tag() -> None:
    mark = buckets.ChangedEntry("AA", "id", 1, b"{}", held=False)
    changes = ({"id": "other"}, {"revision": 2}, {"json": b""}, {"held": True})
    marks = [[], [mark], *([msgspec.structs.replace(mark, **change)] for change in changes)]
    tags = {
        merged_view.View(buckets.Directory(version), each, lambda _keys: ()).tag
        for version in ("v", "w")
        for each in marks
    }
    assert len(tags) == 2 * len(marks)
