"""List the event handlers and message channels of a process.

All processes of a service must have the same handlers, because a process deletes an event once all
handlers that the process knows have handled the event.
"""

import functools
from collections.abc import Mapping
from datetime import UTC, datetime

from comments import config
from comments.events import dispatcher, message_sender, outbox, webhook_endpoints
from comments.moderation import retention_marks
from comments.moderation.classifiers import classifier_answers, classifier_requests
from comments.notifications import chat_texts, inbox, planner
from comments.tree.counters import from_events

WEBHOOKS = "webhooks"
FOLLOWERS = "followers"
ERASURES = "erasures"
QUESTIONS = "questions"
ADVICE = "advice"
INBOX = "inbox"
HANDLERS: tuple[dispatcher.Handler, ...] = (
    dispatcher.Exact(outbox.COUNTERS, from_events.event_writes, outbox.COUNTED | outbox.OF_RESTS),
    dispatcher.Exact(WEBHOOKS, webhook_endpoints.message_writes),
    dispatcher.Exact(ERASURES, retention_marks.mark_writes, retention_marks.TOLD_OF),
    dispatcher.Exact(QUESTIONS, classifier_answers.question_writes, classifier_answers.ASKED_OF),
    dispatcher.Exact(
        ADVICE, classifier_answers.erasure_writes, frozenset({outbox.EventKind.RETRACTED})
    ),
    dispatcher.Exact(INBOX, inbox.event_writes, inbox.TOLD_OF),
    dispatcher.Exact(
        FOLLOWERS, from_events.following_writes, frozenset({outbox.EventKind.FOLLOWED})
    ),
)


def handlers(settings: config.Settings) -> tuple[dispatcher.Handler, ...]:
    """Return the handlers for a process with these settings."""
    return (*HANDLERS, *planner.handlers(settings, lambda: datetime.now(UTC)))


def channels(settings: config.Settings) -> message_sender.Reach:
    """Return the function that makes the channels for a process with these settings."""

    def channels() -> Mapping[str, message_sender.Channel]:
        client = classifier_requests.OUTBOUND.get()
        consult = functools.partial(classifier_requests.channel, settings, client)
        chat_text = functools.partial(chat_texts.text, settings.public_url)
        return {**message_sender.channels(chat_text), classifier_answers.CHANNEL: consult}

    return channels
