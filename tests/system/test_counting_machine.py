"""Counters, events and followers equal a ledger after any sequence of steps.

People post, reply, edit, retract, vote, follow and leave in three threads on two sites. Tasks
import exports, compact and recategorize threads, count votes, compact follower lists, and shard,
gather and recount counters. Events are delivered repeatedly and in any order, handlers fail, and
events become dead letters. Clocks advance past every retention period, and the processes' clocks
differ. Calls fail before or after they are applied, with every status, and one step overtakes
another step between any two of its calls. After each step, all stored data equals the ledger. At
the end, exactly the expected events have been delivered.

To start the long run, which prints its seeds:

    COUNTING_SECONDS=900 .venv/bin/python -m pytest -s tests/system/test_counting_machine.py
"""

import contextlib
import copy
import itertools
import os
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from comments import errors
from comments.domain.counters import counting
from comments.events import dispatcher, outbox, retry_pauses
from comments.moderation.policy import policy_changes, rules
from comments.notifications import thread_followers
from comments.reading.compaction import compactor
from comments.store import connection, ownership, reads, transactions
from comments.store.large_sets import membership, set_compaction
from comments.store.models import counter_rows, schema
from comments.tree.counters import counter_repair, sharding, thread_counts, totals
from comments.tree.lists import ordered_query
from comments.upkeep.integrity import recount, repair
from datastore_emulator import faults, inprocess
from tests.conftest import ROOT
from tests.support import stored_state
from tests.support.histories import ledger, operator_steps, reader_steps
from tests.support.histories.operator_steps import Step, Wish

pytestmark = [pytest.mark.slow, pytest.mark.embedded]

STATUSES = [
    "ABORTED", "UNAVAILABLE", "INTERNAL", "UNKNOWN", "DEADLINE_EXCEEDED", "CANCELLED",
    "RESOURCE_EXHAUSTED", "INVALID_ARGUMENT", "PERMISSION_DENIED",
]  # fmt: skip
RPCS = ["BeginTransaction", "Lookup", "RunQuery", "Commit", "Commit"]
PAUSES = [1.0, 31.0, sharding.QUIET, 901.0, 3 * 3600.0, 2 * 86_400.0]
UNKNOWN = "unknown"
# These limits are so small that even a short history reaches each of them.
SMALL: list[tuple[Any, dict[str, Any]]] = [
    (set_compaction, {"SEGMENT_BYTES": 60, "DIRECTORY_BYTES": 90, "LINES": 2, "AT_ONCE": 2}),
    (membership, {"MARKS": 4, "AT_ONCE": 2}),
    (compactor, {"BUCKET_ROWS": 4, "TAIL_ROWS": 3}),
    (dispatcher, {"AT_ONCE": 4, "MOST_ROWS": 12}),
    (retry_pauses, {"MOST_ATTEMPTS": 3}),
    (recount, {"NOTE_EVERY": 1}),
    (counter_repair, {"AT_ONCE": 2}),
    (thread_counts, {"MOST": 1, "MOST_GROUPS": 4}),
]
NUMBERS = st.integers(0, 30)
WISHES = st.builds(Wish, st.sampled_from(reader_steps.KINDS), NUMBERS, NUMBERS, NUMBERS)
WHEN = st.sampled_from(["before", "after"])
FAULT = st.fixed_dictionaries(
    {
        "rpc": st.sampled_from(RPCS),
        "call": st.integers(1, 5),
        "when": WHEN,
        "status": st.sampled_from(STATUSES),
    }
)


