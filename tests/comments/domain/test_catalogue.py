"""The catalogue finds texts by key, fills in named values and uses the language's plural forms."""

import html
from datetime import UTC, datetime

import pytest
from babel import Locale

from comments.domain.languages import catalogue, formats

SMALL = catalogue.Catalogue(
    "en",
    {
        "mail": {
            "terms": "Terms & {name}",
            "greeting": "Hello {name}, {name}!",
            "replies": {"one": "{count} reply", "other": "{count} replies"},
        }
    },
)


def test_a_placeholder_is_filled_wherever_it_occurs() -> None:
    assert SMALL.text("mail.greeting", name="{name}") == "Hello {name}, {name}!"
    assert SMALL.text("mail.greeting", name="Ada") == "Hello Ada, Ada!"


def test_a_text_and_its_values_are_escaped_once() -> None:
    filled = SMALL.fill("mail.terms", {"name": "<b>"}, lambda value: html.escape(str(value)))
    assert filled == "Terms &amp; &lt;b&gt;"


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 replies"), (1, "1 reply"), (2, "2 replies"), (1145, "1,145 replies")]
)
def test_a_count_chooses_the_plural_form(count: int, text: str) -> None:
    assert SMALL.text("mail.replies", count=count) == text


def test_arabic_has_six_plural_forms() -> None:
    forms = {formats.plural_category(count, "ar") for count in range(200)}
    assert forms == {"zero", "one", "two", "few", "many", "other"}


@pytest.mark.parametrize(
    "key", ["mail.nothing", "nothing.greeting", "mail.greeting", "mail.replies"]
)
def test_an_unknown_key_or_a_missing_value_is_an_error(key: str) -> None:
    with pytest.raises(KeyError):
        SMALL.text(key)


def test_numbers_and_dates_follow_the_language() -> None:
    moment = datetime(2026, 11, 3, 17, 40, tzinfo=UTC)
    assert formats.number(1_145_000, "de") == "1.145.000"
    assert formats.moment(moment, "en") == "November 3, 2026, 5:40\u202fPM UTC"
    assert formats.moment(moment, "de") == "3. November 2026, 17:40 UTC"
    assert formats.day(moment, "en") == "Nov 3, 2026"
    assert formats.day(moment, "fr") == "3 nov. 2026"


@pytest.mark.parametrize("language", [*catalogue.languages(), "fa", "ur", "zh-Hant"])
def test_the_direction_of_a_language_is_babels(language: str) -> None:
    assert formats.direction(language) == Locale.parse(language, sep="-").text_direction
