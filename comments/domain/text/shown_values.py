"""Show values in reports, in one line each (pure)."""

from datetime import datetime

_MOST_SHOWN = 60  # Characters shown of a value
_BEFORE = 15  # Characters shown before the first difference, if a value is cut


def show(value: object, other: object) -> str:
    """Show a value. Show a long text from where it begins to differ from `other`."""
    if isinstance(value, datetime):
        return value.isoformat()
    if not isinstance(value, str):
        text = repr(value)
        return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"
    if len(value) <= _MOST_SHOWN:
        return repr(value)
    pairs = enumerate(zip(value, other if isinstance(other, str) else "", strict=False))
    same = next((place for place, pair in pairs if pair[0] != pair[1]), 0)
    start = max(0, same - _BEFORE)
    cut = value[start : start + _MOST_SHOWN]
    end = "…" if start + _MOST_SHOWN < len(value) else ""
    return f"{'…' if start else ''}{cut!r}{end}"


def difference(field: str, stored: object, expected: object) -> str:
    """Describe a field whose stored value is not the expected one."""
    return f"{field} is {show(stored, expected)}, should be {show(expected, stored)}"


def quantity(number: int | str, noun: str) -> str:
    """Write a number with its noun: "1 thread", "2 threads"."""
    return f"{number} {noun}" if f"{number}" == "1" else f"{number} {noun}s"