class Machine(RuleBasedStateMachine):
    """A state machine: one store, two processes, and all actors that change data."""

    def __init__(self) -> None:
        super().__init__()
        self.steps = reader_steps.ReaderSteps()
        self.is_sound = True
        self.calls = self.looks = 0
        self.was_overtaken = False
        self.overtaking: tuple[int, Callable[[], object]] | None = None
        self.stack = contextlib.ExitStack()
        for module, bounds in SMALL:
            self.stack.enter_context(mock.patch.multiple(module, **bounds))
        self.engine = self.stack.enter_context(
            inprocess.open_engine(
                None, indexes=ROOT / "index.yaml", concurrency="optimistic", history=0
            )
        )
        self.store, self.other = self._process(self._call), self._process(None)
        self.stack.enter_context(self.store.context())
        held = rules.Rule(id="held", action=rules.Action.HOLD, words=(ledger.HELD,))
        for site in ("a", "b"):
            policy_changes.put_rule(site, held, reader_steps.MODERATOR, now=self.steps.now)

    def _process(self, interceptor: inprocess.Interceptor | None) -> connection.Store:
        store = connection.Store(inprocess.Channel(self.engine, interceptor), project="test")
        sharding.SHARDS.put(store, self.steps.shards())
        return store

    def _call(self, _method: str, _request: object, proceed: Callable[[], bytes]) -> bytes:
        self.calls += 1
        if self.overtaking is not None and self.calls == self.overtaking[0]:
            run, self.overtaking = self.overtaking[1], None
            run()
        return proceed()

    @rule(wish=WISHES)
    def take(self, wish: Wish) -> None:
        self._settle(self.steps.step(wish), [])

    @rule(wish=WISHES)
    def take_elsewhere(self, wish: Wish) -> None:
        """Take a step in the other process, which shares no caches with this process."""
        with ThreadPoolExecutor(1) as pool:
            step = self.steps.step(wish)
            outcome = pool.submit(self._elsewhere, step).result()
            assert outcome == step.note(self.steps.ledger)

    def _elsewhere(self, step: Step) -> str:
        with self.other.context():
            return _outcome(step.act)

    @rule(wish=WISHES, failing=st.lists(FAULT, min_size=1, max_size=3))
    def take_while_calls_fail(self, wish: Wish, failing: list[dict[str, object]]) -> None:
        self._settle(self.steps.step(wish), failing)

    @rule(wish=WISHES, rpc=st.sampled_from(RPCS), when=WHEN)
    def take_while_a_method_fails(self, wish: Wish, rpc: str, when: str) -> None:
        """Take a step while each call of one method fails until the caller gives up."""
        self.store.deadline = 0.02
        # Shorten a repair's separate deadline, which is four minutes per thread.
        with (
            mock.patch.object(repair, "SECONDS", 0.02),
            mock.patch.object(reads, "LONGEST", 0.02),
        ):
            self._settle(self.steps.step(wish), [{"rpc": rpc, "when": when, "status": "ABORTED"}])
        self.store.deadline = 20.0

    @rule(wish=WISHES, other=WISHES, call=st.integers(1, 12))
    def take_overtaken(self, wish: Wish, other: Wish, call: int) -> None:
        """Take a step; before its n-th call, the other process takes a whole step."""
        self._overtake(self.steps.step(wish), self.steps.step(other), call)

    @rule(wish=WISHES, call=st.integers(2, 12))
    def take_twice_concurrently(self, wish: Wish, call: int) -> None:
        """Let two processes take the same step at the same time."""
        step = self.steps.step(wish)
        self._overtake(step, step, call)

    def _overtake(self, slow: Step, fast: Step, call: int) -> None:
        between: list[Future[str]] = []
        with ThreadPoolExecutor(1) as pool:

            def overtake() -> None:
                between.append(pool.submit(self._elsewhere, fast))
                between[0].exception()

            self.calls, self.overtaking = 0, (call, overtake)
            taken = [(slow, _outcome(slow.act))]
            self.overtaking = None
            self.was_overtaken = bool(between)
            if not between:
                overtake()
            taken.append((fast, between[0].result()))
        # One order of the two steps must explain both outcomes and the stored rows.
        orders = [taken, taken[::-1]]
        orders += [[(fast, taken[1][1])]] if slow.may_do_nothing else []
        for order in orders:
            book = copy.deepcopy(self.steps.ledger)
            is_so = all(step.note(book) == outcome for step, outcome in order) and _is_stored(book)
            # Different orders may result in the same rows but in events with different revisions.
            if is_so and book.events.keys() <= self.steps.told | stored_state.events().keys():
                self.steps.ledger = book
                return
        raise AssertionError(taken)

    @rule(seconds=st.sampled_from(PAUSES))
    def wait(self, seconds: float) -> None:
        self.steps.wait(seconds)

    @precondition(lambda self: self.steps.ledger.said)
    @rule(
        pick=NUMBERS,
        more=st.sampled_from([-2, -1, 1, 5]),
        is_lost=st.booleans(),
        call=st.integers(0, 12),
    )
    def drift(self, pick: int, more: int, call: int, *, is_lost: bool) -> None:
        """Change or delete a row's numbers; check that a recount reports exactly these changes.

        A second recount, before the first recount's n-th call, must not repeat a repair.
        """
        rows = [
            (kind, each)
            for kind in ("Counter", "Participation", "Standing", "Category", "Day", "Appearance")
            for each in stored_state.rows(kind)
            if not stored_state.name_of(each).startswith("threads/")
        ]
        if not rows:
            return
        kind, message = sorted(rows, key=lambda each: (each[0], str(each[1].key)))[pick % len(rows)]
        path = [part for each in message.key.path for part in (each.kind, each.name)]
        row = reads.get(schema.RowKey(*path))
        numbers = counter_rows.numbers_of(row)
        wrong = {"approved": more, "spam": -more}
        if is_lost:
            wrong = {name: -number for name, number in numbers.items()}
        sums = {name: numbers.get(name, 0) + wrong.get(name, 0) for name in {*numbers, *wrong}}
        row.numbers = counter_rows.encode({name: number for name, number in sums.items() if number})
        writes = ownership.Writes("counters", put=(row,))
        if is_lost:
            writes = ownership.Writes("counters", delete=(row.key,))
        transactions.transaction(lambda: transactions.apply(writes))
        found: list[recount.Difference] = []
        with ThreadPoolExecutor(1) as pool:
            self.calls = 0
            self.overtaking = (call, lambda: pool.submit(self._elsewhere, mending).result())  # type: ignore[has-type]
            mending = Step(lambda: _recount(found))
            mending.act()
            self.overtaking = None
        told = {each.name: each.stored - each.expected for each in found if each.name != "shards"}
        assert told == wrong, (kind, path)

    @invariant()
    def everything_stored_equals_the_ledger(self) -> None:
        self.is_sound = False
        book, told = self.steps.ledger, self.steps.told
        assert stored_state.said() == book.said
        assert stored_state.roots() == book.roots
        assert stored_state.votes() == book.votes
        assert _is_filed(book)
        assert stored_state.in_threads() == ledger.in_threads(book.said.values())
        waiting = stored_state.events_of_comments()
        known = {*book.events, *(f"{event}{operator_steps.FOLLOWS}" for event in book.events)}
        assert book.events.keys() <= told | waiting.keys() <= known
        letters = {stored_state.name_of(each) for each in stored_state.rows("Message")}
        assert letters <= {f"{event}{operator_steps.WRITTEN}" for event in book.events}
        uncounted = [event for event in book.events if _is_uncounted(waiting.get(event))]
        assert stored_state.later() == book.later(uncounted)
        stored_state.assert_listings()
        self._look(book)
        self.is_sound = True

    def _look(self, book: ledger.Ledger) -> None:
        """Check that one thread's totals and followers, as readers get them, equal the ledger."""
        self.looks += 1
        name = operator_steps.NAMES[self.looks % len(operator_steps.NAMES)]
        sums = ledger.in_threads(book.said.values())
        (numbers,) = totals.of_threads([name])
        # Followers are counted from events, which may be pending, so they are checked at the end.
        numbers.pop(counting.FOLLOWERS, None)
        assert numbers == sums.get(f"thread {operator_steps.key_of(name)}", {})
        members = membership.every(thread_followers.set_of(name), limit=8)
        assert list(members) == sorted(book.followers.get(operator_steps.key_of(name), ()))
        stored = stored_state.subscribers().get(thread_followers.set_of(name).text, ())
        assert sorted(stored) == sorted(book.followers.get(operator_steps.key_of(name), ()))

    def teardown(self) -> None:
        with self.stack:
            if self.is_sound:
                self._end()

    def _end(self) -> None:
        """Let other processes finish everything; check that no fault remains."""
        steps = self.steps
        for thread in range(3):
            self._settle(steps.step(Wish("walk", thread, 0, 0)), [])
        for number in range(len(steps.ledger.said)):
            self._settle(steps.step(Wish("count", number, 0, 1)), [])
        for _ in range(50):
            steps.step(Wish("revive", 0, 0, 0)).act()
            steps.wait(retry_pauses.LONGEST_PAUSE.total_seconds())
            dispatcher.sweep(now=steps.now, handlers=steps.handlers())
            if not stored_state.events():
                break
        events = set(steps.ledger.events)
        assert steps.told == events | {f"{event}{operator_steps.FOLLOWS}" for event in events}
        letters = {stored_state.name_of(each) for each in stored_state.rows("Message")}
        assert letters == {f"{event}{operator_steps.WRITTEN}" for event in events}
        for name in operator_steps.NAMES:
            sharding.gather(name)
            assert (
                compactor.compact(operator_steps.SETTINGS.scheme, name, now=steps.now) is not None
            )
            assert set_compaction.compact(thread_followers.set_of(name))
            assert repair.find_problems(operator_steps.SETTINGS.scheme, name) == []
            order = [row.id for row in ordered_query.thread(name)]
            assert order == steps.ledger.in_order(operator_steps.key_of(name))
        assert sorted(stored_state.audit()) == sorted(steps.ledger.audit)
        assert {name for name, _ in _names_of("ErasureDue")} == steps.ledger.refused
        cast = [name for name, value in steps.ledger.votes.items() if value]
        assert sorted(_names_of("Vote")) == sorted(cast)
        assert _names_of("VotesDue") == []
        for _ in range(2):  # The first recount may continue an interrupted recount
            for site in ("a", "b"):
                assert recount.site(site, tell=print, fixes=True) == 0
        self._assert_listed()
        stored_state.assert_sums()
        self.everything_stored_equals_the_ledger()

    def _assert_listed(self) -> None:
        """Check that pages that list threads get the numbers of the ledger."""
        sums = ledger.in_threads(self.steps.ledger.said.values())
        for name in operator_steps.NAMES:
            key = operator_steps.key_of(name)
            numbers = sums.get(f"thread {key}", {})
            assert thread_counts.of_threads(name.site, [key]) == {key: numbers.get("listed", 0)}

    def _settle(self, step: Step, failing: list[dict[str, object]]) -> None:
        """Take a step while calls fail, and record its outcome."""
        if failing:
            self.engine.install_faults(faults.Plan.parse({"rules": failing}))
        try:
            outcome = _outcome(step.act)
        finally:
            self.engine.install_faults(None)
        if outcome == UNKNOWN:
            assert failing
            outcome = step.note(self.steps.ledger) if step.is_stored() else UNKNOWN
            assert outcome in (ledger.DONE, UNKNOWN)
        else:
            assert outcome == step.note(self.steps.ledger)


