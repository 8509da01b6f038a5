"""Numbers, plural categories and dates as a language writes them (Unicode CLDR, through Babel).

Babel is imported on first use, because its data for one language takes 4 MB and 20 ms, and most
processes serve only JSON.
"""

import functools
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from babel import Locale


_RIGHT_TO_LEFT = frozenset({"ar", "fa", "ur"})


@functools.cache
def _locale(language: str) -> "Locale":
    from babel import Locale  # noqa: PLC0415 - see the module

    return Locale.parse(language, sep="-")


def direction(language: str) -> str:
    """Return the direction in which a language is written: ltr or rtl."""
    return "rtl" if language.partition("-")[0] in _RIGHT_TO_LEFT else "ltr"


@functools.lru_cache(maxsize=1024)
def number(value: int, language: str) -> str:
    """Write a whole number with the separators and digits of the language: 1,145."""
    from babel import numbers  # noqa: PLC0415 - see the module

    return numbers.format_decimal(value, locale=_locale(language))


@functools.lru_cache(maxsize=1024)
def plural_category(count: int, language: str) -> str:
    """Return the CLDR plural category of a number: one, few, other ..."""
    return _locale(language).plural_form(count)


@functools.lru_cache(maxsize=4096)
def moment(value: datetime, language: str) -> str:
    """Write a date and time of day in UTC: November 23, 2026, 5:40 AM UTC."""
    from babel import dates  # noqa: PLC0415 - see the module

    locale, value = _locale(language), value.astimezone(UTC)
    day = dates.format_date(value, "long", locale=locale)
    time = dates.format_time(value, "short", tzinfo=UTC, locale=locale)
    joined = str(dates.get_datetime_format("medium", locale=locale)).replace("'", "")
    return f"{joined.format(time, day)} UTC"


def day(value: datetime, language: str) -> str:
    """Write a date in UTC: Nov 23, 2026."""
    from babel import dates  # noqa: PLC0415 - see the module

    return dates.format_date(value.astimezone(UTC), "medium", locale=_locale(language))


def weekdays(language: str) -> list[str]:
    """Return the short names of the weekdays, beginning with Monday."""
    names = _locale(language).days["format"]["abbreviated"]
    return [names[day] for day in range(7)]


def month(value: date, language: str) -> str:
    """Write a month: Nov 2026."""
    from babel import dates  # noqa: PLC0415 - see the module

    return dates.format_skeleton("yMMM", value, locale=_locale(language))
