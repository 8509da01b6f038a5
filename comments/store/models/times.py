"""Times as they are stored: UTC without saying so."""

from datetime import UTC, datetime, timedelta
from typing import Any

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def plain(moment: datetime) -> datetime:
    """The moment without the nanoseconds class that NDB reads it as, which is no JSON value."""
    return datetime.combine(moment.date(), moment.time(), UTC)


def plain_or_none(moment: datetime | None) -> datetime | None:
    """The moment as `plain` makes it; None for none."""
    return None if moment is None else plain(moment)


def projected_time(value: Any) -> datetime | None:
    """A moment as projections hold it, where it is microseconds; None for none."""
    if value.WhichOneof("value_type") != "integer_value":
        return None
    return _EPOCH + timedelta(microseconds=value.integer_value)


def stored_time(message: Any, name: str) -> datetime | None:
    """A moment of an entity as a message; None for none, and where it was stored without it."""
    return _time_or_none(message.properties[name]) if name in message.properties else None


def _time(value: Any) -> datetime:
    moment: datetime = value.timestamp_value.ToDatetime(UTC)
    return moment


def _time_or_none(value: Any) -> datetime | None:
    return _time(value) if value.HasField("timestamp_value") else None
