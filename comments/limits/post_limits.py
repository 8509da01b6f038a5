"""Compute the limits and conditions for posts on a website (pure).

This module combines a website's own limits with the service's defaults in one `PostLimits`. A limit
of 0 means no limit, and a condition of 0 means no condition.
"""

import dataclasses

import msgspec

from comments import config, errors
from comments.domain import records

# The maximum number of attempts for a proof. Under attack, a browser may have to make this many
# attempts, which takes a few seconds on a phone.
HARDEST = 2_000_000
_MOST = 10_000
_LONGEST_WAIT = 60  # In seconds; authors may have to wait this long
RANGES = {
    "proof_of_work": HARDEST,
    "form_seconds": _LONGEST_WAIT,
    "posts_per_network": _MOST,
    "posts_per_author": _MOST,
    "posts_per_thread": _MOST,
    "same_texts": _MOST,
}


@dataclasses.dataclass(frozen=True, slots=True)
class PostLimits:
    """The limits and conditions for posts on a website.

    `proof_of_work` is the maximum number of attempts that a proof takes; `form_seconds` is the
    number of seconds for which a form must be open before it is sent. Limits for the number of
    posts apply per `admission.WINDOW`. `same_texts` limits how often newcomers can repeat a text
    per `admission.KEEPS`.
    """

    proof_of_work: int
    form_seconds: int
    posts_per_network: int
    posts_per_author: int
    posts_per_thread: int
    same_texts: int


def of(site: records.Site, settings: config.Settings) -> PostLimits:
    """Return the limits for posts on this website."""
    own = msgspec.structs.asdict(site.guard)
    return PostLimits(
        **{
            name: getattr(settings, name) if own[name] is None else int(own[name])
            for name in RANGES
        }
    )


def without_limits(site: records.Site) -> records.Site:
    """Return a website whose own limits let any post through, for posts that need no admission."""
    return msgspec.structs.replace(site, guard=records.OwnPostLimits(**dict.fromkeys(RANGES, 0)))


def change(old: records.OwnPostLimits, given: dict[str, int | None]) -> records.OwnPostLimits:
    """Replace some of a website's own limits. None restores the service's default.

    Raises:
        errors.BadInput: a number is out of its range.
    """
    for name, number in given.items():
        if number is not None and not 0 <= number <= RANGES[name]:
            raise errors.BadInput(name, "out-of-range", minimum=0, maximum=RANGES[name])
    return msgspec.structs.replace(old, **given)
