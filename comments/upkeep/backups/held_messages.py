"""Hold the messages that were pending when a backup was made.

The service has probably sent those messages within seconds of the backup. A restored service must
not send them again. The restored service cannot know which messages were sent, so it holds all of
them as dead letters. An owner can then send or discard each of them.

First, the pending events about comments are delivered, so that counters, inboxes and follower lists
are complete. Delivering them only writes webhook messages and mail jobs, which are then held too.

Invariant: After `hold`, nothing that was pending is sent to a person or a webhook unless an owner
requests it (test_held_messages.py::test_nothing_is_sent_again_after_a_restore).
"""

from datetime import datetime

from comments import config
from comments.events import dispatcher, message_queue, outbox, webhook_endpoints
from comments.store import transactions
from comments.upkeep import wiring

REASON = "held: pending when the backup was made"
_AT_ONCE = 100  # Events per transaction.


def hold(settings: config.Settings, *, now: datetime) -> int:
    """Turn all pending mail and webhook messages into dead letters; return their number.

    No other process may use the store at the same time.
    """
    events = [event for event in outbox.waiting_ids() if not outbox.is_of_mail(event)]
    dispatcher.deliver(events, now=now, handlers=wiring.handlers(settings))
    mails = [event for event in outbox.waiting_ids() if outbox.is_of_mail(event)]
    for start in range(0, len(mails), _AT_ONCE):
        _hold_events(mails[start : start + _AT_ONCE])
    messages = message_queue.waiting_ids(webhook_endpoints.CHANNEL)
    for message in messages:
        message_queue.give_up(message, REASON)
    return len(mails) + len(messages)


def _hold_events(events: list[str]) -> None:
    def body() -> None:
        transactions.apply(*(outbox.give_up_writes(row, REASON) for row in outbox.read(events)))

    transactions.transaction(body)
