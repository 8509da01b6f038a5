"""Declared counters equal a naive count, and bad declarations are refused by name."""

import contextlib
from collections import Counter
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comments import errors
from comments.domain.counters import declared_counters
from comments.domain.counters.counting import CountedChange, CountedState
from comments.domain.counters.declared_counters import CounterKey, DeclaredCounter
from comments.domain.records import Status

CONTROVERSIAL = declared_counters.declare(
    "controversial",
    ["status = approved", "up >= 5", "down >= 5", "score > -3", "score < 3"],
    ["day", "category"],
)
STATE = CountedState(
    "demo",
    "demo/a/page",
    "g:ann",
    "approved",
    listed=True,
    up=6,
    down=5,
    categories=("news", "sport"),
    day="2026-01-31",
    reply=True,
)


def amounts(declared: declared_counters.Declaration, *states: CountedState) -> dict[str, int]:
    """Count states by the places of their numbers."""
    counters = [DeclaredCounter(declared, 7)]
    changes = [CountedChange(None, state) for state in states]
    found = declared_counters.increments(counters, changes)
    assert all(declared_counters.generation_of(name) == 7 for name in found)
    return {
        " ".join(_parts(declared_counters.place_of(name))): amount for name, amount in found.items()
    }


def _parts(place: declared_counters.CountPlace) -> list[str]:
    return [part for part in (place.category, place.day, place.thread, place.author) if part]


def test_controversial_comments_are_counted_by_category_and_day() -> None:
    quiet = STATE._replace(up=50)
    assert amounts(CONTROVERSIAL, STATE, STATE, quiet) == {
        "news 2026-01-31": 2,
        "sport 2026-01-31": 2,
    }
    assert f"{CONTROVERSIAL}" == (
        "comments where status = approved and up >= 5 and down >= 5 and score > -3 and score < 3 "
        "by category, day"
    )


def test_the_name_of_a_number_never_changes() -> None:
    every = declared_counters.declare("every", [], [*CounterKey])
    state = STATE._replace(categories=("sport/football",))
    found = declared_counters.increments([DeclaredCounter(every, 12)], [CountedChange(None, state)])
    place = "\x1e2026-01-31\x1e/a/page\x1eg:ann"
    assert found == {f"12/sport{place}": 1, f"12/sport\x1ffootball{place}": 1}


@pytest.mark.parametrize(
    ("value", "expected"), [("comments", 1), ("up", 6), ("down", 5), ("score", 1)]
)
def test_each_value_can_be_summed(value: str, expected: int) -> None:
    declared = declared_counters.declare("any", value=value)
    assert amounts(declared, STATE) == {"": expected}


@pytest.mark.parametrize(
    ("by", "lacking"),
    [
        ("category", {"categories": ()}),
        ("day", {"day": ""}),
        ("author", {"author": ""}),
    ],
)
def test_a_comment_that_lacks_a_key_does_not_count_by_it(
    by: str, lacking: dict[str, object]
) -> None:
    declared = declared_counters.declare("any", [], [by])
    assert len(amounts(declared, STATE)) == len(STATE.categories if by == "category" else [by])
    assert amounts(declared, STATE._replace(**lacking)) == {}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("status = approved", True),
        ("status!=approved", False),
        ("  listed =  yes ", True),
        ("reply = no", False),
        ("author = guest", True),
        ("author = none", False),
        ("up = 6", True),
        ("up < 6", False),
        ("down <= 5", True),
        ("votes > 10", True),
        ("score >= 2", False),
        ("score > -1", True),
    ],
)
def test_conditions_compare_fields_with_values(condition: str, *, holds: bool) -> None:
    declared = declared_counters.declare("any", [condition])
    assert bool(amounts(declared, STATE)) is holds


@pytest.mark.parametrize(
    ("author", "kind"),
    [("g:x", "guest"), ("a:x", "account"), ("i:x", "imported"), ("", "none")],
)
def test_conditions_can_ask_for_the_kind_of_author(author: str, kind: str) -> None:
    declared = declared_counters.declare("any", [f"author = {kind}"])
    assert amounts(declared, STATE._replace(author=author)) == {"": 1}


