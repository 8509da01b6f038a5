"""Each local day has exactly one digest, in every time zone and in every year."""

import zoneinfo
from datetime import UTC, date, datetime, timedelta

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st

from comments.domain.moderation import staff_notices
from comments.domain.moderation.staff_notices import NoticeChoice, StaffRecipient

DAY, FIRST = timedelta(days=1), datetime(2000, 1, 1, tzinfo=UTC)
# Samoa had no 30 December 2011.
MISSING = {("Pacific/Apia", date(2011, 12, 30))}


def recipient(zone: str, hour: int, since: datetime) -> StaffRecipient:
    return StaffRecipient("a1", NoticeChoice.DAILY, hour, since, zone)


@given(
    st.sampled_from(sorted(staff_notices.zones())),
    st.integers(0, staff_notices.LAST_HOUR),
    st.integers(0, 35 * 365 * 24 * 60).map(lambda minutes: FIRST + timedelta(minutes=minutes)),
)
@example("Europe/Berlin", 2, datetime(2026, 3, 27, tzinfo=UTC))
@example("Europe/Berlin", 2, datetime(2026, 10, 23, tzinfo=UTC))
@example("Africa/Cairo", 0, datetime(2025, 4, 22, tzinfo=UTC))
@example("America/Nuuk", 23, datetime(2025, 3, 27, tzinfo=UTC))
@example("America/Nuuk", 23, datetime(2025, 10, 23, tzinfo=UTC))
@example("Australia/Lord_Howe", 2, datetime(2026, 4, 2, tzinfo=UTC))
@example("Asia/Kathmandu", 8, datetime(2026, 1, 1, 2, 15, tzinfo=UTC))
@example("Pacific/Apia", 8, datetime(2011, 12, 27, tzinfo=UTC))
def test_each_local_day_has_exactly_one_digest(zone: str, hour: int, since: datetime) -> None:
    local = zoneinfo.ZoneInfo(zone)
    known = recipient(zone, hour, since)
    ends: list[datetime] = []
    for _ in range(9):
        end = known.next_end()
        assert end is not None
        assert known.due_end(end - timedelta(microseconds=1)) is None
        assert known.due_end(end) == end
        ends.append(end)
        known = msgspec.structs.replace(known, since=end)
    days = [end.astimezone(local).date() for end in ends]
    whole = [days[0] + number * DAY for number in range((days[-1] - days[0]).days + 1)]
    assert days == [day for day in whole if (zone, day) not in MISSING]
    # One digest covers all missed days.
    late = ends[-1] + timedelta(minutes=1)
    assert recipient(zone, hour, since).due_end(late) == ends[-1]
    usual = [end for end in ends if end.astimezone(local).hour == hour]
    assert len(usual) >= len(ends) - 1  # Summer time skips at most one hour of these days


def test_a_zone_that_is_not_known_any_more_is_utc() -> None:
    known = recipient("Atlantis/Poseidon", 8, datetime(2026, 1, 1, 9, tzinfo=UTC))
    assert known.next_end() == datetime(2026, 1, 2, 8, tzinfo=UTC)
