"""Estimate how long a task still takes (pure)."""

_SOON = 90  # Up to this many seconds, show seconds.
_LONG = 90  # Up to this many minutes, show minutes.


def seconds(done: int, total: int, elapsed: float) -> float | None:
    """Return the seconds that are left if the rest is as fast as before; None if nothing is done.

    `done` of `total` equal parts took `elapsed` seconds.
    """
    if done <= 0 or elapsed <= 0:
        return None
    return max(0, total - done) * elapsed / done


def percent(done: int, total: int) -> int:
    """Return the whole percentage; 100 only if everything is done."""
    return min(done * 100 // total, 100) if total > 0 else 100


def round_seconds(left: float) -> tuple[int, str]:
    """Round seconds for people: a number of at least 1, and its unit.

    The unit is "second", "minute" or "hour".
    """
    if left < _SOON:
        return max(1, round(left)), "second"
    minutes = left / 60
    return (round(minutes), "minute") if minutes < _LONG else (round(minutes / 60), "hour")