def _names_of(kind: str) -> list[tuple[str, str]]:
    return [(each.key.path[0].name, each.key.path[-1].name) for each in stored_state.rows(kind)]


def _recount(found: list[recount.Difference]) -> None:
    for site in ("a", "b"):
        recount.site(site, tell=found.append, fixes=True)


def _is_uncounted(done: set[str] | None) -> bool:
    """Return whether an event is still uncounted, given the handlers that have finished it."""
    return done is not None and outbox.COUNTERS not in done


def _outcome(act: Callable[[], object]) -> str:
    try:
        act()
    except errors.Overloaded:
        return UNKNOWN
    except errors.FlatthreadError as error:
        return type(error).__name__
    return ledger.DONE


def _is_stored(book: ledger.Ledger) -> bool:
    stored = (stored_state.said(), stored_state.roots(), stored_state.votes(), _followers(book))
    return stored == (book.said, book.roots, book.votes, book.followers) and _is_filed(book)


def _is_filed(book: ledger.Ledger) -> bool:
    return all(
        found == book.categories.get(thread, ())
        for thread, found in stored_state.categories().items()
    )


def _followers(book: ledger.Ledger) -> dict[str, set[str]]:
    """Return the stored followers of each thread in a ledger."""
    return {
        thread: set(
            membership.every(thread_followers.set_of(operator_steps.name_of(thread)), limit=8)
        )
        for thread in book.followers
    }


def test_everything_stored_equals_the_ledger_after_any_history() -> None:
    seconds = float(os.environ.get("COUNTING_SECONDS", "0"))
    end = time.monotonic() + seconds
    for number in itertools.count(1):
        _run(number, examples=100 if seconds else 6)
        if time.monotonic() >= end:
            break
        print(f"seed {number}: {number * 100} histories", flush=True)  # noqa: T201 - the long run prints


def _run(number: int, *, examples: int) -> None:
    run = settings(
        max_examples=examples,
        stateful_step_count=40,
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    run_state_machine_as_test(seed(number)(Machine), settings=run)
