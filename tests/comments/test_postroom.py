"""Claims about the postroom: what waits is counted cheaply, what was given up is settled."""

from datetime import timedelta

import pytest

from comments import datastore, delivery, errors, messages, outbox, postroom, records, subscriptions
from comments import handlers as wiring
from emulator import inprocess, testing
from tests import recounts, trees

NOW = trees.START + timedelta(minutes=30)


def _messages(count: int, *, event: str = "a" * 26 + ".1", dead: bool = False) -> list[str]:
    queues = [messages.queue("mail", f"{number:03}") for number in range(count)]
    rows = messages.made(event, queues, "{}", at=trees.START)
    datastore.transaction(lambda: datastore.apply(messages.writes(rows)))
    ids = [row.key.id() for row in rows]
    for each in ids if dead else ():
        messages.give_up(each, "answered 500")
    return ids


def _dead_event(site: records.Site, text: str = "text") -> str:
    event = f"{trees.post(site, text).id}.1"

    def fail(_: object) -> datastore.Writes:
        raise ValueError("planned")

    for _ in range(outbox.MOST_ATTEMPTS):
        delivery.deliver([event], now=NOW, handlers=(delivery.Exact("counters", fail),))
    return event


def test_what_waits_is_counted_and_the_oldest_is_known(
    store: datastore.Store, site: records.Site
) -> None:
    assert postroom.waiting(NOW) == postroom.Waiting(0, 0, 0, 0)
    for number in range(3):
        trees.post(site, f"{number}", now=NOW - timedelta(seconds=90 + number))
    assert postroom.waiting(NOW) == postroom.Waiting(3, 0, 92, 0)
    ids = _messages(2)
    assert postroom.waiting(NOW) == postroom.Waiting(3, 2, 30 * 60, 0)
    # Neither an attempt nor a pause makes it younger; being given up ends the wait.
    for each in ids:
        messages.claim(each, now=NOW)
        messages.postpone(each, "planned", now=NOW, pause=timedelta(hours=1))
    assert postroom.waiting(NOW).oldest == 30 * 60
    for each in ids:
        messages.give_up(each, "planned")
    assert postroom.waiting(NOW) == postroom.Waiting(3, 0, 92, 2)


def test_counting_what_waits_costs_little_however_much_it_is(
    store: datastore.Store, engine: inprocess.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postroom, "MOST_COUNTED", 20)
    _messages(60)
    with testing.meter(engine) as cost:
        assert postroom.waiting(NOW) == postroom.Waiting(0, 20, 30 * 60, 0)
    assert (cost.reads <= 6, cost.writes) == (True, 0)


def test_what_was_given_up_is_listed_in_pages_by_id(
    store: datastore.Store, site: records.Site
) -> None:
    trees.post(site, "waits")
    ids = sorted([_dead_event(site), *_messages(5, dead=True)])
    found, after, pages = [], "", 0
    while after is not None:
        page = postroom.dead(after=after, limit=4)
        found += [letter.id for letter in page.letters]
        after, pages = page.after, pages + 1
    assert (found, pages) == (ids, 2)
    assert [*postroom.dead_ids()] == ids


def test_a_letter_says_what_it_is_and_nothing_personal(
    store: datastore.Store, site: records.Site
) -> None:
    event = _dead_event(site)
    shown = postroom.show(event)
    assert (shown.what, shown.attempts, shown.reason, shown.is_dead) == (
        "posted", outbox.MOST_ATTEMPTS, "ValueError", True
    )  # fmt: skip
    assert shown.at == trees.START
    assert shown.detail == "handled by nobody"
    (message,) = _messages(1, dead=True)
    assert postroom.show(message).reason == "answered 500"
    assert "g:text" not in str((shown, postroom.show(message)))


def test_what_is_revived_is_delivered_and_counted(
    store: datastore.Store, site: records.Site
) -> None:
    event = _dead_event(site)
    postroom.revive(event, now=NOW)
    assert postroom.waiting(NOW) == postroom.Waiting(1, 0, 30 * 60, 0)
    assert delivery.sweep(now=NOW, handlers=wiring.HANDLERS) == delivery.Done(1, 0)
    recounts.check_all()
    (message,) = _messages(1, dead=True)
    postroom.revive(message, now=NOW)
    claimed = messages.claim(message, now=NOW)
    assert claimed is not None
    assert claimed.attempts == 1


def test_what_is_dropped_is_gone(store: datastore.Store, site: records.Site) -> None:
    for letter in (_dead_event(site), *_messages(1, dead=True)):
        postroom.drop(letter)
        with pytest.raises(errors.NotFound, match=f"no such letter: {letter}"):
            postroom.show(letter)


def test_what_still_waits_is_left_to_delivery(store: datastore.Store, site: records.Site) -> None:
    letters = (f"{trees.post(site, 'text').id}.1", *_messages(1))
    for letter in letters:
        with pytest.raises(errors.Conflict, match=letter):
            postroom.drop(letter)
        with pytest.raises(errors.Conflict, match=letter):
            postroom.revive(letter, now=NOW)
        assert not postroom.show(letter).is_dead


@pytest.mark.parametrize("letter", ["", "x", "x/y", "a" * 5_000, "é" * 900, "a.1/mail/b"])
def test_what_is_no_letter_is_not_found(store: datastore.Store, letter: str) -> None:
    for verb in (postroom.show, postroom.drop, lambda each: postroom.revive(each, now=NOW)):
        with pytest.raises(errors.NotFound):
            verb(letter)


def test_an_event_of_followers_that_was_given_up_is_shown_and_revived(
    store: datastore.Store, site: records.Site
) -> None:
    name = trees.name_of(site)
    subscriptions.follow(name, "ann", now=trees.START)
    (event,) = recounts.events()

    def fail(_: object) -> datastore.Writes:
        raise ValueError("planned")

    failing = delivery.Exact(wiring.FOLLOWERS, fail, frozenset({outbox.Kind.FOLLOWED}))
    for _ in range(outbox.MOST_ATTEMPTS):
        delivery.deliver([event], now=NOW, handlers=(failing,))
    assert [*postroom.dead_ids()] == [event]
    assert postroom.show(event).is_dead
    postroom.revive(event, now=NOW)
    assert delivery.deliver([event], now=NOW, handlers=wiring.HANDLERS) == delivery.Done(1, 0)
    assert recounts.of(name) == {"followers": 1}
