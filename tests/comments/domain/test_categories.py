"""Equivalent spellings of a category name share one canonical form, which is stable."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comments import errors
from comments.domain import categories


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("News", "news"),
        ("  How  to ", "how to"),
        ("STRASSE", "strasse"),
        ("Straße", "strasse"),
        ("Cafe\u0301", "caf\u00e9"),
        ("\uff33\uff50\uff4f\uff52\uff54", "sport"),  # Full width
        ("R&D, e.g. C++: '26_a-b", "r&d, e.g. c++: '26_a-b"),
        ("\u6280\u8853", "\u6280\u8853"),
        ("x\u00a0y", "x y"),
        ("Sport / Football/WOMEN ", "sport/football/women"),
        ("9/11", "9/11"),
    ],
)
def test_the_canonical_form_is_stable(raw: str, expected: str) -> None:
    """A change to the canonical form would split stored counts."""
    assert categories.canonical(raw) == expected


@pytest.mark.parametrize(
    "raw",
    [
        "", "  ", "/", "/a", "a/", "a//b", "a/ /b", "a/=1", "a/b/c/d", "a\uff0fb", "\u2100",
        "a/" + "x" * 51, "a/" * 10_000, "a\nb", "a\x00",
        "=1+1", "-x", "+1", "@x", "#1", "<b>", "a\u202eb",
        "\ud800", "\u3164", "a\u115f", "x" * 51, "x" * 10_000, "\ufdfa" * 5, "a;b", '"',
    ],
)  # fmt: skip
def test_an_invalid_name_is_refused_by_field(raw: str) -> None:
    with pytest.raises(errors.BadInput) as refused:
        categories.canonical(raw)
    assert refused.value.field == "categories"


def test_a_category_with_too_many_parts_is_refused_by_name() -> None:
    with pytest.raises(errors.BadInput, match=r"category-too-deep \(limit=3\)"):
        categories.canonical("a/b/c/d")


def test_the_categories_above_a_category_are_listed_once_each() -> None:
    assert [*categories.lineage("sport/football/women")] == [
        "sport", "sport/football", "sport/football/women"
    ]  # fmt: skip
    assert categories.with_ancestors(()) == ()
    assert categories.with_ancestors(["news", "sport/football", "sport/rugby", "sport"]) == (
        "news", "sport", "sport/football", "sport/rugby"
    )  # fmt: skip


@pytest.mark.slow
@given(st.text(max_size=20) | st.lists(st.text(max_size=6), max_size=4).map("/".join))
def test_a_canonical_form_is_its_own_form_and_fits_a_key(raw: str) -> None:
    try:
        form = categories.canonical(raw)
    except errors.BadInput:
        return
    assert categories.canonical(form) == form
    parts = form.split("/")
    assert len(parts) <= categories.DEEPEST
    for part in parts:
        assert categories.canonical(part) == part
        assert 0 < len(part) <= categories.LONGEST
        # Only then are the keys of a subtree one range (`counter_rows`).
        assert min(part) > "\x1f"


@pytest.mark.slow
def test_a_single_character_is_refused_or_has_a_canonical_form() -> None:
    """Try most scripts, each character that Unicode folds or normalizes, and one of 64 others."""
    for number in range(0x110000):
        character = chr(number)
        changed = unicodedata.normalize("NFKC", character.casefold())
        if number >= 0x3000 and changed == character and number % 64:
            continue
        try:
            form = categories.canonical(character)
        except errors.BadInput:
            continue
        assert categories.canonical(form) == form
        assert unicodedata.category(form[0])[0] in "LN"


def test_a_set_contains_each_category_once_in_order_up_to_the_limit() -> None:
    assert categories.canonical_set(["Sport", "news", "NEWS"]) == ("news", "sport")
    names = [f"c{n}" for n in range(categories.MOST)]
    assert categories.canonical_set([*names, *names]) == tuple(names)
    with pytest.raises(errors.BadInput, match=r"too-many-items \(limit=5\)") as refused:
        categories.canonical_set([*names, "another"])
    assert refused.value.field == "categories"
