"""Claims about events: one for every commit and none else, each delivered, counted exactly once."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import flask
import grpc
import pytest

from comments import app as apps
from comments import (
    config,
    counters,
    counts,
    datastore,
    delivery,
    errors,
    models,
    outbox,
    posting,
    postroom,
    records,
    tallies,
    tasks,
    upkeep,
)
from emulator import errors as engine_errors
from emulator import inprocess, testing
from tests import recounts, trees
from tests.comments.conftest import Clock

NAME = records.ThreadName("demo", "page")
NOW = trees.START + timedelta(days=1)
SECRET = "a secret of the tasks"


class Faults:
    """Notes the calls, and fails the next commits as planned: before or after they are applied."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.plan: list[str] = []

    def __call__(self, method: str, _: Any, proceed: Any) -> Any:
        self.calls.append(method)
        when = self.plan.pop(0) if method == "Commit" and self.plan else ""
        if when == "before":
            raise _unavailable()
        answer = proceed()
        if when == "after":
            raise _unavailable()
        return answer


def _unavailable() -> engine_errors.DatastoreError:
    error = engine_errors.DatastoreError("planned")
    error.status = grpc.StatusCode.UNAVAILABLE.name
    return error


@pytest.fixture
def faults() -> Faults:
    return Faults()


@pytest.fixture
def interceptor(faults: Faults) -> Faults:
    return faults


@pytest.fixture
def worker(open_store: datastore.Store, clock: Clock) -> Iterator[upkeep.Worker]:
    """A worker whose steps the test takes, the first being done."""
    open_store.kept(tasks.HOLDINGS, lambda: tasks.Backlog(clock)).open()
    made = upkeep.Worker(open_store, trees.SETTINGS.scheme)
    with open_store.context():
        made.step()
        yield made


def _deliver() -> delivery.Done:
    return delivery.deliver(recounts.events(), now=NOW)


def test_sites_and_authors_are_counted_from_events(
    store: datastore.Store, site: records.Site
) -> None:
    grown = trees.grow(site, trees.TREE)
    trees.post(site, "elsewhere", thread="other", author=trees.author("1"))
    trees.retract(grown["1.1"])
    assert _deliver() == delivery.Done(10, 0)
    recounts.check_all()
    assert counts.of_site("demo") == {"approved": 8, "retracted": 1, "participants": 7}
    assert counts.of_site("never seen") == {}


def test_categories_and_days_are_counted_from_events(
    store: datastore.Store, site: records.Site
) -> None:
    site = trees.filing(site, "news", "sport")
    ann, bob = trees.author("ann"), trees.author("bob")
    late = trees.START + timedelta(days=1)
    rows = [
        trees.post(site, "1", author=ann, categories=("news", "sport")),
        trees.post(site, "2", author=ann, now=late),
        trees.post(site, "3", author=bob),
        trees.post(site, "4", author=bob, thread="other", categories=("news",)),
        trees.post(site, "5", author=bob, thread="plain"),
    ]
    _deliver()
    recounts.check_all()
    day, next_day = "2026-01-02", "2026-01-03"
    assert _numbers(counters.category_scope("demo", "news")) == {"approved": 4, "participants": 2}
    assert _numbers(counters.category_scope("demo", "sport")) == {"approved": 3, "participants": 2}
    assert _numbers(counters.day_scope("demo", day)) == {"approved": 4, "participants": 2}
    assert _numbers(counters.day_scope("demo", next_day)) == {"approved": 1, "participants": 1}
    assert _numbers(counters.day_scope("demo", day, "sport")) == {"approved": 2, "participants": 2}
    for row in rows[:2]:
        trees.retract(row)
    _deliver()
    recounts.check_all()
    numbers = {"approved": 1, "participants": 1, "retracted": 2}
    assert _numbers(counters.category_scope("demo", "sport")) == numbers
    assert _numbers(counters.day_scope("demo", next_day)) == {"retracted": 1}
    assert (
        datastore.get(models.statistics_key(counters.day_scope("demo", day, "", "g:ann"))) is None
    )


def _numbers(scope: counters.Scope) -> counts.Numbers:
    return counts.numbers_of(datastore.get(models.statistics_key(scope)))


