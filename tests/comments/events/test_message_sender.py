"""Each receiver gets every message at least once, at its own pace, with the same id in retries."""

import json
import logging
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import datetime, timedelta

import pytest

from comments import errors
from comments.domain import records
from comments.events import (
    dead_letters,
    dispatcher,
    message_queue,
    message_sender,
    outbox,
    retry_pauses,
    safe_http,
    webhook_endpoints,
)
from comments.posting import own_comment
from comments.sites import site_deletion
from comments.store import connection, transactions
from comments.upkeep import background_worker, wiring, worker_threads
from tests.support import loopback_servers
from tests.support.histories import counter_oracle
from tests.support.outside import webhook_site
from tests.support.threads import sample_threads

LIMITS = safe_http.RequestLimits(connect=60.0, total=60.0)  # All receivers here answer immediately


@pytest.fixture
def hooked(
    open_store: connection.Store, site: records.Site, told: list[loopback_servers.Receiver]
) -> Iterator[list[loopback_servers.Receiver]]:
    """The receivers as the site's webhooks "0", "1" and "2", inside the store's context."""
    client = loopback_servers.client(*(each.port for each in told), limits=LIMITS)
    message_sender.OUTBOUND.put(open_store, client)
    with open_store.context():
        for number, each in enumerate(told):
            webhook_site.register(f"{number}", each.url, client)
        yield told


def test_every_hook_receives_each_event_once(
    hooked: list[loopback_servers.Receiver], site: records.Site, at: webhook_site.Time
) -> None:
    expected = [webhook_site.post(site, f"{n}") for n in range(5)]
    assert message_sender.serve(at) == message_sender.SendingCounts(15, 0)
    for each in hooked:
        assert sorted(each.ids) == sorted(expected)
        heard = json.loads(each.heard[0].body)
        assert (heard["type"], heard["data"]["site"]) == ("comment.posted", "demo")
        assert heard["timestamp"] == webhook_site.START.isoformat().replace("+00:00", "Z")
    assert webhook_site.left() == []
    assert message_sender.serve(at) == message_sender.SendingCounts(0, 0)
    assert dead_letters.count_waiting(at()) == dead_letters.Waiting(0, 0, 0, 0)


def test_a_deleted_site_sends_no_webhook(
    hooked: list[loopback_servers.Receiver], site: records.Site, at: webhook_site.Time
) -> None:
    """Pending messages are dropped, and the hooks work again when the site is taken back."""
    ada = records.Actor("cli", "Ada")
    webhook_site.post(site, "one")
    site_deletion.delete("demo", ada, now=at())
    message_sender.serve(at)
    assert [each.ids for each in hooked] == [[], [], []]
    assert webhook_site.left() == []
    with pytest.raises(errors.NotFound):
        webhook_endpoints.every("demo")
    site_deletion.restore("demo", ada, now=at())
    expected = webhook_site.post(site, "two")
    assert message_sender.serve(at) == message_sender.SendingCounts(3, 0)
    assert [each.ids for each in hooked] == [[expected]] * 3


def test_a_failing_hook_neither_delays_others_nor_repeats_their_messages(
    hooked: list[loopback_servers.Receiver], site: records.Site, at: webhook_site.Time
) -> None:
    hooked[1].status = 500
    expected = [webhook_site.post(site, f"{n}") for n in range(3)]
    assert message_sender.serve(at) == message_sender.SendingCounts(6, 1)
    assert message_sender.serve(at) == message_sender.SendingCounts(
        0, 0
    )  # The failing hook is paused
    assert len(hooked[1].ids) == 1
    hooked[1].status = 200
    at.now += retry_pauses.FIRST_PAUSE
    assert message_sender.serve(at) == message_sender.SendingCounts(3, 0)
    assert [len(each.ids) for each in hooked] == [3, 4, 3]
    assert sorted(set(hooked[1].ids)) == sorted(expected)
    assert webhook_endpoints.get("demo", "1").failures == 0


def test_a_receivers_retry_after_is_respected(
    hooked: list[loopback_servers.Receiver], site: records.Site, at: webhook_site.Time
) -> None:
    hooked[0].status, hooked[0].headers = 503, {"Retry-After": "900"}
    webhook_site.post(site)
    message_sender.serve(at)
    hooked[0].status = 200
    at.now += timedelta(seconds=899)
    assert message_sender.serve(at) == message_sender.SendingCounts(0, 0)
    at.now += timedelta(seconds=1)
    assert message_sender.serve(at) == message_sender.SendingCounts(1, 0)
    assert hooked[0].ids == hooked[0].ids[:1] * 2


