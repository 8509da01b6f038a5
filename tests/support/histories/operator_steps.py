"""Take workers' and operators' steps, which do not change what readers see in comments.

This module owns the definition of a step, the state that all processes share, and the steps without
a request: delivery, compaction, sharding, counting votes, recategorizing and recounting. People's
steps are in `reader_steps`.
"""

import contextlib
import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import NamedTuple

from comments import config, errors
from comments.domain import records
from comments.domain.ids import sorthash
from comments.events import dead_letters, dispatcher, message_queue, outbox
from comments.notifications import thread_followers
from comments.posting import cast_vote
from comments.reading.compaction import compactor
from comments.store import ownership
from comments.store.large_sets import set_compaction
from comments.store.models import event_rows
from comments.tree.bulk import recategorize
from comments.tree.counters import sharding
from comments.upkeep import wiring
from comments.upkeep.integrity import recount, repair
from comments.upkeep.migrations import thread_count_rows
from tests.support import stored_state
from tests.support.histories import ledger
from tests.support.threads import sample_threads

LEVELS = 3
SETTINGS = config.Settings(secret="a secret of the tests", scheme=sorthash.Scheme(levels=LEVELS))
NAMES = [records.ThreadName(*each) for each in (("a", "page"), ("a", "other"), ("b", "page"))]
FOLLOWS = ".mail"  # Id suffix of an event that follows a first event.
WRITTEN = "/test/all"  # Id suffix of the message about an event.


class Wish(NamedTuple):
    """A step to take; its numbers pick the comments, authors and values."""

    kind: str
    one: int
    two: int
    three: int


class Step(NamedTuple):
    """Functions that take a step in the product, record it in the ledger, and check the store.

    If the product's answer was lost, `is_stored` returns whether the step was stored.
    """

    act: Callable[[], object]
    note: Callable[[ledger.Ledger], str] = lambda _: ledger.DONE
    is_stored: Callable[[], bool] = lambda: True
    may_do_nothing: bool = False  # A different process may have been faster


class PlannedError(Exception):
    """A handler's planned failure."""


