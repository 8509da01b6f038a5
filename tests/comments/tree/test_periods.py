"""Sums over a period equal the comments of its days, with one read for each day with comments."""

from datetime import date, timedelta

from hypothesis import given
from hypothesis import strategies as st

from comments.tree.counters import periods
from comments.tree.counters.periods import Period, PeriodNumbers
from comments.tree.counters.statistics import SiteEntry

DAYS = st.dates(date(2012, 11, 1), date(2014, 2, 1))


def _line(day: date, number: int) -> SiteEntry:
    return SiteEntry("", day, number, 1, *(factor * number for factor in range(2, 8)))


@given(st.dictionaries(DAYS, st.integers(0, 9)))
def test_months_add_up_to_the_total(numbers: dict[date, int]) -> None:
    lines = [_line(day, number) for day, number in sorted(numbers.items())]
    months = periods.by_month(lines)
    for month in months:
        own = sum(number for day, number in numbers.items() if f"{day}".startswith(month.month))
        assert month == PeriodNumbers(month.month, own, *(factor * own for factor in range(2, 8)))
    assert [month.month for month in months] == sorted({f"{day}"[:7] for day in numbers})
    total = periods.total(lines)
    assert total.comments == sum(month.comments for month in months) == sum(numbers.values())


@given(DAYS, st.integers(0, 400))
def test_the_period_before_is_as_long_and_adjoins(since: date, more: int) -> None:
    period = Period(since, since + timedelta(days=more))
    before = period.before()
    assert before is not None
    assert before.length == period.length == more + 1
    assert before.until + timedelta(days=1) == period.since


def test_no_period_precedes_the_first_year() -> None:
    assert Period(date.min, date.max).before() is None
    assert Period(date(1, 1, 3), date(1, 1, 5)).before() is None
    assert Period(date(1, 1, 3), date(1, 1, 4)).before() == Period(date(1, 1, 1), date(1, 1, 2))
