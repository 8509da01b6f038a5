"""Audiences are decoded strictly, errors name the place, and combinations mean what sets mean."""

from typing import Any

import pytest
from hypothesis import given

from comments import errors
from comments.domain.counters import audiences
from tests.support import audience_forms
from tests.support.audience_forms import Form

SPORT: Form = {"category": "sport"}
JANUARY = {"since": "2026-01-01", "until": "2026-01-31"}
SOURCES: list[Form] = [
    SPORT, {"category": "news"}, {"category": "sport", **JANUARY}, {"thread": "derby"},
    {"site": True}, {"site": True, **JANUARY},
]  # fmt: skip


@given(audience_forms.questions(SOURCES))
def test_an_audience_has_the_members_that_sets_have(named: dict[str, Form]) -> None:
    """Each author is in some of the sources, so each author is a mask."""
    asked = audience_forms.question(named)
    masks = range(1 << len(asked.sources))

    def of_source(form: Form) -> set[str]:
        (source,) = audience_forms.question({"only": form}).sources
        return {f"{mask}" for mask in masks if mask >> asked.sources.index(source) & 1}

    for place, name in enumerate(asked.names):
        expected = audience_forms.members(named[name], of_source)
        assert {f"{mask}" for mask in masks if place in asked.places(mask)} == expected


def test_the_same_source_is_scanned_once_for_all_audiences() -> None:
    asked = audience_forms.question({
        "one": {"any": [{"category": " Sport "}, {"thread": "derby"}]},
        "two": {"all": [SPORT, {"site": True}]},
    })  # fmt: skip
    assert asked.sources == (
        audiences.Source(category="sport"),
        audiences.Source(thread="derby"),
        audiences.Source(),
    )


def test_a_period_contains_its_first_and_last_day() -> None:
    (source,) = audience_forms.question({"x": {"site": True, **JANUARY}}).sources
    assert [str(day) for day in (source.days[0], source.days[-1])] == [*JANUARY.values()]
    assert len(source.days) == 31
    year = {"site": True, "since": "2024-01-01", "until": "2024-12-31"}
    assert len(audience_forms.question({"x": year}).sources[0].days) == audiences.LONGEST_PERIOD


def _nested(levels: int) -> Form:
    return SPORT if not levels else {"any": [_nested(levels - 1)]}


@pytest.mark.parametrize(
    ("form", "field", "code"),
    [
        ({}, "", "audience-form"),
        ({"but": [SPORT]}, "", "audience-form"),
        ({"category": "sport", "thread": "derby"}, "", "audience-form"),
        ({"category": "sport", "any": [SPORT]}, "", "audience-form"),
        ({"category": "sport", "but": [SPORT]}, "", "audience-form"),
        ({"any": [SPORT], **JANUARY}, "", "audience-form"),
        ({"thread": "derby", **JANUARY}, "", "audience-form"),
        ({"site": False}, "", "audience-form"),
        ({"site": True, "since": "2026-01-01"}, "", "audience-form"),
        ({"site": True, "until": "2026-01-01"}, "", "audience-form"),
        ({"sites": True}, "", "audience-form"),
        ({"site": "yes"}, ".site", "audience-form"),
        ({"any": [SPORT, {"site": True, "since": "May"}]}, ".any[1].since", "audience-form"),
        ({"any": [SPORT], "all": [{"any": SPORT}]}, ".all[0].any", "audience-form"),
        ({"any": [SPORT, {"category": "=1"}]}, ".any[1].category", "bad-category"),
        ({"thread": " "}, ".thread", "required"),
        ({"thread": "x" * 2001}, ".thread", "too-many-bytes"),
        ({"site": True, "since": "2026-02-01", "until": "2026-01-31"},
         ".since", "since-after-until"),
        ({"site": True, "since": "2024-01-01", "until": "2025-01-01"}, "", "period-too-long"),
        ({"site": True, "since": "0001-01-01", "until": "9999-12-31"}, "", "period-too-long"),
        (_nested(4), ".any[0].any[0].any[0]", "audience-too-deep"),
    ],
)  # fmt: skip
def test_a_wrong_audience_is_refused_by_its_place(form: Form, field: str, code: str) -> None:
    with pytest.raises(errors.BadInput) as refused:
        audience_forms.question({"active": form})
    assert (refused.value.code, refused.value.field) == (code, f"audiences.active{field}")


def test_the_deepest_audience_is_accepted() -> None:
    assert audience_forms.question({"x": _nested(3)}).places(1) == (0,)


@pytest.mark.parametrize(
    ("named", "code"),
    [
        ({}, "required"),
        ({f"{n}": SPORT for n in range(21)}, "too-many-items"),
        ({"x": {"any": [{"thread": f"{n}"} for n in range(21)]}}, "too-many-sources"),
        ({"x": {"any": [SPORT] * 101}}, "too-many-sources"),
        ({"": SPORT}, "wrong-length"),
        ({"x" * 101: SPORT}, "wrong-length"),
    ],
)
def test_a_question_is_bounded(named: dict[str, Form], code: str) -> None:
    with pytest.raises(errors.BadInput) as refused:
        audience_forms.question(named)
    assert (refused.value.code, refused.value.field) == (code, "audiences")
    most: Any = {"x": {"any": [{"thread": f"{n % 20}"} for n in range(100)]}}
    assert len(audience_forms.question(most).sources) == 20


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"\xff", b'{"x": "\xff"}', b"[" * 100_000])
def test_text_that_is_no_json_object_is_refused(text: bytes) -> None:
    with pytest.raises(errors.BadInput) as refused:
        audiences.decode_named(text)
    assert (refused.value.field, refused.value.code) == ("audiences", "not-json-object")


def test_an_audience_that_is_nested_without_end_is_refused() -> None:
    endless: Form = {}
    endless["any"] = [endless]
    with pytest.raises(errors.BadInput) as refused:
        audiences.question({"x": endless})
    assert (refused.value.field, refused.value.code) == ("audiences.x", "audience-too-deep")
