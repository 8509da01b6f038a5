"""Sum a website's statistics over a period: in total, and by month.

All numbers come from the rows of days, so a period of any length costs one read for each of its
days that has comments (UTC); days without comments cost nothing. Months are sums of days. Distinct
commenters are no sum, because authors return on other days, so sums do not contain them.
"""

from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from typing import NamedTuple

import msgspec

from comments.tree.counters import statistics
from comments.tree.counters.statistics import StatisticsEntry


class Period(NamedTuple):
    """A period from its first to its last day (UTC)."""

    since: date
    until: date

    @property
    def length(self) -> int:
        """Return the number of days."""
        return self.until.toordinal() - self.since.toordinal() + 1

    def before(self) -> "Period | None":
        """Return the equally long period before this one; None if it begins before the year 1."""
        first = self.since.toordinal() - self.length
        return (
            Period(date.fromordinal(first), self.since - timedelta(days=1)) if first > 0 else None
        )


class PeriodNumbers(msgspec.Struct, frozen=True):
    """The sums of a period's days, or of those of its days that are in a month (such as "2026-01").

    `comments` is the number of approved comments.
    """

    month: str
    comments: int
    pending: int
    spam: int
    rejected: int
    retracted: int


def days(site: str, period: Period, category: str = "") -> list[StatisticsEntry]:
    """List a period's days that have comments, with one scan for each 1,000 days."""
    since, until = period
    return list(
        statistics.whole(
            lambda after: statistics.by_day(site, category, since=since, until=until, after=after)
        )
    )


def first_day(site: str, category: str = "") -> date | None:
    """Return the first day that has comments, or None."""
    lines = statistics.by_day(site, category, limit=1).lines
    return lines[0].day if lines else None


def total(lines: Iterable[StatisticsEntry]) -> PeriodNumbers:
    """Add up days."""
    return PeriodNumbers("", *_sums(lines))


def by_month(lines: Iterable[StatisticsEntry]) -> list[PeriodNumbers]:
    """Add up days by month. Months without comments are left out."""
    months: dict[str, list[StatisticsEntry]] = {}
    for line in lines:
        months.setdefault(f"{line.day}"[:7], []).append(line)
    return [PeriodNumbers(month, *_sums(some)) for month, some in months.items()]


def _sums(lines: Iterable[StatisticsEntry]) -> Sequence[int]:
    numbers = [
        (line.comments, line.pending, line.spam, line.rejected, line.retracted) for line in lines
    ]
    return [sum(column) for column in zip(*numbers, strict=True)] or [0] * 5
