"""Positions, page ranges and subtrees equal those of a naive walk of the stored parent links.

The state machine posts, retracts, moderates, votes and compacts, with and without clearing flags.
Between these changes, it reads pages by offset, by cursor, around comments and below comments, from
buckets with uncompacted rows and from the ordered query, and compares every row.

POSITION_EXAMPLES sets the number of histories; the default takes a few seconds.
"""

import contextlib
import json
import os
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from comments import errors
from comments.domain import presentation, records
from comments.moderation import decisions
from comments.reading import listings
from comments.reading.compaction import compactor
from comments.reading.materialized import ranking, thread_view, view_cache
from comments.reading.thread_pages import ListingOrder, PageRequest
from comments.store import reads
from comments.store.models import comment_rows, conversion
from comments.tree.lists import ordered_query
from tests.support import datastores, prepared_stores
from tests.support.threads import compaction, reader_processes, sample_threads, sample_votes

EXAMPLES = int(os.environ.get("POSITION_EXAMPLES", "10"))
MOST_UNFOLDED = 7  # With more uncompacted rows, the ordered query answers
SCHEME, SECRET = sample_threads.SETTINGS.scheme, sample_threads.SETTINGS.secret
NAME = records.ThreadName("demo", "page")
ACTOR = records.Actor("cli", "cli")
FLAT = {ListingOrder.OLDEST, ListingOrder.NEWEST}
Shown = dict[str, Any]


class Naive(NamedTuple):
    """The thread as readers see it: ids in reading order, and values by id."""

    order: list[str]
    rows: dict[str, records.Comment]
    sizes: dict[str, int]

    def subtree(self, comment: str) -> list[int]:
        start = 1 + self.order.index(comment)
        return [start, start + self.sizes[comment]]

    def discussions(self) -> list[list[str]]:
        found: list[list[str]] = []
        for each in self.order:
            if self.rows[each].parent is None:
                found.append([])
            found[-1].append(each)
        return found

    def listed(self, order: ListingOrder, ranked: list[str]) -> list[str]:
        """Return the ids in an order. `ranked` contains the sort hashes of the ranked roots."""
        whole = self.discussions()
        if order is ListingOrder.RECENT:
            whole.reverse()
        if order is ListingOrder.BEST:
            hashes = [self.rows[each[0]].sort_hash for each in whole]
            best = [whole[hashes.index(each)] for each in ranked if each in hashes]
            whole = best + [each for each in whole if each not in best]
        found = [comment for each in whole for comment in each]
        if order in FLAT:
            found.sort(key=lambda each: (self.rows[each].created, self.rows[each].sort_hash))
        return found[::-1] if order is ListingOrder.NEWEST else found


def naive() -> Naive:
    """Walk the stored comments by their parent links and numbers."""
    where = (("thread", "=", comment_rows.thread_key_name(NAME)),)
    stored = map(conversion.comment_from_message, reads.fetch(reads.Query("Comment", where=where)))
    rows = {row.id: row for row in stored}
    order: list[str] = []
    sizes: dict[str, int] = {}

    def walk(parent: str | None) -> int:
        count = 0
        children = [row for row in rows.values() if row.parent == parent]
        for row in sorted(children, key=lambda row: row.number):
            place = len(order)
            order.append(row.id)
            below = walk(row.id)
            if below or row.status is records.Status.APPROVED:
                sizes[row.id] = below
                count += 1 + below
            else:
                del order[place:]
        return count

    walk(None)
    return Naive(order, rows, sizes)


