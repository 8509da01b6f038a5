"""What tests of admission share: the time as they set it, and answers in a word each."""

from datetime import datetime, timedelta
from typing import Any

LONG = "A text that is long enough to be told from others."
# One of each.
RULES = {
    "posts_per_network": 1,
    "posts_per_author": 1,
    "posts_per_thread": 1,
    "same_texts": 1,
}


class Moment:
    """The time, as a test sets it."""

    def __init__(self) -> None:
        self.at = datetime.fromisoformat("2026-01-02T03:04:05+00:00")

    def now(self, zone: object) -> datetime:
        del zone
        return self.at

    def pass_by(self, **span: float) -> None:
        self.at += timedelta(**span)


def codes(*answers: Any) -> list[object]:
    """201, or else the code of the refusal."""
    return [
        each.status_code if each.status_code == 201 else each.get_json()["code"] for each in answers
    ]