def test_every_verb_tells_of_itself_once(store: datastore.Store, site: records.Site) -> None:
    row = trees.post(site, "old")
    for _ in range(2):  # the second time there is nothing to tell
        posting.edit(
            row.id,
            author_id=row.author.id,
            body="new",
            revision=None,
            settings=trees.SETTINGS,
            now=trees.START,
        )
    for _ in range(2):
        trees.retract(row)
    told = [outbox.record(each) for each in outbox.read(sorted(recounts.events()))]
    assert [(each.id, each.kind, each.comment) for each in told] == [
        (f"{row.id}.1", "posted", row.id),
        (f"{row.id}.2", "edited", row.id),
        (f"{row.id}.3", "retracted", row.id),
    ]
    assert told[0].changes[0].old is None
    assert told[1].changes[0].old == told[1].changes[0].new == told[0].changes[0].new
    assert told[2].changes[0].new is not None
    assert told[2].changes[0].new.author == ""


def test_what_is_not_committed_is_told_to_nobody(
    store: datastore.Store, site: records.Site, faults: Faults
) -> None:
    store.deadline = 0.1
    faults.plan = ["before"] * 100
    with pytest.raises(errors.Overloaded):
        trees.post(site, "late")
    faults.plan = []
    with pytest.raises(errors.NotFound):
        trees.post(site, "reply", "a" * 26)
    assert recounts.events() == []


def test_a_task_that_comes_before_its_commit_is_visible_tells_nobody_and_loses_nothing(
    engine: inprocess.Engine, store: datastore.Store, site: records.Site
) -> None:
    told: list[str] = []
    early: list[str] = []
    recorder = delivery.Sending("recorder", lambda event: told.append(event.id))
    handlers = (*delivery.HANDLERS, recorder)

    def hasten(events: list[str]) -> None:
        with store.context():
            delivery.deliver(events, now=NOW, handlers=handlers)

    def overtake(method: str, request: Any, proceed: Any) -> Any:
        if method == "Commit":
            written = (getattr(each, each.WhichOneof("operation")) for each in request.mutations)
            keys = [each.key.path[-1] for each in written]
            early.extend(key.name for key in keys if key.kind == "Event")
            with ThreadPoolExecutor(1) as pool:
                pool.submit(hasten, list(early)).result()
            assert told == []
        return proceed()

    slow = datastore.Store(inprocess.Channel(engine, overtake), project="test")
    with ThreadPoolExecutor(1) as pool:

        def post() -> records.Comment:
            with slow.context():
                return trees.post(site, "late")

        row = pool.submit(post).result()
    assert early == recounts.events() == [f"{row.id}.1"]
    assert delivery.sweep(now=NOW, handlers=handlers) == delivery.Done(1, 0)
    assert told == early
    recounts.check_all()


def test_events_delivered_twice_late_and_in_any_order_count_once(
    store: datastore.Store, site: records.Site
) -> None:
    trees.retract(trees.grow(site, trees.TREE)["3"])
    events = sorted(recounts.events(), reverse=True)
    for event in events:
        delivery.deliver([event, event], now=NOW)
    assert delivery.deliver(events, now=NOW) == delivery.Done(9, 0)
    recounts.check_all()


def test_two_that_deliver_the_same_events_at_once_count_them_once(
    open_store: datastore.Store, site: records.Site
) -> None:
    with open_store.context():
        trees.grow(site, {f"{n}": {} for n in range(45)})
        events = recounts.events()
    gate = threading.Barrier(4)

    def work(_: int) -> None:
        with open_store.context():
            gate.wait(20)
            delivery.deliver(events, now=NOW)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    with open_store.context():
        recounts.check_all()


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_delivery_whose_answer_is_lost_counts_once(
    store: datastore.Store, site: records.Site, faults: Faults, when: str
) -> None:
    trees.grow(site, trees.TREE)
    faults.plan = [when, when]
    _deliver()
    recounts.check_all()


def test_a_sender_that_dies_before_it_is_noted_is_told_again_under_the_same_id(
    store: datastore.Store, site: records.Site, faults: Faults
) -> None:
    row = trees.post(site, "text")
    told: list[str] = []
    handlers = (*delivery.HANDLERS, delivery.Sending("mail", lambda event: told.append(event.id)))
    store.deadline = 0.1
    faults.plan = ["", *["before"] * 100]  # counted, told, and then the store is gone
    with pytest.raises(errors.Overloaded):
        delivery.deliver(recounts.events(), now=NOW, handlers=handlers)
    faults.plan = []
    delivery.deliver(recounts.events(), now=NOW, handlers=handlers)
    assert told == [f"{row.id}.1"] * 2
    recounts.check_all()


