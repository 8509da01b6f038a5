"""Who is told of what happened to comments: the handlers of a process, as its settings allow.

Owns the one list of them. Processes of one service have one list: an event is deleted when every
handler that the deleting process knows is done with it. Owns the channels too, by which messages
go out.
"""

import functools
from collections.abc import Mapping
from datetime import UTC, datetime

from comments import (
    advice,
    config,
    consulting,
    datastore,
    delivery,
    erasures,
    hooks,
    notices,
    outbound,
    outbox,
    sending,
    tallies,
)

COUNTERS = "counters"
WEBHOOKS = "webhooks"
FOLLOWERS = "followers"
ERASURES = "erasures"
QUESTIONS = "questions"
ADVICE = "advice"
HANDLERS: tuple[delivery.Handler, ...] = (
    delivery.Exact(COUNTERS, tallies.from_events, outbox.COUNTED),
    delivery.Exact(WEBHOOKS, hooks.from_events),
    delivery.Exact(ERASURES, erasures.from_events, erasures.TOLD_OF),
    delivery.Exact(QUESTIONS, advice.from_events, advice.ASKED_OF),
    delivery.Exact(ADVICE, advice.erased, frozenset({outbox.Kind.RETRACTED})),
    delivery.Exact(FOLLOWERS, tallies.from_followings, frozenset({outbox.Kind.FOLLOWED})),
)


def of(settings: config.Settings) -> tuple[delivery.Handler, ...]:
    """The handlers of a process with these settings."""
    return (*HANDLERS, *notices.handlers(settings, lambda: datetime.now(UTC)))


def reach(settings: config.Settings) -> sending.Reach:
    """How a process with these settings tells those outside."""

    def channels() -> Mapping[str, sending.Channel]:
        client = datastore.kept(consulting.OUTBOUND, lambda: outbound.Client(consulting.LIMITS))
        consult = functools.partial(consulting.channel, settings, client)
        return {**sending.channels(), advice.CHANNEL: consult}

    return channels
