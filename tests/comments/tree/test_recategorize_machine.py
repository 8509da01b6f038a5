"""Counters and lists by category are right in random histories of posts, imports and changes.

Histories consist of posts, imports, category changes, category moves and deliveries. They also
contain retractions. Recategorizations run step by step, restart, or stay unfinished; events are
delivered in any order, some of them twice. A recount never finds a fault. In the end, every counter
equals the sum over the comments in their threads' categories (`counter_oracle`).
"""

from datetime import timedelta
from unittest import mock

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from comments import errors
from comments.domain import records
from comments.domain.records import Status, Verb
from comments.events import backlog, dispatcher
from comments.moderation import decisions
from comments.moderation.policy import category_moves
from comments.posting import own_comment
from comments.sites import site_settings
from comments.store import connection, reads
from comments.store.models import comment_rows
from comments.tree.bulk import recategorize
from comments.upkeep import wiring
from comments.upkeep.integrity import recount
from datastore_emulator import inprocess
from tests.support import programs
from tests.support.histories import category_oracle, counter_oracle
from tests.support.threads import sample_threads

pytestmark = [pytest.mark.slow, pytest.mark.embedded]

INDEXES = programs.ROOT / "index.yaml"
NOW = sample_threads.START + timedelta(days=9)
NAMES = ("news", "sport", "sport/football", "sport/football/women", "sport/rugby")
threads = st.sampled_from(["page", "other"])
people = st.sampled_from(["ann", "bob"])
sets = st.lists(st.sampled_from(NAMES), unique=True, max_size=3).map(
    lambda names: (*sorted(names),)
)


class Categories(RuleBasedStateMachine):
    """A state machine with one site, two threads, two authors and two days."""

    def __init__(self) -> None:
        super().__init__()
        self._engine = inprocess.open_engine(None, indexes=INDEXES, history=0)
        store = connection.Store(inprocess.Channel(self._engine), project="test")
        backlog.BACKLOG.of(store)
        self._context = store.context()
        self._context.__enter__()
        # Threads are short here, so with the product's step size, each change would need only one
        # commit.
        self._small = mock.patch.object(recategorize, "AT_ONCE", 2)
        self._small.start()
        self._own: list[records.Comment] = []
        self._told: list[str] = []
        self._number = 0

    @initialize()
    def add_site(self) -> None:
        site = site_settings.add(
            "demo", ["https://a.example"], scheme=sample_threads.SETTINGS.scheme, now=NOW
        )
        self._site = sample_threads.filing(site, *NAMES)

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

    @rule(thread=threads, status=st.sampled_from(list(Status)), author=people | st.just(""))
    def bring(self, thread: str, status: Status, author: str) -> None:
        """Import a comment of any status."""
        self._number += 1
        node = records.ImportedComment(
            id=comment_rows.comment_id(f"{self._number}".encode().ljust(16, b".")),
            reply_to=None,
            author=records.Author(author, id=author and f"g:{author}"),
            body="text",
            html="text",
            renderer="",
            status=status,
            created=sample_threads.START,
            source="test",
            up=1,
        )
        sample_threads.store_imported(records.ThreadName("demo", thread), node)

    @precondition(lambda self: self._own)
    @rule(data=st.data())
    def retract(self, data: st.DataObject) -> None:
        row = self._own.pop(data.draw(st.integers(0, len(self._own) - 1)))
        own_comment.retract(row.id, author_id=row.author.id, revision=None, now=NOW)

    @precondition(lambda self: self._own)
    @rule(data=st.data(), verb=st.sampled_from([Verb.SPAM, Verb.HOLD, Verb.APPROVE]))
    def decide(self, data: st.DataObject, verb: Verb) -> None:
        row = data.draw(st.sampled_from(self._own))
        decisions.decide_many("demo", [row.id], verb, sample_threads.ADA, now=NOW)

    @rule(thread=threads, names=sets)
    def begin(self, thread: str, names: tuple[str, ...]) -> None:
        try:
            recategorize.begin(records.ThreadName("demo", thread), names)
        except errors.NotFound:
            assert not any(row.thread == thread for row in self._own)

    @rule(old=st.sampled_from(NAMES), new=st.sampled_from(NAMES))
    def move(self, old: str, new: str) -> None:
        """Move a category below another one, or make it the same as the other one."""
        site, filed = site_settings.get("demo"), category_oracle.filed("demo")
        try:
            category_moves.move(site, old, new, sample_threads.ADA, now=NOW)
        except errors.BadInput:
            assert category_oracle.filed("demo") == filed
        else:
            assert category_oracle.filed("demo") == category_oracle.moved(filed, old, new)

    @rule(steps=st.integers(1, 3))
    def walk(self, steps: int) -> None:
        recategorize.finish(now=NOW, steps=steps)

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

    @invariant()
    def lists_agree(self) -> None:
        category_oracle.assert_listed(site_settings.get("demo"))

    def teardown(self) -> None:
        try:
            recategorize.finish(now=NOW, steps=100)
            assert list(reads.fetch(reads.Query("Job"))) == []
            dispatcher.deliver(counter_oracle.events(), now=NOW, handlers=wiring.HANDLERS)
            counter_oracle.assert_all_counted()
            category_oracle.assert_settled()
        finally:
            self._small.stop()
            self._context.__exit__(None, None, None)
            self._engine.close()


TestCategories = Categories.TestCase
TestCategories.settings = settings(max_examples=8, stateful_step_count=25)
