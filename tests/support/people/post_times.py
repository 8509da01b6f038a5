"""Provide helpers for admission tests: a clock, responses as short codes, and counted posts."""

from datetime import datetime, timedelta
from typing import Any

from comments.store import connection, reads

LONG = "A text that is long enough to be told from others."
# Limits of one post per period for each network, author, thread and text.
RULES = {
    "posts_per_network": 1,
    "posts_per_author": 1,
    "posts_per_thread": 1,
    "same_texts": 1,
}


class Moment:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.at = datetime.fromisoformat("2026-01-02T03:04:05+00:00")

    def now(self, zone: object) -> datetime:
        del zone
        return self.at

    def pass_by(self, **span: float) -> None:
        self.at += timedelta(**span)


def codes(*answers: Any) -> list[object]:
    """Return 201 or the error code of each response."""
    return [
        each.status_code if each.status_code == 201 else each.get_json()["code"] for each in answers
    ]


def counted(store: connection.Store) -> int:
    """Return the number of posts that are counted for all networks."""
    with store.context():
        rows = list(reads.fetch(reads.Query("RateBucket")))
    found = (row for row in rows if row.key.path[-1].name.startswith("posts/"))
    return sum(row.properties["count"].integer_value for row in found)
