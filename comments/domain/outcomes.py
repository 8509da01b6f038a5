"""How an attempt to tell somebody outside ended (pure).

Owns the three ends that a delivery acts on, the same for mail and for webhooks.
"""

import dataclasses
import enum


class End(enum.StrEnum):
    """What is to be done after an attempt."""

    DELIVERED = "delivered"
    RETRY = "retry"
    GIVE_UP = "give-up"


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """An attempt's end, and why, for operators: nothing a peer said, which may be anything.

    `retry_after` is how many seconds the peer asked for; None if it did not. `is_general` says that
    it is about the peer, not about this message: the next one would end like it.
    """

    end: End
    reason: str
    retry_after: int | None = None
    is_general: bool = False