class Machine(RuleBasedStateMachine):
    """A state machine: a process that writes, and another one that reads."""

    def __init__(self) -> None:
        super().__init__()
        self.stack = contextlib.ExitStack()
        engine = self.stack.enter_context(prepared_stores.opened(None))
        self.writer, self.reader = (
            reader_processes.Reader(datastores.Embedded(engine)) for _ in range(2)
        )
        self.comments: list[records.Comment] = []
        self.step = 0
        self.site = self.writer.do(prepared_stores.demo)

    def teardown(self) -> None:
        self.stack.close()

    @initialize(places=st.lists(st.integers(0, 9), min_size=6, max_size=14))
    def begin(self, places: list[int]) -> None:
        for place in (0, *places):
            self.post(place)
        for place in places[:3]:
            self.vote(place, 1)
        self.compact(clears=True)

    @rule(place=st.integers(0, 30))
    def post(self, place: int) -> None:
        """Post a comment: a root, or an answer to an earlier comment."""
        self.step += 1
        # Several comments have the same time.
        now = sample_threads.START + timedelta(minutes=self.step // 2)
        parent = (
            self.comments[place % len(self.comments)].id if self.comments and place % 4 else None
        )
        post = partial(sample_threads.post, self.site, f"c{self.step}", parent, now=now)
        self._attempt(lambda: self.comments.append(post()))

    @rule(place=st.integers(0, 30))
    def retract(self, place: int) -> None:
        self._attempt(lambda: sample_threads.retract(self._chosen(place)))

    @rule(place=st.integers(0, 30), verb=st.sampled_from(["hide", "hold", "approve", "restore"]))
    def moderate(self, place: int, verb: str) -> None:
        self.step += 1
        now = sample_threads.START + timedelta(minutes=self.step)
        chosen, wanted = self._chosen(place), records.Verb(verb)
        self._attempt(lambda: decisions.decide("demo", chosen.id, wanted, ACTOR, now=now))

    @rule(place=st.integers(0, 30), value=st.sampled_from([1, 1, -1]))
    def vote(self, place: int, value: int) -> None:
        """Vote on the first comment of a discussion, which determines its rank."""
        self.step += 1
        roots = [each for each in self.comments if each.parent is None]

        def cast() -> None:
            sample_votes.vote(roots[place % len(roots)], f"voter {self.step}", value)
            sample_votes.count_waiting()

        self._attempt(cast)

    @rule(clears=st.booleans())
    def compact(self, *, clears: bool) -> None:
        if clears:
            self.reader.now += compactor.GRACE
            self._attempt(lambda: compaction.whole(NAME))
        else:
            self._attempt(lambda: compactor.compact(SCHEME, NAME))

    @rule(limit=st.integers(1, 9), part=st.floats(0, 1.1))
    def read_by_offset(self, limit: int, part: float) -> None:
        """Read a page in each order after an offset, and the page that its cursor leads to."""
        for order in ListingOrder:
            self._read_by_offset(order, limit, part)

    def _read_by_offset(self, order: ListingOrder, limit: int, part: float) -> None:
        found, listed = self._now(order)
        offset = int(part * len(listed))
        if offset and offset >= len(listed):
            with pytest.raises(errors.BadInput, match="beyond-the-end"):
                self._page(order, PageRequest(limit, None, SECRET, offset))
            return
        page = self._page(order, PageRequest(limit, None, SECRET, offset))
        self._compare(page, found, listed, order, listed[offset : offset + limit])
        assert (page["cursor"] is None) == (offset + limit >= len(listed))
        if page["cursor"] is not None:
            page = self._page(order, PageRequest(limit, page["cursor"], SECRET))
            offset += limit
            self._compare(page, found, listed, order, listed[offset : offset + limit])

    @rule(place=st.integers(0, 30), limit=st.integers(1, 9))
    def read_around_and_below(self, place: int, limit: int) -> None:
        """Read the page around a comment, its replies and its children."""
        found, listed = self._now(ListingOrder.THREAD)
        if not listed:
            return
        chosen = listed[place % len(listed)]
        asked = PageRequest(limit, None, SECRET)
        slug = found.rows[chosen].slug
        around = self._read(lambda: listings.around(SCHEME, NAME, slug, asked))
        assert chosen in [row["id"] for row in around["comments"]]
        start = listed.index(around["comments"][0]["id"])
        shown = listed[start : start + len(around["comments"])]
        self._compare(around, found, listed, ListingOrder.THREAD, shown)
        first = 1 + listed.index(chosen)
        below = listed[first : first + found.sizes[chosen]]
        while True:
            page = self._read(partial(listings.replies, chosen, asked))
            self._compare(page, found, listed, ListingOrder.THREAD, below[:limit])
            below = below[limit:]
            if page["cursor"] is None:
                break
            asked = PageRequest(limit, page["cursor"], SECRET)
        assert below == []
        for parent, name in ((chosen, chosen), (None, ordered_query.ROOTS)):
            self._read_level(found, listed, parent, name, limit)

    def _read_level(
        self, found: Naive, listed: list[str], parent: str | None, name: str, limit: int
    ) -> None:
        level = [each for each in listed if found.rows[each].parent == parent]
        asked = PageRequest(limit, None, SECRET)
        for start in range(0, len(level), limit):
            page = self._page(ListingOrder.THREAD, asked, parent=name)
            self._compare(page, found, listed, ListingOrder.THREAD, level[start : start + limit])
            asked = PageRequest(limit, page["cursor"], SECRET)

    def _compare(
        self,
        page: Shown,
        found: Naive,
        listed: list[str],
        order: ListingOrder,
        expected: list[str],
    ) -> None:
        rows = page["comments"]
        assert [row["id"] for row in rows] == expected
        positions = [1 + listed.index(each) for each in expected]
        assert [row["position"] for row in rows] == positions
        for row in rows:
            assert row["replies"] == found.sizes[row["id"]]
            assert row["subtree"] == (None if order in FLAT else found.subtree(row["id"]))
        ends = (positions[0], positions[-1]) if positions else (None, None)
        assert (page["first"], page["last"], page["total"]) == (*ends, len(listed))

    def _now(self, order: ListingOrder) -> tuple[Naive, list[str]]:
        found = self.writer.do(naive)
        return found, found.listed(order, self.reader.do(_ranked))

    def _page(self, order: ListingOrder, asked: PageRequest, **more: str) -> Shown:
        return self._read(lambda: listings.page(SCHEME, NAME, asked, order=order, **more))

    def _read(self, make: Callable[[], presentation.ThreadPage]) -> Shown:
        found: Shown = json.loads(self.reader.do(make).json())
        return found

    def _chosen(self, place: int) -> records.Comment:
        return self.comments[place % len(self.comments)]

    def _attempt(self, change: Callable[[], object]) -> None:
        # The comment may be retracted, have a different status already, or be too deep.
        with contextlib.suppress(errors.FlatthreadError, AssertionError):
            self.writer.do(change)


def _ranked() -> list[str]:
    """Return the sort hashes of the ranked discussions, best first."""
    try:
        best = thread_view.view(NAME).directory.content.best
    except view_cache.NotMaterialized:
        return []
    if best is None:
        return []
    found = view_cache.HOLDINGS.get().load_ranking(NAME, best.ranking, is_newest=True)
    return [each.sort_hash for each in found.ranked] if found else []


@pytest.mark.embedded
@pytest.mark.slow
def test_positions_ranges_and_subtrees_equal_a_naive_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    compaction.small_buckets(monkeypatch)
    monkeypatch.setattr(view_cache, "MOST_UNCOMPACTED", MOST_UNFOLDED)
    # Longer rankings are read from their own entity.
    monkeypatch.setattr(ranking, "MOST_LISTED", 2)
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=20,
            suppress_health_check=list(HealthCheck),
        ),
    )