def test_a_hook_that_answers_410_is_disabled_and_its_messages_are_kept(
    hooked: list[loopback_servers.Receiver], site: records.Site, at: webhook_site.Time
) -> None:
    hooked[2].status = 410
    ids = [webhook_site.post(site, f"{n}") for n in range(3)]
    message_sender.serve(at)
    message_sender.serve(at)
    assert len(hooked[2].ids) == 1
    assert webhook_endpoints.get("demo", "2").off == "answered 410"
    page = dead_letters.dead()
    off = "the webhook is disabled: answered 410"
    assert sorted(letter.reason for letter in page.letters) == ["answered 410", off, off]
    assert dead_letters.count_waiting(at()).messages == 0
    # When the owner enables the hook again, its dead letters are delivered after all.
    hooked[2].status = 200
    webhook_endpoints.switch_on("demo", "2")
    for letter in page.letters:
        dead_letters.revive(letter.id, now=at())
    assert message_sender.serve(at) == message_sender.SendingCounts(3, 0)
    assert sorted(set(hooked[2].ids)) == sorted(ids)


@pytest.mark.slow
def test_a_hook_that_always_fails_is_eventually_disabled(
    hooked: list[loopback_servers.Receiver], site: records.Site, at: webhook_site.Time
) -> None:
    hooked[0].status = 500
    end = at() + webhook_endpoints.FAILING_FOR + timedelta(hours=3)
    while at() < end:
        webhook_site.post(site, f"{at().isoformat()}")
        message_sender.serve(at)
        at.now += timedelta(hours=2)
    assert (
        webhook_endpoints.get("demo", "0").off == "no successful delivery for 3 days: answered 500"
    )
    assert dead_letters.count_waiting(at()).messages == 0
    assert len(hooked[1].ids) == len(hooked[2].ids) == 38
    heard = len(hooked[0].heard)
    webhook_site.post(site, "nothing more is sent to it")
    message_sender.serve(at)
    assert len(hooked[0].heard) == heard


def test_messages_for_a_removed_hook_are_discarded(
    hooked: list[loopback_servers.Receiver], site: records.Site, at: webhook_site.Time
) -> None:
    webhook_site.post(site)
    webhook_endpoints.remove("demo", "0")
    assert message_sender.serve(at) == message_sender.SendingCounts(2, 0)
    assert (hooked[0].heard, webhook_site.left()) == ([], [])


def test_the_message_of_a_retracted_comment_has_no_content(
    hooked: list[loopback_servers.Receiver], site: records.Site, at: webhook_site.Time
) -> None:
    row = sample_threads.post(site, "a canary")
    dispatcher.deliver(counter_oracle.events(), now=webhook_site.START, handlers=wiring.HANDLERS)
    own_comment.retract(row.id, author_id=row.author.id, revision=None, now=webhook_site.START)
    message_sender.serve(at)
    assert all(b"canary" not in heard.body for each in hooked for heard in each.heard)
    assert json.loads(hooked[0].heard[0].body)["data"]["comment"]["status"] == "removed"


def test_slow_receivers_are_served_concurrently(
    open_store: connection.Store, site: records.Site, at: webhook_site.Time
) -> None:
    """Each receiver delays its answer until all receivers have a request."""
    gate = threading.Barrier(4)
    with ExitStack() as stack:
        slow = [stack.enter_context(loopback_servers.receiver()) for _ in range(4)]
        client = loopback_servers.client(
            *(each.port for each in slow), limits=safe_http.RequestLimits(60, 60)
        )
        message_sender.OUTBOUND.put(open_store, client)
        with open_store.context():
            for number, each in enumerate(slow):
                each.then = lambda _: gate.wait(60) and None  # type: ignore[assignment]
                webhook_site.register(f"{number}", each.url, client)
            webhook_site.post(site)
            assert message_sender.serve(at) == message_sender.SendingCounts(4, 0)


