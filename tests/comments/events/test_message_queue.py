"""Each recipient gets one message, which is stored until sent; one process at a time claims it."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from comments.events import message_queue, retry_pauses
from comments.store import connection, transactions
from tests.support.threads import sample_threads

NOW = sample_threads.START
EVENT = "aaaqeayeaudaocajbifqydiob4.1"
ANN, BOB = (message_queue.queue("mail", name) for name in ("ann", "bob"))


def _write(*queues: str, event: str = EVENT) -> list[str]:
    rows = message_queue.new_rows(event, queues, "{}", at=NOW - timedelta(minutes=1))
    transactions.transaction(lambda: transactions.apply(message_queue.writes(rows)))
    return [row.key.id() for row in rows]


def test_a_message_belongs_to_an_event_and_a_recipient(store: connection.Store) -> None:
    ann, bob = _write(ANN, BOB)
    assert (ann, bob) == (f"{EVENT}/mail/ann", f"{EVENT}/mail/bob")
    _write(ANN)  # Writing the message again does not duplicate it
    assert message_queue.queues(10) == [ANN, BOB]
    assert message_queue.due_ids(ANN, NOW, 10) == [ann]
    claimed = message_queue.claim(ann, now=NOW)
    assert claimed is not None
    assert (claimed.event, claimed.queue, claimed.attempts) == (EVENT, ANN, 1)
    assert claimed.at == NOW - timedelta(minutes=1)


def test_a_claimed_message_is_unavailable_until_the_lease_ends(store: connection.Store) -> None:
    (ann,) = _write(ANN)
    assert message_queue.claim(ann, now=NOW)
    assert message_queue.claim(ann, now=NOW) is None
    assert message_queue.due_ids(ANN, NOW, 10) == []
    later = NOW + message_queue.LEASE
    assert message_queue.due_ids(ANN, later, 10) == [ann]
    again = message_queue.claim(ann, now=later)
    assert again is not None
    assert again.attempts == 2


def test_one_of_many_concurrent_claims_succeeds(open_store: connection.Store) -> None:
    with open_store.context():
        (ann,) = _write(ANN)
    gate = threading.Barrier(8)

    def claim(_: int) -> bool:
        with open_store.context():
            gate.wait(60)
            return message_queue.claim(ann, now=NOW) is not None

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(claim, range(8))) == 1


def test_a_sent_message_is_deleted(store: connection.Store) -> None:
    (ann,) = _write(ANN)
    message_queue.finish(ann)
    message_queue.finish(ann)  # A slower sender may finish it again
    assert message_queue.claim(ann, now=NOW) is None
    assert message_queue.queues(10) == []


def test_a_failing_message_is_retried_and_finally_given_up(store: connection.Store) -> None:
    (ann,) = _write(ANN)
    now = NOW
    for attempt in range(1, retry_pauses.MOST_ATTEMPTS + 1):
        assert message_queue.queues(10) == [ANN]
        claimed = message_queue.claim(ann, now=now)
        assert claimed is not None
        assert claimed.attempts == attempt
        message_queue.postpone(ann, "planned", now=now, pause=timedelta(minutes=5))
        assert message_queue.claim(ann, now=now + timedelta(minutes=4)) is None
        now += timedelta(minutes=5)
    assert message_queue.queues(10) == []
    assert message_queue.due_ids(ANN, now + timedelta(days=365), 10) == []
    (row,) = message_queue.read([ann])
    assert (message_queue.is_given_up(row), row.reason) == (True, "planned")


@pytest.mark.parametrize("verb", ["postpone", "give_up"])
def test_a_message_sent_meanwhile_is_not_recreated(store: connection.Store, verb: str) -> None:
    (ann,) = _write(ANN)
    message_queue.finish(ann)
    if verb == "postpone":
        message_queue.postpone(ann, "late", now=NOW, pause=timedelta())
    else:
        message_queue.give_up(ann, "late")
    assert message_queue.read([ann]) == []