def test_an_event_waits_for_every_handler(store: datastore.Store, site: records.Site) -> None:
    trees.post(site, "text")
    told: list[str] = []
    handlers = (*delivery.HANDLERS, delivery.Sending("mail", lambda event: told.append(event.id)))

    def fail(_: outbox.Event) -> None:
        raise ValueError("planned")

    failing = (*delivery.HANDLERS, delivery.Sending("mail", fail))
    assert delivery.deliver(recounts.events(), now=NOW, handlers=failing) == delivery.Done(0, 1)
    (row,) = outbox.read(recounts.events())
    assert row.done == ["counters", "erasures", "questions", "webhooks"]
    delivery.deliver(recounts.events(), now=NOW, handlers=handlers)
    assert len(told) == 1
    recounts.check_all()


TERM = timedelta(minutes=10)
MAIL = frozenset({outbox.Kind.MAIL})


def _first_mail(event: outbox.Event) -> list[Any]:
    return [outbox.follow(outbox.Kind.MAIL, f"{event.id}.mail", "1", due=NOW)]


def test_events_that_follow_are_written_by_the_commit_that_notes_the_first(
    store: datastore.Store, site: records.Site, faults: Faults
) -> None:
    row = trees.post(site, "text")
    first = delivery.Sending("plan", _first_mail)
    store.deadline = 0.1
    faults.plan = ["before"] * 100
    with pytest.raises(errors.Overloaded):
        delivery.deliver(recounts.events(), now=NOW, handlers=(first,))
    assert recounts.events() == [f"{row.id}.1"]
    faults.plan = ["after"]
    delivery.deliver(recounts.events(), now=NOW, handlers=(first,))
    assert recounts.events() == [f"{row.id}.1.mail"]

    told: list[tuple[str, str, str]] = []

    def send(event: outbox.Event) -> list[Any]:
        told.append((event.id, event.comment, event.detail))
        return [] if event.detail == "3" else [_next(event)]

    def _next(event: outbox.Event) -> Any:
        detail = f"{int(event.detail) + 1}"
        return outbox.follow(outbox.Kind.MAIL, f"{row.id}.1.mail.{detail}", detail, due=NOW)

    handlers = (*delivery.HANDLERS, delivery.Sending("mail", send, kinds=MAIL))
    for _ in range(4):
        delivery.sweep(now=NOW, handlers=handlers)
    mail = f"{row.id}.1.mail"
    assert told == [(mail, row.id, "1"), (f"{mail}.2", row.id, "2"), (f"{mail}.3", row.id, "3")]
    assert recounts.events() == []  # nobody waited for handlers of other kinds


def test_who_is_at_an_event_is_left_alone_until_the_term_is_over(
    open_store: datastore.Store, site: records.Site
) -> None:
    with open_store.context():
        row = trees.post(site, "text")
    begun, end = threading.Event(), threading.Event()
    told: list[str] = []

    def slow(event: outbox.Event) -> None:
        told.append(event.id)
        begun.set()
        assert end.wait(60)

    handlers = (delivery.Sending("mail", slow, term=TERM),)
    events = [f"{row.id}.1"]

    def work() -> None:
        with open_store.context():
            delivery.deliver(events, now=NOW, handlers=handlers)

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(work)
        assert begun.wait(60)
        with open_store.context():
            delivery.deliver(events, now=NOW, handlers=handlers)
            assert outbox.due(NOW + TERM / 2, 10) == []
            assert outbox.due(NOW + 2 * TERM, 10) == events
        assert told == events
        end.set()
        first.result(60)
    with open_store.context():
        assert recounts.events() == []


def test_who_died_at_an_event_is_followed_by_another_when_the_term_is_over(
    store: datastore.Store, site: records.Site, faults: Faults
) -> None:
    row = trees.post(site, "text")
    told: list[str] = []
    handlers = (
        delivery.Sending("mail", lambda event: told.append(event.id), term=TERM),  # type: ignore[func-returns-value]
    )
    store.deadline = 0.1
    faults.plan = ["after", "", *["before"] * 100]  # claimed twice, told, never noted
    with pytest.raises(errors.Overloaded):
        delivery.deliver([f"{row.id}.1"], now=NOW, handlers=handlers)
    faults.plan = []
    delivery.sweep(now=NOW + outbox.SWEPT_AFTER, handlers=handlers)
    assert len(told) == 1
    delivery.sweep(now=NOW + 2 * TERM, handlers=handlers)
    assert len(told) == 2
    assert recounts.events() == []


