"""Declared counters stay exact in random histories of changes, declarations and deliveries.

Counters are declared, changed and removed between posts, imports, retractions, votes and changes of
categories, in any order with deliveries and with the job that counts existing comments. Each commit
has room for few numbers only. A comparison never finds a difference. In the end, every number
equals a count of the comments (`declared_oracle`).
"""

import contextlib
from datetime import timedelta
from unittest import mock

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from comments import errors
from comments.domain import records
from comments.domain.counters import declared_counters
from comments.domain.records import Status
from comments.events import backlog, dispatcher, outbox
from comments.posting import own_comment
from comments.sites import site_settings
from comments.store import connection
from comments.store.models import comment_rows
from comments.tree.bulk import recategorize
from comments.tree.counters.declared import declarations, declared_backfill
from comments.upkeep import wiring
from comments.upkeep.integrity import recount
from datastore_emulator import inprocess
from tests.support import programs
from tests.support.histories import counter_oracle, declared_oracle
from tests.support.threads import sample_threads, sample_votes

pytestmark = [pytest.mark.slow, pytest.mark.embedded]

INDEXES = programs.ROOT / "index.yaml"
NOW = sample_threads.START + timedelta(days=9)
NAMES = ("news", "sport", "travel")
DECLARED = [
    declared_counters.declare("site"),
    declared_counters.declare("site", ["status = approved"], [], "score"),
    declared_counters.declare("site", ["up >= 1", "reply = no"], ["category", "author"]),
    declared_counters.declare("each", [], ["category", "day", "thread", "author"]),
    declared_counters.declare("each", ["status != retracted"], ["category", "thread"], "up"),
    declared_counters.declare("held", ["status = pending"], ["day"]),
]
threads = st.sampled_from(["page", "other"])
people = st.sampled_from(["ann", "bob"])
sets = st.lists(st.sampled_from(NAMES), unique=True, max_size=3).map(
    lambda names: (*sorted(names),)
)


class Counters(RuleBasedStateMachine):
    """A state machine with one site, two threads, two authors and six declarations."""

    def __init__(self) -> None:
        super().__init__()
        self._engine = inprocess.open_engine(None, indexes=INDEXES, history=0)
        store = connection.Store(inprocess.Channel(self._engine), project="test")
        backlog.BACKLOG.of(store)
        self._context = contextlib.ExitStack()
        self._context.enter_context(store.context())
        for module, name, most in (
            (recategorize, "AT_ONCE", 2),
            (declared_backfill, "AT_ONCE", 2),
            (outbox, "MOST_ROWS", 16),
        ):
            self._context.enter_context(mock.patch.object(module, name, most))
        self._own: list[records.Comment] = []
        self._told: list[str] = []
        self._number = 0

    @initialize()
    def add_site(self) -> None:
        site = site_settings.add(
            "demo", ["https://a.example"], scheme=sample_threads.SETTINGS.scheme, now=NOW
        )
        self._site = sample_threads.filing(site, *NAMES)

    @rule(declared=st.sampled_from(DECLARED))
    def declare(self, declared: declared_counters.Declaration) -> None:
        try:
            declarations.add("demo", declared, now=NOW)
        except errors.Conflict:
            declarations.change("demo", declared, now=NOW)

    @rule(name=st.sampled_from([each.name for each in DECLARED]))
    def remove(self, name: str) -> None:
        with contextlib.suppress(errors.NotFound):
            declarations.remove("demo", name, now=NOW)

    @rule()
    def backfill(self) -> None:
        declared_backfill.complete("demo")

    @rule(thread=threads, author=people, day=st.integers(0, 1), names=sets, data=st.data())
    def post(
        self, thread: str, author: str, day: int, names: tuple[str, ...], data: st.DataObject
    ) -> None:
        above = [None, *(row.id for row in self._own if row.thread == thread)]
        self._number += 1
        row = sample_threads.post(
            self._site,
            f"{self._number}",
            data.draw(st.sampled_from(above)),
            thread=thread,
            author=records.Author(author, id=f"g:{author}"),
            now=sample_threads.START + timedelta(days=day),
            categories=names,
        )
        self._own.append(row)

    @rule(thread=threads, statuses=st.lists(st.sampled_from(list(Status)), min_size=1, max_size=4))
    def bring(self, thread: str, statuses: list[Status]) -> None:
        """Import comments of any status."""
        nodes = []
        for status in statuses:
            self._number += 1
            nodes.append(
                records.ImportedComment(
                    id=comment_rows.comment_id(f"{self._number}".encode().ljust(16, b".")),
                    reply_to=None,
                    author=records.Author("eve", id="i:eve" if self._number % 2 else ""),
                    body="text",
                    html="text",
                    renderer="",
                    status=status,
                    created=sample_threads.START,
                    source="test",
                    up=1,
                )
            )
        sample_threads.store_imported(records.ThreadName("demo", thread), *nodes)

    @precondition(lambda self: self._own)
    @rule(voter=people, data=st.data())
    def vote(self, voter: str, data: st.DataObject) -> None:
        sample_votes.vote(data.draw(st.sampled_from(self._own)), f"{voter} votes")
        sample_votes.count_waiting()

    @precondition(lambda self: self._own)
    @rule(data=st.data())
    def retract(self, data: st.DataObject) -> None:
        row = self._own.pop(data.draw(st.integers(0, len(self._own) - 1)))
        own_comment.retract(row.id, author_id=row.author.id, revision=None, now=NOW)

    @rule(thread=threads, names=sets)
    def file(self, thread: str, names: tuple[str, ...]) -> None:
        with contextlib.suppress(errors.NotFound):
            recategorize.change(records.ThreadName("demo", thread), names, now=NOW)

    @rule(data=st.data())
    def deliver(self, data: st.DataObject) -> None:
        waiting = counter_oracle.events()
        if waiting:
            some = data.draw(st.lists(st.sampled_from(sorted(waiting)), min_size=1, max_size=4))
            dispatcher.deliver([*some, *self._told[-2:], *some], now=NOW, handlers=wiring.HANDLERS)
            self._told += some

    @invariant()
    def nothing_drifts(self) -> None:
        assert recount.site("demo", tell=print, fixes=False) == 0

    def teardown(self) -> None:
        try:
            recategorize.finish(now=NOW, steps=100)
            declared_backfill.complete("demo")
            while events := counter_oracle.events():
                dispatcher.deliver(events, now=NOW, handlers=wiring.HANDLERS)
            declared_oracle.assert_counted()
        finally:
            self._context.close()
            self._engine.close()


TestCounters = Counters.TestCase
TestCounters.settings = settings(max_examples=8, stateful_step_count=30)
