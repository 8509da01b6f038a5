"""Who is told of what happened to comments: the handlers of a process, as its settings allow.

Owns the one list of them. Processes of one service have one list: an event is deleted when every
handler that the deleting process knows is done with it.
"""

from datetime import UTC, datetime

from comments import config, delivery, notices


def of(settings: config.Settings) -> tuple[delivery.Handler, ...]:
    """The handlers of a process with these settings."""
    return (*delivery.HANDLERS, *notices.handlers(settings, lambda: datetime.now(UTC)))
