"""Outcomes of attempts to deliver to an external recipient (pure).

This module owns the three possible outcomes, which mail and webhooks share.
"""

import dataclasses
import enum


class End(enum.StrEnum):
    """The action to take after a delivery attempt."""

    DELIVERED = "delivered"
    RETRY = "retry"
    GIVE_UP = "give-up"


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a delivery attempt, with a reason for operators.

    The reason contains no text from the peer. `retry_after` is the number of seconds that the peer
    asked the service to wait; None if it did not ask. `is_general` means that the peer failed, not
    this message, so the next message would fail too.
    """

    end: End
    reason: str
    retry_after: int | None = None
    is_general: bool = False
