"""Limit a website's usage per day (UTC), and restrict the website when a budget is spent.

Each process logs one warning when 80 % of a budget is used, and one when the budget is spent;
`budget show` always shows the state. When a budget is spent, the site is slow or read-only
(`records.Budget.then`) until the end of the day. Reading, retracting one's own comments and
moderating are never restricted.

To decide whether a budget is spent, each process uses its own sums and the day's row, which it
reads once a minute (`usage`). A budget can therefore be exceeded by at most the amount that all
processes use within a minute and a half. A site without a budget causes no reads; a site with a
budget causes one read per minute in each process that accepts posts.
"""

import dataclasses
import enum
import logging
from collections.abc import Iterator
from datetime import datetime, timedelta

import msgspec

from comments import errors
from comments.domain import records
from comments.limits import post_limits, usage
from comments.store.memory import per_process

MOST = 1_000_000_000
SOFT = 0.8
_PREVIEWS = "previews"
SLOW_POSTS = 1  # Posts per network and per author, within ten minutes.
SLOWER = 16  # Factor by which the work for a proof increases.
_LOGGED = per_process.PerProcess(set[tuple[object, ...]])
_log = logging.getLogger("flatthread")


class BudgetLevel(enum.IntEnum):
    """The state of a budget."""

    FREE = 0
    SHORT = 1
    SPENT = 2


def of(site: records.Site, *, now: datetime) -> BudgetLevel:
    """Return the highest of the current states of a website's budgets."""
    # Previews have a separate budget. Spending the preview budget must not make posting harder.
    standings = (standing for name, _, _, standing in each(site, now=now) if name != _PREVIEWS)
    return max(standings, default=BudgetLevel.FREE)


def each(site: records.Site, *, now: datetime) -> Iterator[tuple[str, int, int, BudgetLevel]]:
    """Yield each of a website's budgets: its name, the amount used, the limit and the state."""
    limits = {name: most for name, most in _limits(site.budget).items() if most}
    if not limits:
        return
    used = msgspec.structs.asdict(usage.total(site.id, now=now))
    for name, most in limits.items():
        standing = BudgetLevel((used[name] >= most * SOFT) + (used[name] >= most))
        if standing is not BudgetLevel.FREE:
            _tell(site.id, name, used[name], most, now)
        yield name, used[name], most, standing


def _limits(budget: records.Budget) -> dict[str, int]:
    limits = msgspec.structs.asdict(budget)
    return {name: int(limits[name]) for name in usage.UsageAmounts.__struct_fields__}


def _tell(site: str, name: str, used: int, most: int, now: datetime) -> None:
    """Log that a budget is short or spent, once per process, day and state."""
    logged = _LOGGED.get()
    line = (site, name, now.date(), used >= most)
    if line not in logged:
        logged.clear() if len(logged) > 1_000 else None  # noqa: PLR2004 - bounded; some are logged again
        logged.add(line)
        _log.warning("Site %s has used %d of %d %s today", site, used, most, name)


def check(site: records.Site, *, now: datetime) -> None:
    """Refuse a reader's post if the website accepts no more posts today (UTC).

    Raises:
        errors.TooMany: a budget is spent, and the site is set to become read-only in that case.
    """
    is_strict = site.budget.then == "read-only"
    if is_strict and of(site, now=now) is BudgetLevel.SPENT:
        raise errors.TooMany("budget-spent", retry_after=_seconds_of_day_left(now))


def check_previews(site: records.Site, *, now: datetime) -> None:
    """Refuse a preview if its budget is spent or the website accepts no more posts today.

    Raises:
        errors.TooMany: the preview is refused.
    """
    check(site, now=now)
    for name, _, _, standing in each(site, now=now):
        if name == _PREVIEWS and standing is BudgetLevel.SPENT:
            raise errors.TooMany("preview-budget-spent", retry_after=_seconds_of_day_left(now))


def _seconds_of_day_left(now: datetime) -> int:
    tomorrow = now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    return max(1, int((tomorrow - now).total_seconds()))


def tighten(
    site: records.Site, guard: post_limits.PostLimits, *, now: datetime
) -> post_limits.PostLimits:
    """Tighten the post limits if one of the website's budgets is spent."""
    if of(site, now=now) is not BudgetLevel.SPENT:
        return guard
    return dataclasses.replace(
        guard,
        proof_of_work=min(post_limits.HARDEST, guard.proof_of_work * SLOWER),
        posts_per_network=min(guard.posts_per_network or SLOW_POSTS, SLOW_POSTS),
        # This limit is also needed, because some authors are not counted by network: see
        # `admission`.
        posts_per_author=min(guard.posts_per_author or SLOW_POSTS, SLOW_POSTS),
    )


def change(old: records.Budget, name: str, value: int | str) -> records.Budget:
    """Change one of a website's budgets, or what happens when a budget is spent.

    Raises:
        errors.BadInput: there is no such budget, or the value is not allowed.
    """
    if name == "then":
        if value not in {"slow", "read-only"}:
            raise errors.BadInput(name, "unknown-value", allowed="slow, read-only")
    elif name not in usage.UsageAmounts.__struct_fields__:
        raise errors.BadInput(
            "name", "unknown-value", allowed="reads, writes, mails, posts, previews, then"
        )
    elif not isinstance(value, int) or not 0 <= value <= MOST:
        raise errors.BadInput(name, "out-of-range", minimum=0, maximum=MOST)
    return msgspec.structs.replace(old, **{name: value})
