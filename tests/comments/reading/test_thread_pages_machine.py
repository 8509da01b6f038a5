"""Each page equals the ordered query's result at one moment while the page is created.

The state machine has a store with batches of random sizes, a thread with many uncompacted rows, and
a reader. Between the reader's calls, other actors post, edit, retract and compact.

READING_EXAMPLES sets the number of histories; the default takes a few seconds.
"""

import contextlib
import json
import os
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from comments import errors
from comments.domain import presentation, records
from comments.posting import own_comment
from comments.reading import full_thread, listings, thread_pages
from comments.reading.compaction import compactor
from comments.reading.materialized import view_cache
from comments.tree.lists import ordered_query
from datastore_emulator import faults
from tests.support import datastores, prepared_stores
from tests.support.threads import compaction, reader_processes, sample_threads

pytestmark = [pytest.mark.slow, pytest.mark.embedded]

EXAMPLES = int(os.environ.get("READING_EXAMPLES", "12"))
MOST_UNFOLDED = 6  # Uncompacted rows that a view may read; the thread soon has more
SCHEME, SECRET = sample_threads.SETTINGS.scheme, sample_threads.SETTINGS.secret
NAME = records.ThreadName("demo", "page")
# A decoded response with a page.
Shown = dict[str, Any]
# The kind of change and the comment's index.
Change = tuple[str, int]
CHANGES = st.tuples(
    st.sampled_from(["none", "post", "edit", "edit", "edit", "retract", "compact"]),
    st.integers(0, 12),
)


class Machine(RuleBasedStateMachine):
    """A state machine: a reader, and writers that act before each of its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.stack = contextlib.ExitStack()
        self.engine = self.stack.enter_context(prepared_stores.opened(None))
        self.reader = reader_processes.Reader(
            datastores.Embedded(self.engine), seen=self._before_call
        )
        self.writer = reader_processes.Reader(datastores.Embedded(self.engine))
        self.comments: list[records.Comment] = []
        self.waiting: list[Change] = []
        self.moments: list[Shown] = []
        self.most = self.step = 0
        self.site = self.writer.do(prepared_stores.demo)
        self.writer.do(partial(self._change, "post", 0))
        self.writer.do(lambda: compaction.whole(NAME))
        for number in range(MOST_UNFOLDED + 2):
            self.writer.do(partial(self._change, "post", number))

    def teardown(self) -> None:
        self.stack.close()

    @rule(changes=st.lists(CHANGES, min_size=3, max_size=6))
    def write(self, changes: Sequence[Change]) -> None:
        """Change the thread while no read is in progress."""
        for change in changes:
            self.writer.do(partial(self._change, *change))

    @rule()
    def clear(self) -> None:
        """Compact; clear the flags when no process can use the previous directory any longer."""
        self.reader.now += compactor.GRACE
        self.writer.do(partial(self._change, "clear", 0))

    @rule(
        order=st.sampled_from([*thread_pages.ListingOrder, None]),
        most=st.integers(2, 9),
        changes=st.lists(CHANGES, min_size=2, max_size=8),
    )
    def read(
        self, order: thread_pages.ListingOrder | None, most: int, changes: Sequence[Change]
    ) -> None:
        """Read a page or the whole thread, with one change before each call."""
        self.moments, self.most, self.waiting = [self._now()], most, list(changes)
        self._cut()
        try:
            shown = self.reader.do(partial(_shown, order))
        finally:
            self.engine.install_faults(None)
            self.waiting = []
        assert any(_is_alike(order, shown, moment) for moment in self.moments)

    def _before_call(self, _method: str, _request: object) -> None:
        change = self.waiting.pop(0) if self.waiting else ("none", 0)
        if change[0] != "none":
            self.engine.install_faults(None)
            self.writer.do(partial(self._change, *change))
            self.moments.append(self._now())
            self._cut()

    def _cut(self) -> None:
        """End batches after a random number of results, with a new seed after each change."""
        self.step += 1
        cut = {"rpc": "RunQuery", "batch": self.most}
        self.engine.install_faults(faults.Plan.parse({"seed": self.step, "rules": [cut]}))

    def _now(self) -> Shown:
        """Return the thread from the ordered query, read in one batch."""
        return self.writer.do(_by_the_ordered_query)

    def _change(self, verb: str, place: int) -> None:
        self.step += 1
        text, now = f"c{self.step}", sample_threads.START + timedelta(minutes=self.step)
        chosen = self.comments[place % len(self.comments)] if self.comments else None
        with contextlib.suppress(errors.FlatthreadError):  # The comment is retracted or too deep
            if verb == "post" or chosen is None:
                parent = chosen.id if chosen is not None and place % 3 else None
                self.comments.append(sample_threads.post(self.site, text, parent, now=now))
            elif verb == "edit":
                _edit(chosen, text, now)
            elif verb == "retract":
                own_comment.retract(chosen.id, author_id=chosen.author.id, revision=None, now=now)
            elif verb == "compact":
                compactor.compact(SCHEME, NAME)
            elif verb == "clear":
                compaction.whole(NAME)


def _edit(comment: records.Comment, body: str, now: datetime) -> None:
    own_comment.edit(
        comment.id,
        author_id=comment.author.id,
        body=body,
        revision=None,
        settings=sample_threads.SETTINGS,
        now=now,
    )


def _shown(order: thread_pages.ListingOrder | None) -> Shown:
    """Return a page that contains the thread, or the whole-thread response if `order` is None."""
    if order is None:
        return _decoded(full_thread.WholeThread(NAME, SECRET).page().json())
    asked = thread_pages.PageRequest(200, None, SECRET)
    return _decoded(listings.page(SCHEME, NAME, asked, order=order).json())


def _by_the_ordered_query() -> Shown:
    rows, below, total = reader_processes.ordered_thread(NAME)
    places = presentation.consecutive_places(1, total)
    shown = presentation.Rows(tuple(rows), tuple(below), places)
    none = presentation.Rows((), ())
    page = presentation.ThreadPage(shown, None, total, ordered_query.last_change(NAME), none)
    return _decoded(presentation.with_ends(page, places).json())


def _decoded(page: bytes) -> Shown:
    found: Shown = json.loads(page)
    return found


def _is_alike(order: thread_pages.ListingOrder | None, shown: Shown, moment: Shown) -> bool:
    """Check whether a page equals the thread at one moment; compare the order only for `thread`."""
    if order is thread_pages.ListingOrder.THREAD:
        return shown == moment
    if order is None:
        return _without_places(shown) == _without_places(moment)
    return _by_id(shown) == _by_id(moment)


def _without_places(page: Shown) -> Shown:
    """Return a page without the places of its comments, which a whole list does not contain."""
    bare = [
        {name: value for name, value in each.items() if name not in ("position", "subtree")}
        for each in page["comments"]
    ]
    return page | {"comments": bare}


def _by_id(page: Shown) -> Shown:
    page = _without_places(page)
    return page | {"comments": {each["id"]: each for each in page["comments"]}}


def test_every_page_is_from_one_moment_however_batches_end_and_rows_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compaction.small_buckets(monkeypatch)
    monkeypatch.setattr(view_cache, "MOST_UNCOMPACTED", MOST_UNFOLDED)
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=12,
            suppress_health_check=list(HealthCheck),
        ),
    )