@pytest.mark.parametrize(
    ("name", "where", "by", "value", "refusal"),
    [
        ("", [], [], "comments", ("name", "bad-id")),
        ("Controversial", [], [], "comments", ("name", "bad-id")),
        ("a/b", [], [], "comments", ("name", "bad-id")),
        ("a" * 41, [], [], "comments", ("name", "bad-id")),
        ("any", ["up"], [], "comments", ("where", "bad-condition")),
        ("any", ["up >= 5 or down >= 5"], [], "comments", ("where", "bad-condition")),
        ("any", ["__import__('os') = 1"], [], "comments", ("where", "bad-condition")),
        ("any", ["color = red"], [], "comments", ("where", "unknown-counter-field")),
        ("any", ["status > approved"], [], "comments", ("where", "bad-comparison")),
        ("any", ["status = liked"], [], "comments", ("where", "bad-condition-value")),
        ("any", ["up = many"], [], "comments", ("where", "bad-condition-number")),
        ("any", ["up > 9999999999"], [], "comments", ("where", "bad-condition-number")),
        ("any", ["up > 99999999999"], [], "comments", ("where", "bad-condition-number")),
        ("any", ["up > ²"], [], "comments", ("where", "bad-condition")),
        ("any", [f"up > {n}" for n in range(11)], [], "comments", ("where", "too-many-items")),
        ("any", [], ["hour"], "comments", ("by", "unknown-value")),
        ("any", [], [""], "comments", ("by", "unknown-value")),
        ("any", [], [], "votes", ("sum", "unknown-value")),
    ],
)
def test_a_bad_declaration_is_refused_by_the_name_of_the_part(
    name: str, where: Sequence[str], by: Sequence[str], value: str, refusal: tuple[str, str]
) -> None:
    with pytest.raises(errors.BadInput) as caught:
        declared_counters.declare(name, where, by, value)
    assert (caught.value.field, caught.value.code) == refusal


@given(st.text(max_size=30))
def test_any_condition_is_accepted_or_refused(text: str) -> None:
    with contextlib.suppress(errors.BadInput):
        declared = declared_counters.declare("any", [text])
        assert declared_counters.declare("any", [f"{declared.where[0]}"]) == declared


numbers = st.integers(0, 3)
states = st.builds(
    CountedState,
    site=st.just("demo"),
    thread=st.sampled_from(["demo/page", "demo#digest"]),
    author=st.sampled_from(["", "g:ann", "a:bob", "i:eve"]),
    status=st.sampled_from([each.value for each in Status]),
    listed=st.booleans(),
    up=numbers,
    down=numbers,
    categories=st.sampled_from([(), ("news",), ("news/local", "news", "sport")]),
    day=st.sampled_from(["", "2026-01-01", "2026-01-02"]),
    reply=st.booleans(),
)


# Each condition as an owner writes it, and in Python.
CONDITIONS: dict[str, Callable[[CountedState], bool]] = {
    "status = approved": lambda state: state.status == "approved",
    "status != spam": lambda state: state.status != "spam",
    "listed = yes": lambda state: state.listed,
    "reply = no": lambda state: not state.reply,
    "author != none": lambda state: bool(state.author),
    "up >= 2": lambda state: state.up >= 2,
    "down < 2": lambda state: state.down < 2,
    "votes > 1": lambda state: state.up + state.down > 1,
    "score <= 0": lambda state: state.up <= state.down,
    "score = -1": lambda state: state.up == state.down - 1,
}
declarations = st.tuples(
    st.lists(st.sampled_from(list(CONDITIONS)), max_size=3),
    st.sets(st.sampled_from(list(CounterKey))),
    st.sampled_from(["comments", "up", "down", "score"]),
)
histories = st.lists(st.lists(st.none() | states, min_size=1, max_size=4), min_size=1, max_size=5)


@given(declarations, histories)
def test_any_history_of_changes_equals_a_naive_count_of_its_end(
    declaration: tuple[list[str], set[CounterKey], str],
    comments: list[list[CountedState | None]],
) -> None:
    conditions, by, value = declaration
    declared = declared_counters.declare("any", conditions, by, value)
    counters = [DeclaredCounter(declared, 1)]
    changes = [
        CountedChange(old, new)
        for history in comments
        for old, new in zip([None, *history], history, strict=False)
    ]
    expected: Counter[tuple[str, ...]] = Counter()
    for history in comments:
        state = history[-1]
        if state is None or not all(CONDITIONS[each](state) for each in conditions):
            continue
        amount = {"comments": 1, "up": state.up, "down": state.down}.get(
            value, state.up - state.down
        )
        above = {each.partition("/")[0] for each in state.categories}
        for category in {*state.categories, *above} if "category" in by else [""]:
            place = (
                category,
                state.day if "day" in by else "",
                state.thread.removeprefix("demo") if "thread" in by else "",
                state.author if "author" in by else "",
            )
            if all(part or key not in by for part, key in zip(place, CounterKey, strict=True)):
                expected[place] += amount
    found = {
        (place.category, place.day, place.thread, place.author): amount
        for name, amount in declared_counters.increments(counters, changes).items()
        for place in [declared_counters.place_of(name)]
    }
    assert found == {place: amount for place, amount in expected.items() if amount}
