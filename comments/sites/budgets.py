"""Budgets: how much a website may use on a day (UTC), and what happens when it has.

Owns when a budget is spent. At 80 % of one the log says so, once in a process; `budget show` always
does. When one is spent the site is slow, or takes nothing more (`records.Budget.then`), until the
day is over. Nobody is kept from reading, from taking his own words back, or from moderating.

What must stay true: whether a budget is spent is known from sums in the process, and from the row
of the day once a minute (`usage`). A site without a budget costs nothing, one with a budget a read
a minute in a process where somebody writes. So a budget may be overdrawn by what all processes use
within a minute and a half.
"""

import dataclasses
import enum
import logging
from collections.abc import Iterator
from datetime import datetime, timedelta

import msgspec

from comments import errors
from comments.domain import records
from comments.sites import post_limits, usage
from comments.store import per_process

MOST = 1_000_000_000
SOFT = 0.8
_PREVIEWS = "previews"
SLOW_POSTS = 1  # of a network, and of an author, within ten minutes
SLOWER = 16  # times the work of a proof
_TOLD = per_process.PerProcess(set[tuple[object, ...]])
_log = logging.getLogger("flatthread")


class Standing(enum.IntEnum):
    """How much of a budget is left."""

    FREE = 0
    SHORT = 1
    SPENT = 2


def of(site: records.Site, *, now: datetime) -> Standing:
    """How a website stands today: as its shortest budget."""
    # Previews have a budget of their own: who spends it must not make it harder to post.
    found = (standing for name, _, _, standing in each(site, now=now) if name != _PREVIEWS)
    return max(found, default=Standing.FREE)


def each(site: records.Site, *, now: datetime) -> Iterator[tuple[str, int, int, Standing]]:
    """The budgets of a website: name, what was used, what may be, and how that stands."""
    limits = {name: most for name, most in _limits(site.budget).items() if most}
    if not limits:
        return
    used = msgspec.structs.asdict(usage.total(site.id, now=now))
    for name, most in limits.items():
        standing = Standing((used[name] >= most * SOFT) + (used[name] >= most))
        if standing is not Standing.FREE:
            _tell(site.id, name, used[name], most, now)
        yield name, used[name], most, standing


def _limits(budget: records.Budget) -> dict[str, int]:
    found = msgspec.structs.asdict(budget)
    return {name: int(found[name]) for name in usage.Numbers.__struct_fields__}


def _tell(site: str, name: str, used: int, most: int, now: datetime) -> None:
    """Say once in a process, for each day and step, that a budget is short or spent."""
    told = _TOLD.get()
    line = (site, name, now.date(), used >= most)
    if line not in told:
        told.clear() if len(told) > 1_000 else None  # noqa: PLR2004 - bounded, and said again
        told.add(line)
        _log.warning("site %s has used %d of %d %s today", site, used, most, name)


def check(site: records.Site, *, now: datetime) -> None:
    """Refuse what is written by readers, where a website takes nothing more today.

    Raises:
        errors.TooMany: it is spent, and the site is to be read only then.
    """
    is_strict = site.budget.then == "read-only"
    if is_strict and of(site, now=now) is Standing.SPENT:
        raise _spent(
            "this site takes nothing more today; everything can be read, please come back tomorrow",
            now,
        )


def check_previews(site: records.Site, *, now: datetime) -> None:
    """Refuse a preview if its budget is spent, or if nothing more may be written today.

    Raises:
        errors.TooMany: it is so.
    """
    check(site, now=now)
    for name, _, _, standing in each(site, now=now):
        if name == _PREVIEWS and standing is Standing.SPENT:
            raise _spent("this site shows no more previews today; you can still post", now)


def _spent(message: str, now: datetime) -> errors.TooMany:
    tomorrow = now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    wait = max(1, int((tomorrow - now).total_seconds()))
    return errors.TooMany(message, retry_after=wait, code="budget-spent")


def guarded(site: records.Site, guard: post_limits.Guard, *, now: datetime) -> post_limits.Guard:
    """What is asked of those who post there now: more, where a budget is spent."""
    if of(site, now=now) is not Standing.SPENT:
        return guard
    return dataclasses.replace(
        guard,
        proof_of_work=min(post_limits.HARDEST, guard.proof_of_work * SLOWER),
        posts_per_network=min(guard.posts_per_network or SLOW_POSTS, SLOW_POSTS),
        # Not everybody is counted by his network: see `admission`.
        posts_per_author=min(guard.posts_per_author or SLOW_POSTS, SLOW_POSTS),
    )


def changed(old: records.Budget, name: str, value: int | str) -> records.Budget:
    """A website's budget with another limit, or another end of it.

    Raises:
        errors.BadInput: there is no such limit, or no such end.
    """
    if name == "then":
        if value not in {"slow", "read-only"}:
            raise errors.BadInput(name, "is slow or read-only")
    elif name not in usage.Numbers.__struct_fields__:
        raise errors.BadInput("name", "is reads, writes, mails, posts, previews or then")
    elif not isinstance(value, int) or not 0 <= value <= MOST:
        raise errors.BadInput(name, f"is 0 to {MOST}")
    return msgspec.structs.replace(old, **{name: value})
