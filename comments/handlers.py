"""Who is told of what happened to comments: the handlers of a process, as its settings allow.

Owns the one list of them. Processes of one service have one list: an event is deleted when every
handler that the deleting process knows is done with it. Owns the channels too, by which messages
go out.
"""

import functools
from collections.abc import Mapping
from datetime import UTC, datetime

from comments import advice, config, consulting, datastore, delivery, notices, outbound, sending


def of(settings: config.Settings) -> tuple[delivery.Handler, ...]:
    """The handlers of a process with these settings."""
    return (*delivery.HANDLERS, *notices.handlers(settings, lambda: datetime.now(UTC)))


def reach(settings: config.Settings) -> sending.Reach:
    """How a process with these settings tells those outside."""

    def channels() -> Mapping[str, sending.Channel]:
        client = datastore.kept(consulting.OUTBOUND, lambda: outbound.Client(consulting.LIMITS))
        consult = functools.partial(consulting.channel, settings, client)
        return {**sending.channels(), advice.CHANNEL: consult}

    return channels
