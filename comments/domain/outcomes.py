"""Outcomes: how an attempt to deliver to a recipient outside ended (pure).

Owns the three possible outcomes, which mail and webhooks share.
"""

import dataclasses
import enum


class End(enum.StrEnum):
    """What to do after an attempt."""

    DELIVERED = "delivered"
    RETRY = "retry"
    GIVE_UP = "give-up"


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of an attempt, and a reason for operators that contains no text from the peer.

    `retry_after` is the number of seconds that the peer asked to wait; None if it did not ask.
    `is_general` says that the failure concerns the peer and not this message: the next message
    would fail too.
    """

    end: End
    reason: str
    retry_after: int | None = None
    is_general: bool = False