def test_an_event_that_fails_holds_up_no_other_and_comes_again_later(
    store: datastore.Store, site: records.Site
) -> None:
    rows = [trees.post(site, f"{n}") for n in range(3)]
    bad = f"{rows[1].id}.1"

    def count(events: Any) -> datastore.Writes:
        if bad in [event.id for event in events]:
            raise ValueError("planned")
        return tallies.from_events(events)

    handlers = (delivery.Exact("counters", count),)
    assert delivery.deliver(recounts.events(), now=NOW, handlers=handlers) == delivery.Done(2, 1)
    assert recounts.events() == [bad]
    assert outbox.due(NOW, 10) == []
    later = NOW + outbox.FIRST_PAUSE
    assert outbox.due(later, 10) == [bad]
    assert delivery.sweep(now=later) == delivery.Done(1, 0)
    recounts.check_all()


def test_a_handler_that_fails_holds_up_no_other_and_is_one_attempt(
    store: datastore.Store, site: records.Site, faults: Faults
) -> None:
    first, bad, last = (f"{trees.post(site, f'{n}').id}.1" for n in range(3))
    told: list[str] = []

    def note(events: Any) -> datastore.Writes:
        if bad in [event.id for event in events]:
            raise ValueError("planned")
        told.extend(event.id for event in events)
        return datastore.Writes("nobody")

    handlers = [*delivery.HANDLERS, *(delivery.Exact(name, note) for name in ("one", "other"))]
    assert delivery.deliver(recounts.events(), now=NOW, handlers=handlers) == delivery.Done(2, 1)
    (row,) = outbox.read(recounts.events())
    assert (row.key.id(), row.done, row.attempts) == (
        bad,
        ["counters", "erasures", "questions", "webhooks"],
        1,
    )
    assert sorted(told) == sorted([first, last] * 2)
    assert counts.of_site("demo")["approved"] == 3
    # Whoever was done with it is not told again when the others are.
    bad = ""
    delivery.deliver(recounts.events(), now=NOW, handlers=handlers)
    recounts.check_all()


def test_exact_handlers_share_a_commit(
    store: datastore.Store, site: records.Site, faults: Faults
) -> None:
    trees.grow(site, trees.TREE)
    other = delivery.Exact("other", lambda _: datastore.Writes("nobody"))
    faults.calls.clear()
    delivery.deliver(recounts.events(), now=NOW, handlers=(*delivery.HANDLERS, other))
    assert faults.calls.count("Commit") == 1
    recounts.check_all()


def test_an_event_that_always_fails_is_given_up_kept_and_revived(
    store: datastore.Store, site: records.Site
) -> None:
    trees.post(site, "text")

    def fail(_: Any) -> datastore.Writes:
        raise ValueError("planned")

    handlers = (delivery.Exact("counters", fail),)
    now, pauses = NOW, []
    for _ in range(outbox.MOST_ATTEMPTS):
        delivery.sweep(now=now, handlers=handlers)
        (row,) = outbox.read(recounts.events())
        pauses.append(row.due - now)
        now = min(row.due, now + outbox.LONGEST_PAUSE)
    assert pauses[:3] == [outbox.FIRST_PAUSE * n for n in (1, 2, 4)]
    assert max(pauses[:-1]) == outbox.LONGEST_PAUSE
    assert list(postroom.dead_ids()) == recounts.events() != []
    assert outbox.due(NOW + timedelta(days=365), 10) == []
    assert [event.id for event in outbox.pending("counters")] == recounts.events()
    postroom.revive(recounts.events()[0], now=NOW)
    assert delivery.sweep(now=NOW) == delivery.Done(1, 0)
    recounts.check_all()


def test_more_changes_than_one_transaction_holds_are_delivered_in_parts(
    store: datastore.Store, site: records.Site, faults: Faults
) -> None:
    for batch in range(3):
        trees.store_imported(NAME, *(_node(f"{batch}.{n}") for n in range(80)))
    faults.calls.clear()
    assert _deliver() == delivery.Done(3, 0)
    assert faults.calls.count("Commit") == 3
    recounts.check_all()
    assert counts.of_site("demo")["participants"] == 240


