"""Operators can count pending events and messages cheaply, and view and resolve dead letters."""

from datetime import timedelta

import pytest

from comments import errors
from comments.domain import records
from comments.events import dead_letters, dispatcher, message_queue, outbox, retry_pauses
from comments.notifications import reader_follows
from comments.store import connection, ownership, transactions
from comments.upkeep import wiring
from datastore_emulator import inprocess, testing
from tests.support.histories import counter_oracle
from tests.support.threads import sample_threads

NOW = sample_threads.START + timedelta(minutes=30)


def _messages(count: int, *, event: str = "a" * 26 + ".1", dead: bool = False) -> list[str]:
    queues = [message_queue.queue("mail", f"{number:03}") for number in range(count)]
    rows = message_queue.new_rows(event, queues, "{}", at=sample_threads.START)
    transactions.transaction(lambda: transactions.apply(message_queue.writes(rows)))
    ids = [row.key.id() for row in rows]
    for each in ids if dead else ():
        message_queue.give_up(each, "answered 500")
    return ids


def _dead_event(site: records.Site, text: str = "text") -> str:
    event = f"{sample_threads.post(site, text).id}.1"

    def fail(_: object) -> ownership.Writes:
        raise ValueError("planned")

    for _ in range(retry_pauses.MOST_ATTEMPTS):
        dispatcher.deliver([event], now=NOW, handlers=(dispatcher.Exact("counters", fail),))
    return event


def test_pending_events_are_counted_and_the_oldest_is_known(
    store: connection.Store, site: records.Site
) -> None:
    assert dead_letters.count_waiting(NOW) == dead_letters.Waiting(0, 0, 0, 0)
    for number in range(3):
        sample_threads.post(site, f"{number}", now=NOW - timedelta(seconds=90 + number))
    assert dead_letters.count_waiting(NOW) == dead_letters.Waiting(3, 0, 92, 0)
    ids = _messages(2)
    assert dead_letters.count_waiting(NOW) == dead_letters.Waiting(3, 2, 30 * 60, 0)
    # Attempts and pauses do not reset a message's age. A dead letter is no longer pending.
    for each in ids:
        message_queue.claim(each, now=NOW)
        message_queue.postpone(each, "planned", now=NOW, pause=timedelta(hours=1))
    assert dead_letters.count_waiting(NOW).oldest == 30 * 60
    for each in ids:
        message_queue.give_up(each, "planned")
    assert dead_letters.count_waiting(NOW) == dead_letters.Waiting(3, 0, 92, 2)


def test_the_cost_of_counting_pending_events_is_bounded(
    store: connection.Store, engine: inprocess.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead_letters, "MOST_COUNTED", 20)
    _messages(60)
    with testing.meter(engine) as cost:
        assert dead_letters.count_waiting(NOW) == dead_letters.Waiting(0, 20, 30 * 60, 0)
    assert (cost.reads <= 6, cost.writes) == (True, 0)


def test_dead_letters_are_listed_in_pages_by_id(
    store: connection.Store, site: records.Site
) -> None:
    sample_threads.post(site, "waits")
    ids = sorted([_dead_event(site), *_messages(5, dead=True)])
    found, after, pages = [], "", 0
    while after is not None:
        page = dead_letters.dead(after=after, limit=4)
        found += [letter.id for letter in page.letters]
        after, pages = page.after, pages + 1  # type: ignore[assignment]
    assert (found, pages) == (ids, 2)
    assert [*dead_letters.dead_ids()] == ids


def test_a_dead_letter_is_described_without_personal_data(
    store: connection.Store, site: records.Site
) -> None:
    event = _dead_event(site)
    shown = dead_letters.show(event)
    assert (shown.what, shown.attempts, shown.reason, shown.is_dead) == (
        "posted", retry_pauses.MOST_ATTEMPTS, "ValueError", True
    )  # fmt: skip
    assert shown.at == sample_threads.START
    assert shown.detail == "handled by no handler"
    (message,) = _messages(1, dead=True)
    assert dead_letters.show(message).reason == "answered 500"
    assert "g:text" not in str((shown, dead_letters.show(message)))


def test_a_revived_letter_is_delivered_and_counted(
    store: connection.Store, site: records.Site
) -> None:
    event = _dead_event(site)
    dead_letters.revive(event, now=NOW)
    assert dead_letters.count_waiting(NOW) == dead_letters.Waiting(1, 0, 30 * 60, 0)
    assert dispatcher.sweep(now=NOW, handlers=wiring.HANDLERS) == dispatcher.DeliveryCounts(1, 0)
    counter_oracle.assert_all_counted()
    (message,) = _messages(1, dead=True)
    dead_letters.revive(message, now=NOW)
    claimed = message_queue.claim(message, now=NOW)
    assert claimed is not None
    assert claimed.attempts == 1


def test_a_discarded_letter_is_deleted(store: connection.Store, site: records.Site) -> None:
    for letter in (_dead_event(site), *_messages(1, dead=True)):
        dead_letters.drop(letter)
        with pytest.raises(errors.NotFound, match="letter-not-found"):
            dead_letters.show(letter)


def test_a_pending_letter_is_neither_discarded_nor_revived(
    store: connection.Store, site: records.Site
) -> None:
    letters = (f"{sample_threads.post(site, 'text').id}.1", *_messages(1))
    for letter in letters:
        with pytest.raises(errors.Conflict, match=letter):
            dead_letters.drop(letter)
        with pytest.raises(errors.Conflict, match=letter):
            dead_letters.revive(letter, now=NOW)
        assert not dead_letters.show(letter).is_dead


@pytest.mark.parametrize("letter", ["", "x", "x/y", "a" * 5_000, "é" * 900, "a.1/mail/b"])
def test_an_unknown_letter_is_not_found(store: connection.Store, letter: str) -> None:
    for verb in (
        dead_letters.show,
        dead_letters.drop,
        lambda each: dead_letters.revive(each, now=NOW),
    ):
        with pytest.raises(errors.NotFound):
            verb(letter)


def test_a_dead_event_of_followers_is_shown_and_revived(
    store: connection.Store, site: records.Site
) -> None:
    name = sample_threads.name_of(site)
    reader_follows.follow(name, "ann", now=sample_threads.START)
    (event,) = counter_oracle.events()

    def fail(_: object) -> ownership.Writes:
        raise ValueError("planned")

    failing = dispatcher.Exact(wiring.FOLLOWERS, fail, frozenset({outbox.EventKind.FOLLOWED}))
    for _ in range(retry_pauses.MOST_ATTEMPTS):
        dispatcher.deliver([event], now=NOW, handlers=(failing,))
    assert [*dead_letters.dead_ids()] == [event]
    assert dead_letters.show(event).is_dead
    dead_letters.revive(event, now=NOW)
    assert dispatcher.deliver(
        [event], now=NOW, handlers=wiring.HANDLERS
    ) == dispatcher.DeliveryCounts(1, 0)
    assert counter_oracle.of(name) == {"followers": 1}