def test_a_sender_without_messages_loads_no_certificates(
    store: connection.Store,
    site: records.Site,
    at: webhook_site.Time,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(safe_http, "HttpClient", lambda: pytest.fail("a client was made"))
    webhook_site.post(site)
    assert message_sender.serve(at) == message_sender.SendingCounts(0, 0)


def test_a_round_starts_nothing_after_its_time_limit(
    hooked: list[loopback_servers.Receiver], site: records.Site, at: webhook_site.Time
) -> None:
    webhook_site.post(site)
    assert message_sender.serve(at, within=0.0) == message_sender.SendingCounts(0, 0)
    assert len(webhook_site.left()) == 3


def test_a_recipient_with_many_messages_gets_another_turn(
    hooked: list[loopback_servers.Receiver],
    site: records.Site,
    at: webhook_site.Time,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(message_sender, "TURN", 0.0)
    webhook_site.post(site)
    assert message_sender.serve(at) == message_sender.SendingCounts(0, 0)
    monkeypatch.setattr(message_sender, "TURN", 5.0)
    monkeypatch.setattr(message_sender, "QUEUES", 1)
    assert message_sender.serve(at) == message_sender.SendingCounts(3, 0)


def test_an_internal_error_ends_neither_the_round_nor_the_message(
    hooked: list[loopback_servers.Receiver],
    site: records.Site,
    at: webhook_site.Time,
    caplog: pytest.LogCaptureFixture,
) -> None:
    for number in range(2):
        webhook_site.post(site, f"{number}")

    def fail(_recipient: str, _now: datetime) -> message_sender.Recipient:
        def tell(_: message_queue.Message) -> None:
            raise ValueError("a canary")

        return message_sender.Recipient(message_sender.Way.OPEN, tell=tell)  # type: ignore[arg-type]

    with caplog.at_level(logging.ERROR, "flatthread"):
        assert message_sender.serve(at, among={"hook": fail}) == message_sender.SendingCounts(0, 3)
    rows = message_queue.read(webhook_site.left())
    assert sorted((row.reason, row.attempts) for row in rows) == [
        *[("", 0)] * 3,  # The sender leaves a queue after a failed attempt
        *[("ValueError", 1)] * 3,
    ]
    assert webhook_site.SECRET not in caplog.text
    at.now += retry_pauses.FIRST_PAUSE
    assert message_sender.serve(at, among={}) == message_sender.SendingCounts(
        0, 0
    )  # No channel is registered
    assert message_sender.serve(at) == message_sender.SendingCounts(6, 0)


def test_concurrent_senders_send_each_message_once(
    hooked: list[loopback_servers.Receiver],
    open_store: connection.Store,
    site: records.Site,
    at: webhook_site.Time,
) -> None:
    expected = [webhook_site.post(site, f"{n}") for n in range(6)]
    gate = threading.Barrier(4)

    def send(_: int) -> int:
        with open_store.context():
            gate.wait(60)
            return message_sender.serve(at).told

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(send, range(4))) == 18
    for each in hooked:
        assert sorted(each.ids) == sorted(expected)
    assert webhook_site.left() == []


def test_a_worker_sends_soon_after_the_commit_and_stops(
    hooked: list[loopback_servers.Receiver], open_store: connection.Store, site: records.Site
) -> None:
    heard = [threading.Event() for _ in hooked]
    for each, event in zip(hooked, heard, strict=True):
        each.then = lambda _, event=event: event.set()  # type: ignore[misc]
    worker = background_worker.BackgroundWorker(open_store, first=worker_threads.MESSAGES_EVERY)
    worker.start()
    try:
        sample_threads.post(site, "text")
        # The commit notifies the worker, so the worker sends long before its next sweep.
        assert all(event.wait(worker_threads.MESSAGES_EVERY / 2) for event in heard)
    finally:
        assert worker.stop(60)


def test_a_host_that_comes_to_resolve_to_an_internal_address_gets_no_request(
    open_store: connection.Store, site: records.Site, at: webhook_site.Time
) -> None:
    found = ["93.184.215.14"]
    client = safe_http.HttpClient(LIMITS, resolver=lambda _host: found)
    message_sender.OUTBOUND.put(open_store, client)
    with open_store.context():
        webhook_site.register("0", "https://hooks.example/", client)
        webhook_site.post(site)
        found[:] = ["169.254.169.254"]
        assert message_sender.serve(at) == message_sender.SendingCounts(0, 1)
        assert "is not on the public Internet" in webhook_endpoints.get("demo", "0").off


def test_an_uncommitted_event_is_not_sent(
    hooked: list[loopback_servers.Receiver],
    at: webhook_site.Time,
) -> None:
    change = outbox.event_writes(outbox.EventKind.POSTED, "never.1", [], now=webhook_site.START)

    def body() -> None:
        transactions.apply(change)
        raise ValueError("planned")

    with pytest.raises(ValueError, match="planned"):
        transactions.transaction(body)
    dispatcher.deliver(["never.1"], now=at(), handlers=wiring.HANDLERS)
    assert message_sender.serve(at) == message_sender.SendingCounts(0, 0)
    assert [each.heard for each in hooked] == [[], [], []]
