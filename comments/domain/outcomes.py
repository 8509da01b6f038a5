"""Outcomes: how an attempt to deliver to a recipient outside ended (pure).

Owns the three ends that a delivery acts on, the same for mail and for webhooks.
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
    """The end of an attempt, and a reason for operators, without text from the peer.

    `retry_after` is how many seconds the peer asked for; None if it did not. `is_general` says that
    the failure concerns the peer and not this message: the next message would fail too.
    """

    end: End
    reason: str
    retry_after: int | None = None
    is_general: bool = False