class OperatorSteps:
    """The state that people and tasks in all processes share, and the tasks' steps."""

    def __init__(self) -> None:
        self.ledger = ledger.Ledger(levels=LEVELS, edit_window=SETTINGS.edit_window)
        self.now = sample_threads.START
        self.seconds = 1_000.0
        self.told: set[str] = set()
        self._folded: list[compactor.CompactionResult] = []

    def wait(self, seconds: float) -> None:
        """Advance every clock."""
        self.seconds += seconds
        self.now += timedelta(seconds=seconds)

    def shards(self) -> sharding.Shards:
        """Return a process's knowledge about busy threads, on the shared clock."""
        return sharding.Shards(clock=lambda: self.seconds)

    def _deliver(self, one: int, two: int, three: int) -> Step:
        """Deliver events in random order; some are duplicates, already delivered or unknown."""
        handlers = self.handlers(
            sends=one % 5 > 0,
            counts=two % 5 > 0,
            writes=three % 5 > 0,
        )

        def act() -> None:
            rng = random.Random(f"{one} {two} {three}")
            known = [*sorted(stored_state.events()), "nobody.1"]
            chosen = rng.choices(known, k=1 + three % 9)
            dispatcher.deliver(
                [*chosen, *rng.sample(sorted(self.told), len(self.told) % 3)],
                now=self.now,
                handlers=handlers,
            )

        return Step(act)

    def _sweep(self, one: int, _two: int, _three: int) -> Step:
        handlers = self.handlers(sends=one % 3 > 0)
        return Step(lambda: dispatcher.sweep(now=self.now, handlers=handlers))

    def _revive(self, *_: int) -> Step:
        def act() -> None:
            for event in list(dead_letters.dead_ids()):
                # An earlier attempt's commit may have been applied although its answer was lost.
                with contextlib.suppress(errors.NotFound, errors.Conflict):
                    dead_letters.revive(event, now=self.now)

        return Step(act)

    def handlers(
        self, *, sends: bool = True, counts: bool = True, writes: bool = True
    ) -> list[dispatcher.Handler]:
        """Return the product's handlers and a test handler of each kind; test handlers may fail."""

        def send(event: outbox.Event) -> None:
            if not sends:
                raise PlannedError
            self.told.add(event.id)

        def begin(event: outbox.Event) -> list[event_rows.EventRow]:
            return [outbox.follow(outbox.EventKind.MAIL, f"{event.id}{FOLLOWS}", "", due=self.now)]

        def fail(_: object) -> ownership.Writes:
            raise PlannedError

        def write(events: Sequence[outbox.Event]) -> ownership.Writes:
            queues = [message_queue.queue("test", "all")]
            rows = (message_queue.new_rows(e.id, queues, "", at=e.at) for e in events)
            return message_queue.writes(itertools.chain.from_iterable(rows))

        every = outbox.COUNTED
        counting = [
            each if counts or isinstance(each, dispatcher.Sending) else replace(each, writes=fail)
            for each in wiring.HANDLERS
        ]
        return [
            *counting,
            dispatcher.Exact("writer", write if writes else fail, every),
            dispatcher.Sending("recorder", send, every),
            dispatcher.Sending("sender", begin, every, timedelta(minutes=1)),
            dispatcher.Sending("postman", send, frozenset({outbox.EventKind.MAIL})),
        ]

    def _compact_thread(self, one: int, _two: int, _three: int) -> Step:
        def act() -> None:
            folded = compactor.compact(SETTINGS.scheme, NAMES[one % 3], now=self.now)
            self._folded.extend([] if folded is None else [folded])

        return Step(act)

    def _clear(self, one: int, _two: int, _three: int) -> Step:
        if not self._folded:
            return Step(lambda: None)
        folded = self._folded.pop(one % len(self._folded))
        self.wait(compactor.GRACE)
        return Step(lambda: compactor.clear(folded))

    def _compact_list(self, one: int, _two: int, _three: int) -> Step:
        return Step(lambda: set_compaction.compact(thread_followers.set_of(NAMES[one % 3])))

    def _spread(self, one: int, two: int, _three: int) -> Step:
        return Step(lambda: sharding.spread(NAMES[one % 3], 1 + two % 6))

    def _gather(self, one: int, _two: int, _three: int) -> Step:
        return Step(lambda: sharding.gather(NAMES[one % 3]))

    def _settle(self, *_: int) -> Step:
        def act() -> None:
            sharding.notice_spread()
            sharding.gather_quiet()

        return Step(act)

    def _recount(self, one: int, _two: int, three: int) -> Step:
        return Step(lambda: recount.site("ab"[one % 2], tell=_refuse, fixes=three % 2 == 0))

    def _complete(self, one: int, _two: int, _three: int) -> Step:
        return Step(lambda: thread_count_rows.complete("ab"[one % 2]))

    def _repair(self, one: int, _two: int, _three: int) -> Step:
        def act() -> None:
            assert repair.fix(SETTINGS.scheme, NAMES[one % 3]) == []

        return Step(act)

    def _count(self, one: int, _two: int, three: int) -> Step:
        """Count a comment's votes, whether or not votes are pending."""
        comment_id = self._pick(one)
        if comment_id is None:
            return Step(lambda: None)
        verb = cast_vote.count if three % 4 else cast_vote.mend
        return Step(
            lambda: verb(comment_id, now=self.now),
            lambda book: book.count(comment_id),
            lambda: self._has_moved(comment_id),
        )

    def _expire(self, *_: int) -> Step:
        return Step(lambda: cast_vote.expire(self.now))

    def _file(self, one: int, two: int, _three: int) -> Step:
        name, names = NAMES[one % 3], [(), ("news",), ("news/local", "sport")][two % 3]
        key = key_of(name)
        return Step(
            lambda: recategorize.begin(name, names),
            lambda book: book.file(key, names),
            lambda: stored_state.categories().get(key, ()) != self.ledger.categories.get(key, ()),
        )

    def _walk(self, one: int, _two: int, _three: int) -> Step:
        name = NAMES[one % 3]
        key = key_of(name)

        def has_walked() -> bool:
            stored = stored_state.said()
            return any(
                row.categories != stored[row.id].categories for row in self.ledger.said.values()
            )

        return Step(
            lambda: recategorize.step(name, now=self.now),
            lambda book: book.walk(key, {*stored_state.events(), *self.told}),
            has_walked,
            may_do_nothing=True,
        )

    # The following methods pick the steps' subjects.

    def _pick(self, number: int, thread: str = "") -> str | None:
        found = [row.id for row in self.ledger.said.values() if row.thread.startswith(thread)]
        return found[number % len(found)] if found else None

    def _has_moved(self, comment_id: str) -> bool:
        stored = stored_state.said()[comment_id].revision
        return stored > self.ledger.said[comment_id].revision


def key_of(name: records.ThreadName) -> str:
    """Return the ledger's name for a thread."""
    return f"{name.site}/{name.id}"


def name_of(thread: str) -> records.ThreadName:
    """Return the thread that has this name in the ledger."""
    return records.ThreadName(*thread.split("/"))


def _refuse(difference: recount.Difference) -> None:
    raise AssertionError(difference)