def test_the_process_that_posted_delivers_soon_and_asks_no_query(
    worker: upkeep.Worker, site: records.Site, clock: Clock, faults: Faults
) -> None:
    trees.grow(site, trees.TREE)
    worker.step()
    assert len(recounts.events()) == 8
    clock.now += tasks.TELL_AFTER
    faults.calls.clear()
    worker.step()
    assert "RunQuery" not in faults.calls
    assert faults.calls.count("Commit") == 1
    recounts.check_all()


def test_events_of_a_process_that_is_gone_are_found_by_a_sweep(
    worker: upkeep.Worker, store: datastore.Store, site: records.Site, clock: Clock
) -> None:
    store._kept.pop(tasks.HOLDINGS)  # another process posts, and dies
    trees.grow(site, trees.TREE)
    worker.step()
    assert len(recounts.events()) == 8
    clock.now += upkeep.SWEEP_EVERY
    worker.step()
    recounts.check_all()


def test_a_store_that_fails_while_delivering_stops_no_worker(
    worker: upkeep.Worker, store: datastore.Store, site: records.Site, clock: Clock, faults: Faults
) -> None:
    trees.post(site, "text")
    clock.now += tasks.TELL_AFTER
    store.deadline = 0.1
    faults.plan = ["before"] * 100
    worker.step()
    faults.plan = []
    (row,) = outbox.read(recounts.events())
    assert row.attempts == 0  # that was not the event's fault
    clock.now += upkeep.SWEEP_EVERY
    worker.step()
    recounts.check_all()


def test_what_waits_in_a_process_is_bounded(
    open_store: datastore.Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "MOST_EVENTS", 5)
    monkeypatch.setattr(tasks, "TOLD_AT_ONCE", 3)
    backlog = tasks.Backlog(clock)
    backlog.tell("nobody would deliver it")
    backlog.open()
    for n in range(9):
        backlog.tell(f"{n}")
    assert backlog.take_events() == []
    clock.now += tasks.TELL_AFTER
    assert [backlog.take_events() for _ in range(3)] == [["0", "1", "2"], ["3", "4"], []]


def test_a_delivered_retraction_leaves_the_author_nowhere(
    store: datastore.Store, site: records.Site
) -> None:
    ann = records.Author("Ann", "https://ann.example", "ann@mail.example", "g:ann")
    rows = [trees.post(site, f"{n}", author=ann) for n in range(2)]
    assert all(
        personal not in str(row)
        for row in outbox.read(recounts.events())
        for personal in ("Ann", "ann.example")
    )
    for row in rows:
        trees.retract(row)
    _deliver()
    recounts.check_all()
    for kind in (
        "Comment", "Counter", "Participation", "Standing", "Category", "Day", "Appearance", "Event"
    ):  # fmt: skip
        assert "g:ann" not in str(list(datastore.fetch(datastore.Query(kind))))


def test_the_best_authors_of_a_site_are_one_query(
    store: datastore.Store, site: records.Site, engine: inprocess.Engine, faults: Faults
) -> None:
    for number in range(12):
        trees.store_imported(NAME, _node(f"{number:02}", up=number, down=1))
    _deliver()
    faults.calls.clear()
    with testing.meter(engine) as cost:
        best = counts.best_authors("demo", 3)
    assert [(each.author, each.score) for each in best] == [
        ("g:11", 10), ("g:10", 9), ("g:09", 8)
    ]  # fmt: skip
    assert faults.calls == ["RunQuery"]
    assert cost.reads <= 3


def test_cron_delivers_and_only_cron_may(open_store: datastore.Store, site: records.Site) -> None:
    with open_store.context():
        trees.grow(site, trees.TREE)
    client = _client(open_store)
    assert client.get("/tasks/deliver").status_code == 403
    headers = {"Authorization": f"Bearer {SECRET}"}
    answer = client.get("/tasks/deliver", headers=headers)
    assert (answer.json, answer.headers["Cache-Control"]) == (
        {
            "delivered": 8, "failed": 0, "sent": 0, "unsent": 0,
            "waiting": 0, "oldest": 0, "dead": 0,
        },
        "no-store",
    )  # fmt: skip
    with open_store.context():
        recounts.check_all()


def _client(store: datastore.Store) -> flask.testing.FlaskClient:
    settings = config.Settings(secret="a secret of the tests", tasks_secret=SECRET)
    return apps.create_app(settings, store).test_client()


def _node(text: str, **votes: int) -> records.ImportedComment:
    """By an author of its own."""
    return trees.node(text, author=f"g:{text}", **votes)
