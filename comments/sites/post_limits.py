"""What is asked of those who post on a website, and how often they may (pure).

Owns how its own rules and the service's become one `Guard`. A number of 0 asks for nothing, or
limits nothing.
"""

import dataclasses

import msgspec

from comments import config, errors
from comments.domain import records

# Tries at most, and what a browser may be made to do under attack: some seconds of a telephone.
HARDEST = 2_000_000
_MOST = 10_000
_LONGEST_WAIT = 60  # seconds; who writes waits for it
RANGES = {
    "proof_of_work": HARDEST,
    "form_seconds": _LONGEST_WAIT,
    "posts_per_network": _MOST,
    "posts_per_author": _MOST,
    "posts_per_thread": _MOST,
    "same_texts": _MOST,
}


@dataclasses.dataclass(frozen=True, slots=True)
class Guard:
    """What holds for posts on a website.

    `proof_of_work` is how many tries a proof takes at most, `form_seconds` how long a form is open
    at least before it is sent. The posts are those within `admission.WINDOW`, the texts those of
    newcomers within `admission.KEEPS`.
    """

    proof_of_work: int
    form_seconds: int
    posts_per_network: int
    posts_per_author: int
    posts_per_thread: int
    same_texts: int


def of(site: records.Site, settings: config.Settings) -> Guard:
    """What holds for posts on this website."""
    own = msgspec.structs.asdict(site.guard)
    return Guard(
        **{
            name: getattr(settings, name) if own[name] is None else int(own[name])
            for name in RANGES
        }
    )


def changed(old: records.OwnGuard, given: dict[str, int | None]) -> records.OwnGuard:
    """A website's rules with others in their place; None is the service's again.

    Raises:
        errors.BadInput: a number is out of its range.
    """
    for name, number in given.items():
        if number is not None and not 0 <= number <= RANGES[name]:
            raise errors.BadInput(name, f"is 0 to {RANGES[name]}")
    return msgspec.structs.replace(old, **given)
