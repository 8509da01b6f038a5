"""Each commit writes exactly one event, and every handler receives each event."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from comments import errors
from comments.domain import records
from comments.events import dead_letters, dispatcher, outbox, retry_pauses
from comments.posting import own_comment
from comments.store import connection, ownership
from comments.store.models import counter_rows
from comments.tree.counters import from_events, totals
from comments.upkeep import wiring
from tests.support import datastores
from tests.support.histories import counter_oracle
from tests.support.store_interceptors import Commits, InterceptorSlot
from tests.support.threads import sample_threads

NOW = sample_threads.START + timedelta(days=1)


@pytest.fixture
def faults(interceptor: InterceptorSlot) -> Commits:
    return interceptor.use(Commits())


def test_every_change_writes_one_event(store: connection.Store, site: records.Site) -> None:
    row = sample_threads.post(site, "old")
    for _ in range(2):  # The second decision changes nothing, so it writes no event
        own_comment.edit(
            row.id,
            author_id=row.author.id,
            body="new",
            revision=None,
            settings=sample_threads.SETTINGS,
            now=sample_threads.START,
        )
    for _ in range(2):
        sample_threads.retract(row)
    told = [outbox.record(each) for each in outbox.read(sorted(counter_oracle.events()))]
    assert [(each.id, each.kind, each.comment) for each in told] == [
        (f"{row.id}.1", "posted", row.id),
        (f"{row.id}.2", "edited", row.id),
        (f"{row.id}.3", "retracted", row.id),
    ]
    assert told[0].changes[0].old is None
    assert told[1].changes[0].old == told[1].changes[0].new == told[0].changes[0].new
    assert told[2].changes[0].new is not None
    assert told[2].changes[0].new.author == ""


def test_an_uncommitted_change_has_no_event(
    store: connection.Store, site: records.Site, faults: Commits
) -> None:
    faults.plan = ["late"] * 100
    with pytest.raises(errors.Overloaded):
        sample_threads.post(site, "late")
    faults.plan = []
    with pytest.raises(errors.NotFound):
        sample_threads.post(site, "reply", "a" * 26)
    assert counter_oracle.events() == []


def test_a_task_that_runs_before_its_commit_is_visible_delivers_nothing_and_loses_nothing(
    datastore: datastores.Datastore, store: connection.Store, site: records.Site
) -> None:
    told: list[str] = []
    early: list[str] = []
    recorder = dispatcher.Sending("recorder", lambda event: told.append(event.id))
    handlers = (*wiring.HANDLERS, recorder)

    def hasten(events: list[str]) -> None:
        with store.context():
            dispatcher.deliver(events, now=NOW, handlers=handlers)

    def overtake(method: str, request: Any, proceed: Any) -> Any:
        if method == "Commit":
            written = (getattr(each, each.WhichOneof("operation")) for each in request.mutations)
            keys = [each.key.path[-1] for each in written]
            early.extend(key.name for key in keys if key.kind == "Event")
            with ThreadPoolExecutor(1) as pool:
                pool.submit(hasten, list(early)).result()
            assert told == []
        return proceed()

    slow = datastore.connect(overtake)
    with ThreadPoolExecutor(1) as pool:

        def post() -> records.Comment:
            with slow.context():
                return sample_threads.post(site, "late")

        row = pool.submit(post).result()
    assert early == counter_oracle.events() == [f"{row.id}.1"]
    assert dispatcher.sweep(now=NOW, handlers=handlers) == dispatcher.DeliveryCounts(1, 0)
    assert told == early
    counter_oracle.assert_all_counted()


def test_an_event_is_sent_again_under_the_same_id_if_the_sender_died_before_noting_it(
    store: connection.Store, site: records.Site, faults: Commits
) -> None:
    row = sample_threads.post(site, "text")
    told: list[str] = []
    handlers = (*wiring.HANDLERS, dispatcher.Sending("mail", lambda event: told.append(event.id)))
    faults.plan = ["", *["late"] * 100]  # The store fails after the event is counted and sent
    with pytest.raises(errors.Overloaded):
        dispatcher.deliver(counter_oracle.events(), now=NOW, handlers=handlers)
    faults.plan = []
    dispatcher.deliver(counter_oracle.events(), now=NOW, handlers=handlers)
    assert told == [f"{row.id}.1"] * 2
    counter_oracle.assert_all_counted()


def test_an_event_stays_until_every_handler_is_done(
    store: connection.Store, site: records.Site
) -> None:
    sample_threads.post(site, "text")
    told: list[str] = []
    handlers = (*wiring.HANDLERS, dispatcher.Sending("mail", lambda event: told.append(event.id)))

    def fail(_: outbox.Event) -> None:
        raise ValueError("planned")

    failing = (*wiring.HANDLERS, dispatcher.Sending("mail", fail))
    assert dispatcher.deliver(
        counter_oracle.events(), now=NOW, handlers=failing
    ) == dispatcher.DeliveryCounts(0, 1)
    (row,) = outbox.read(counter_oracle.events())
    assert row.done == ["counters", "erasures", "inbox", "questions", "webhooks"]
    dispatcher.deliver(counter_oracle.events(), now=NOW, handlers=handlers)
    assert len(told) == 1
    counter_oracle.assert_all_counted()


TERM = timedelta(minutes=10)
MAIL = frozenset({outbox.EventKind.MAIL})


def _first_mail(event: outbox.Event) -> list[Any]:
    return [outbox.follow(outbox.EventKind.MAIL, f"{event.id}.mail", "1", due=NOW)]


def test_following_events_are_written_in_the_commit_that_notes_the_first(
    store: connection.Store, site: records.Site, faults: Commits
) -> None:
    row = sample_threads.post(site, "text")
    first = dispatcher.Sending("plan", _first_mail)
    faults.plan = ["late"] * 100
    with pytest.raises(errors.Overloaded):
        dispatcher.deliver(counter_oracle.events(), now=NOW, handlers=(first,))
    assert counter_oracle.events() == [f"{row.id}.1"]
    faults.plan = ["after"]
    dispatcher.deliver(counter_oracle.events(), now=NOW, handlers=(first,))
    assert counter_oracle.events() == [f"{row.id}.1.mail"]

    told: list[tuple[str, str, str]] = []

    def send(event: outbox.Event) -> list[Any]:
        told.append((event.id, event.comment, event.detail))
        return [] if event.detail == "3" else [_next(event)]

    def _next(event: outbox.Event) -> Any:
        detail = f"{int(event.detail) + 1}"
        return outbox.follow(outbox.EventKind.MAIL, f"{row.id}.1.mail.{detail}", detail, due=NOW)

    handlers = (*wiring.HANDLERS, dispatcher.Sending("mail", send, kinds=MAIL))
    for _ in range(4):
        dispatcher.sweep(now=NOW, handlers=handlers)
    mail = f"{row.id}.1.mail"
    assert told == [(mail, row.id, "1"), (f"{mail}.2", row.id, "2"), (f"{mail}.3", row.id, "3")]
    assert counter_oracle.events() == []  # Handlers for other kinds do not delay the delivery


def test_a_claimed_event_is_left_alone_until_the_lease_ends(
    open_store: connection.Store, site: records.Site
) -> None:
    with open_store.context():
        row = sample_threads.post(site, "text")
    begun, end = threading.Event(), threading.Event()
    told: list[str] = []

    def slow(event: outbox.Event) -> None:
        told.append(event.id)
        begun.set()
        assert end.wait(60)

    handlers = (dispatcher.Sending("mail", slow, term=TERM),)
    events = [f"{row.id}.1"]

    def work() -> None:
        with open_store.context():
            dispatcher.deliver(events, now=NOW, handlers=handlers)

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(work)
        assert begun.wait(60)
        with open_store.context():
            dispatcher.deliver(events, now=NOW, handlers=handlers)
            assert outbox.overdue_ids(NOW + TERM / 2, 10) == []
            assert outbox.overdue_ids(NOW + 2 * TERM, 10) == events
        assert told == events
        end.set()
        first.result(60)
    with open_store.context():
        assert counter_oracle.events() == []


def test_another_process_takes_over_an_event_when_a_dead_ones_lease_ends(
    store: connection.Store, site: records.Site, faults: Commits
) -> None:
    row = sample_threads.post(site, "text")
    told: list[str] = []
    handlers = (dispatcher.Sending("mail", lambda event: told.append(event.id), term=TERM),)
    faults.plan = ["after", "", *["late"] * 100]  # The store fails before it records the delivery
    with pytest.raises(errors.Overloaded):
        dispatcher.deliver([f"{row.id}.1"], now=NOW, handlers=handlers)
    faults.plan = []
    dispatcher.sweep(now=NOW + outbox.SWEPT_AFTER, handlers=handlers)
    assert len(told) == 1
    dispatcher.sweep(now=NOW + 2 * TERM, handlers=handlers)
    assert len(told) == 2
    assert counter_oracle.events() == []


def test_a_failing_event_delays_no_other_and_is_retried_later(
    store: connection.Store, site: records.Site
) -> None:
    rows = [sample_threads.post(site, f"{n}") for n in range(3)]
    bad = f"{rows[1].id}.1"

    def count(events: Any) -> ownership.Writes:
        if bad in [event.id for event in events]:
            raise ValueError("planned")
        return from_events.event_writes(events)

    handlers = (dispatcher.Exact("counters", count),)
    assert dispatcher.deliver(
        counter_oracle.events(), now=NOW, handlers=handlers
    ) == dispatcher.DeliveryCounts(2, 1)
    assert counter_oracle.events() == [bad]
    assert outbox.overdue_ids(NOW, 10) == []
    later = NOW + retry_pauses.FIRST_PAUSE
    assert outbox.overdue_ids(later, 10) == [bad]
    assert dispatcher.sweep(now=later, handlers=wiring.HANDLERS) == dispatcher.DeliveryCounts(1, 0)
    counter_oracle.assert_all_counted()


def test_a_failing_handler_delays_no_other_and_counts_as_one_attempt(
    store: connection.Store, site: records.Site, faults: Commits
) -> None:
    first, bad, last = (f"{sample_threads.post(site, f'{n}').id}.1" for n in range(3))
    told: list[str] = []

    def note(events: Any) -> ownership.Writes:
        if bad in [event.id for event in events]:
            raise ValueError("planned")
        told.extend(event.id for event in events)
        return ownership.Writes("nobody")

    handlers = [*wiring.HANDLERS, *(dispatcher.Exact(name, note) for name in ("one", "other"))]
    assert dispatcher.deliver(
        counter_oracle.events(), now=NOW, handlers=handlers
    ) == dispatcher.DeliveryCounts(2, 1)
    (row,) = outbox.read(counter_oracle.events())
    assert (row.key.id(), row.done, row.attempts) == (
        bad,
        ["counters", "erasures", "inbox", "questions", "webhooks"],
        1,
    )
    assert sorted(told) == sorted([first, last] * 2)
    assert totals.of_site("demo")["approved"] == 3
    # A handler that has finished an event is not called again when other handlers are retried.
    bad = ""
    dispatcher.deliver(counter_oracle.events(), now=NOW, handlers=handlers)
    counter_oracle.assert_all_counted()


def test_exact_handlers_share_a_commit(
    store: connection.Store, site: records.Site, faults: Commits
) -> None:
    sample_threads.grow(site, sample_threads.TREE)
    other = dispatcher.Exact("other", lambda _: ownership.Writes("nobody"))
    faults.calls.clear()
    dispatcher.deliver(counter_oracle.events(), now=NOW, handlers=(*wiring.HANDLERS, other))
    assert faults.calls.count("Commit") == 1
    counter_oracle.assert_all_counted()


def test_one_failing_event_among_many_takes_few_more_commits(
    store: connection.Store, site: records.Site, faults: Commits
) -> None:
    posts = [sample_threads.post(site, f"{n}").id for n in range(32)]
    bad = f"{posts[21]}.1"

    def count(events: Any) -> ownership.Writes:
        if bad in [event.id for event in events]:
            raise ValueError("planned")
        return from_events.event_writes(events)

    handlers = (dispatcher.Exact("counters", count),)
    faults.calls.clear()
    assert dispatcher.deliver(
        counter_oracle.events(), now=NOW, handlers=handlers
    ) == dispatcher.DeliveryCounts(31, 1)
    # The halves without the failing event, and the commit that postpones it.
    assert faults.calls.count("Commit") == 5 + 1
    assert counter_oracle.events() == [bad]
    assert dispatcher.sweep(
        now=NOW + retry_pauses.FIRST_PAUSE, handlers=wiring.HANDLERS
    ) == dispatcher.DeliveryCounts(1, 0)
    counter_oracle.assert_all_counted()


def test_sending_handlers_record_many_events_in_one_commit(
    store: connection.Store, site: records.Site, faults: Commits
) -> None:
    first, bad, last = (f"{sample_threads.post(site, f'{n}').id}.1" for n in range(3))
    told: list[str] = []

    def plan(event: outbox.Event) -> list[Any]:
        if event.id == bad:
            raise ValueError("planned")
        told.append(event.id)
        return _first_mail(event)

    handlers = (dispatcher.Sending("plan", plan),)
    faults.calls.clear()
    assert dispatcher.deliver(
        counter_oracle.events(), now=NOW, handlers=handlers
    ) == dispatcher.DeliveryCounts(2, 1)
    assert faults.calls.count("Commit") == 2  # One for the failed event
    assert sorted(told) == sorted([first, last])
    assert sorted(counter_oracle.events()) == sorted([bad, f"{first}.mail", f"{last}.mail"])


def test_follow_ups_that_cannot_be_stored_delay_no_other_event(
    store: connection.Store, site: records.Site
) -> None:
    good, bad = (f"{sample_threads.post(site, f'{n}').id}.1" for n in range(2))

    def plan(event: outbox.Event) -> list[Any]:
        rows = _first_mail(event)
        if event.id == bad:
            rows[0].key = counter_rows.site_counter_key("demo")  # A kind of a different owner
        return rows

    handlers = (dispatcher.Sending("plan", plan),)
    assert dispatcher.deliver(
        counter_oracle.events(), now=NOW, handlers=handlers
    ) == dispatcher.DeliveryCounts(1, 1)
    assert sorted(counter_oracle.events()) == sorted([f"{good}.mail", bad])


def test_an_event_that_always_fails_becomes_a_dead_letter_and_can_be_revived(
    store: connection.Store, site: records.Site
) -> None:
    sample_threads.post(site, "text")

    def fail(_: Any) -> ownership.Writes:
        raise ValueError("planned")

    handlers = (dispatcher.Exact("counters", fail),)
    now, pauses = NOW, []
    for _ in range(retry_pauses.MOST_ATTEMPTS):
        dispatcher.sweep(now=now, handlers=handlers)
        (row,) = outbox.read(counter_oracle.events())
        pauses.append(row.due - now)
        now = min(row.due, now + retry_pauses.LONGEST_PAUSE)
    assert pauses[:3] == [retry_pauses.FIRST_PAUSE * n for n in (1, 2, 4)]
    assert max(pauses[:-1]) == retry_pauses.LONGEST_PAUSE
    assert list(dead_letters.dead_ids()) == counter_oracle.events() != []
    assert outbox.overdue_ids(NOW + timedelta(days=365), 10) == []
    assert [event.id for event in outbox.pending_events("counters")] == counter_oracle.events()
    dead_letters.revive(counter_oracle.events()[0], now=NOW)
    assert dispatcher.sweep(now=NOW, handlers=wiring.HANDLERS) == dispatcher.DeliveryCounts(1, 0)
    counter_oracle.assert_all_counted()
