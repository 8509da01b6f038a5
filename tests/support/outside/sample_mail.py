"""Provide sample notifications for mail tests."""

import email
from datetime import UTC, datetime
from email import policy
from typing import Any

from comments.notifications.mail import compose

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SENDER = "comments@service.example"
PLACE = "https://site.example/a?b=c&d#comment-x"
UNSUBSCRIBE = "https://service.example/unsubscribe/token"


def notice(**more: Any) -> Any:
    plain = {
        "event": "aaaqeayeaudaocajbifqydiob4.2",
        "recipient": "ann@example.org",
        "site": "garden",
        "site_name": "garden",
        "thread": "page",
        "name": "Böb",
        "title": "A page",
        "text": "Hello\n<b>you</b>",
        "place": PLACE,
        "unsubscribe": UNSUBSCRIBE,
    }
    return compose.Notice(**plain | more)


def made(**more: Any) -> Any:
    return compose.message(notice(**more), SENDER, now=NOW)


def read(**more: Any) -> Any:
    """Return the parsed message."""
    return email.message_from_bytes(made(**more).raw, policy=policy.default)
