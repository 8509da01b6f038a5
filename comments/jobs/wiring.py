"""Who is told of what happened to comments: the handlers of a process, as its settings allow.

Owns the one list of them. Processes of one service have one list: an event is deleted when every
handler that the deleting process knows is done with it. Owns the channels too, by which messages
go out.
"""

import functools
from collections.abc import Mapping
from datetime import UTC, datetime

from comments import config
from comments.events import dispatcher, message_sender, outbox, webhook_endpoints
from comments.moderation import retention_marks
from comments.moderation.classifiers import classifier_answers, classifier_requests
from comments.notifications import planner
from comments.tree.counters import from_events

COUNTERS = "counters"
WEBHOOKS = "webhooks"
FOLLOWERS = "followers"
ERASURES = "erasures"
QUESTIONS = "questions"
ADVICE = "advice"
HANDLERS: tuple[dispatcher.Handler, ...] = (
    dispatcher.Exact(COUNTERS, from_events.from_events, outbox.COUNTED),
    dispatcher.Exact(WEBHOOKS, webhook_endpoints.from_events),
    dispatcher.Exact(ERASURES, retention_marks.from_events, retention_marks.TOLD_OF),
    dispatcher.Exact(QUESTIONS, classifier_answers.from_events, classifier_answers.ASKED_OF),
    dispatcher.Exact(ADVICE, classifier_answers.erased, frozenset({outbox.Kind.RETRACTED})),
    dispatcher.Exact(FOLLOWERS, from_events.from_followings, frozenset({outbox.Kind.FOLLOWED})),
)


def handlers(settings: config.Settings) -> tuple[dispatcher.Handler, ...]:
    """The handlers of a process with these settings."""
    return (*HANDLERS, *planner.handlers(settings, lambda: datetime.now(UTC)))


def channels(settings: config.Settings) -> message_sender.Reach:
    """How a process with these settings tells those outside."""

    def channels() -> Mapping[str, message_sender.Channel]:
        client = classifier_requests.OUTBOUND.get()
        consult = functools.partial(classifier_requests.channel, settings, client)
        return {**message_sender.channels(), classifier_answers.CHANNEL: consult}

    return channels
