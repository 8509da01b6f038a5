"""The counting formula telescopes, does not depend on the path of changes, and never adds zero."""

import itertools
from collections import Counter as Multiset
from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from comments.domain import categories
from comments.domain.counters import counting
from comments.domain.counters.counting import CountedState, Key, Scope
from comments.domain.records import Status
from tests.support.histories import ledger

THREAD = counting.thread_scope("demo/page")
SITE = counting.site_scope("demo")
ANN = counting.author_scope("demo", "g:ann")
ANN_HERE = counting.participation_scope("demo/page", "g:ann")

DIGESTS = {
    "demo/page": "vbWvgfkZuAQq",
    "demo/other": "P2XCwijFbm2z",
}  # Stored, so they must never change.
GROUPS = {"demo/page": "61", "demo/other": "63"}  # Stored, so they must never change.

states = st.builds(
    CountedState,
    site=st.sampled_from(["demo", "blog"]),
    thread=st.sampled_from(["demo/page", "demo/other"]),
    author=st.sampled_from(["", "g:ann", "g:bob"]),
    status=st.sampled_from([status.value for status in Status]),
    listed=st.booleans(),
    up=st.integers(0, 5),
    down=st.integers(0, 5),
    categories=st.lists(
        st.sampled_from(["news", "sport", "sport/football", "sport/football/women", "sport/rugby"]),
        unique=True,
        max_size=categories.MOST,
    ).map(tuple),
    day=st.sampled_from(["", "2026-01-31", "2026-02-01"]),
    hour=st.sampled_from(["", "00", "23"]),
)
perhaps = st.none() | states
COMMENTS = (*counting.IN_THREAD, *counting.FROM_EVENTS)
paths = st.lists(perhaps, min_size=2, max_size=8)


def along(path: list[CountedState | None]) -> dict[Key, int]:
    steps = itertools.pairwise(path)
    return counting.total(counting.increments(COMMENTS, *step) for step in steps)


def statistics(state: CountedState) -> Iterable[Scope]:
    filed = ledger.filed_under(state.categories)
    for category in filed:
        yield Scope("category", state.site, category=category)
    if state.day:
        for category in ("", *filed):
            yield Scope("day", state.site, category=category, day=state.day)


def in_periods(state: CountedState) -> Iterable[Key]:
    if state.status != "approved" or not state.day:
        return
    month = Scope("month", state.site, category=GROUPS[state.thread], day=state.day[:7])
    yield Key(month, f"t{state.day[8:]}{state.thread.removeprefix(state.site)}")
    if state.author:
        yield Key(month, f"a{state.day[8:]}{state.author}")
    if state.hour:
        yield Key(month, f"h{state.day[8:]}{state.hour}")
    day = Scope("day", state.site, day=state.day)
    yield from [Key(day, "up")] * state.up
    yield from [Key(day, "down")] * state.down


def recounted(comments: Iterable[CountedState]) -> dict[Key, int]:
    """Count all comments without the registry, as the oracle for the tests."""
    found: Multiset[Key] = Multiset()
    for state in comments:
        scopes = [counting.thread_scope(state.thread), counting.site_scope(state.site)]
        if state.author:
            scopes.append(counting.author_scope(state.site, state.author))
            scopes.append(counting.participation_scope(state.thread, state.author))
        for scope in scopes:
            found[Key(scope, state.status)] += 1
            if state.status == "approved":
                found[Key(scope, "up")] += state.up
                found[Key(scope, "down")] += state.down
                found[Key(scope, "score")] += state.up - state.down
        if state.listed:
            found[Key(scopes[0], "listed")] += 1
            found[Key(counting.listings_scope(state.site), DIGESTS[state.thread])] += 1
        for scope in statistics(state):
            found[Key(scope, state.status)] += 1
            if state.author and state.status == "approved":
                found[Key(scope._replace(author=state.author), "approved")] += 1
        found.update(in_periods(state))
    return {key: number for key, number in found.items() if number}


@given(paths)
def test_increments_telescope_over_any_sequence_of_changes(path: list[CountedState | None]) -> None:
    assert along(path) == counting.increments(COMMENTS, path[0], path[-1])


@given(perhaps, perhaps, st.lists(perhaps), st.lists(perhaps))
def test_every_path_to_a_state_adds_the_same(
    first: CountedState | None,
    last: CountedState | None,
    one_way: list[CountedState | None],
    another: list[CountedState | None],
) -> None:
    assert along([first, *one_way, last]) == along([first, *another, last])


@given(perhaps, perhaps)
def test_zero_is_never_added(old: CountedState | None, new: CountedState | None) -> None:
    assert 0 not in counting.increments(COMMENTS, old, new).values()


@given(perhaps)
def test_an_unchanged_state_adds_nothing(state: CountedState | None) -> None:
    assert counting.increments(COMMENTS, state, state) == {}


@given(st.lists(st.tuples(st.integers(0, 5), perhaps), max_size=30))
def test_counters_equal_their_recount_after_any_changes(
    changes: list[tuple[int, CountedState | None]],
) -> None:
    comments: dict[int, CountedState | None] = {}
    stored: dict[Key, int] = {}
    for place, state in changes:
        more = counting.increments(COMMENTS, comments.get(place), state)
        stored = counting.total([stored, more])
        comments[place] = state
    assert stored == recounted(state for state in comments.values() if state is not None)


def test_a_post_counts_in_its_thread_and_site_and_for_its_author() -> None:
    posted = CountedState("demo", "demo/page", "g:ann", "approved", listed=True)
    assert counting.increments(COMMENTS, None, posted) == {
        Key(THREAD, "approved"): 1,
        Key(THREAD, "listed"): 1,
        Key(SITE, "approved"): 1,
        Key(ANN, "approved"): 1,
        Key(ANN_HERE, "approved"): 1,
        Key(counting.listings_scope("demo"), DIGESTS["demo/page"]): 1,
    }


def test_a_retraction_subtracts_the_comment_and_its_votes_from_the_author() -> None:
    posted = CountedState("demo", "demo/page", "g:ann", "approved", listed=True, up=3, down=1)
    gone = CountedState("demo", "demo/page", "", "retracted", listed=True, up=3, down=1)
    assert counting.by_scope(counting.increments(counting.FROM_EVENTS, posted, gone)) == {
        SITE: {"approved": -1, "retracted": 1, "up": -3, "down": -1, "score": -2},
        ANN: {"approved": -1, "up": -3, "down": -1, "score": -2},
    }  # A tombstone stays listed.


def test_a_move_subtracts_from_one_thread_what_it_adds_to_the_other() -> None:
    here = CountedState("demo", "demo/page", "g:ann", "approved", listed=True, up=1)
    there = here._replace(thread="demo/other")
    moved = counting.by_scope(counting.increments(COMMENTS, here, there))
    counted = {"approved": 1, "listed": 1, "up": 1, "score": 1}
    assert moved[counting.thread_scope("demo/other")] == counted
    assert moved[THREAD] == {name: -number for name, number in counted.items()}
    assert SITE not in moved
    assert ANN not in moved


def test_a_comment_counts_in_each_category_of_its_thread_and_on_its_day() -> None:
    posted = CountedState(
        "demo", "demo/page", "g:ann", "approved", listed=True, up=2,
        categories=("news", "sport"), day="2026-01-31",
    )  # fmt: skip
    one = {"approved": 1}
    assert counting.by_scope(counting.increments(counting.STATISTICS, None, posted)) == {
        Scope("category", "demo", "", "news"): one,
        Scope("category", "demo", "", "sport"): one,
        Scope("category", "demo", "g:ann", "news"): one,
        Scope("category", "demo", "g:ann", "sport"): one,
        Scope("day", "demo", "", "", "2026-01-31"): {"approved": 1, "up": 2},
        Scope("day", "demo", "", "news", "2026-01-31"): one,
        Scope("day", "demo", "", "sport", "2026-01-31"): one,
        Scope("day", "demo", "g:ann", "", "2026-01-31"): one,
        Scope("day", "demo", "g:ann", "news", "2026-01-31"): one,
        Scope("day", "demo", "g:ann", "sport", "2026-01-31"): one,
        Scope("month", "demo", "", "61", "2026-01"): {"t31/page": 1, "a31g:ann": 1},
    }


def test_a_change_of_categories_moves_only_the_category_counts() -> None:
    before = CountedState(
        "demo", "demo/page", "g:ann", "approved", listed=True, up=2,
        categories=("news", "sport"), day="2026-01-31",
    )  # fmt: skip
    after = before._replace(categories=("sport", "travel"))
    moved = counting.by_scope(counting.increments(COMMENTS, before, after))
    assert {scope.category for scope in moved} == {"news", "travel"}
    for scope, numbers in moved.items():
        assert numbers == {"approved": 1 if scope.category == "travel" else -1}


def test_a_comment_counts_once_in_each_category_above_those_of_its_thread() -> None:
    state = CountedState(
        "demo", "demo/page", "g:ann", "approved", listed=True,
        categories=("news", "sport", "sport/football/women", "sport/rugby"),
    )  # fmt: skip
    found = counting.by_scope(counting.increments(counting.STATISTICS, None, state))
    filed = {"news", "sport", "sport/football", "sport/football/women", "sport/rugby"}
    places = {Scope("category", "demo", author, each) for author in ("", "g:ann") for each in filed}
    assert found == {place: {"approved": 1} for place in places}


def test_a_move_within_a_category_leaves_its_numbers() -> None:
    before = CountedState(
        "demo", "demo/page", "g:ann", "approved", listed=True, categories=("sport/football",)
    )
    after = before._replace(categories=("sport/rugby",))
    moved = counting.increments(COMMENTS, before, after)
    assert {key.scope.category for key in moved} == {"sport/football", "sport/rugby"}


def test_a_comment_counts_in_the_maximum_number_of_categories() -> None:
    names = tuple(f"{n}" for n in range(categories.MOST))
    state = CountedState("demo", "demo/page", "", "spam", listed=False, categories=names)
    found = counting.increments(counting.STATISTICS, None, state)
    assert {key.scope.category for key in found} == set(names)


def test_a_held_comment_adds_no_author_to_statistics() -> None:
    held = CountedState("demo", "demo/page", "g:ann", "pending", listed=False, day="2026-01-31")
    assert counting.increments(counting.STATISTICS, None, held) == {
        Key(counting.day_scope("demo", "2026-01-31"), "pending"): 1
    }


@given(st.lists(st.integers(0, 3), min_size=2, max_size=8))
def test_participants_change_when_a_number_leaves_or_returns_to_zero(
    numbers: list[int],
) -> None:
    steps = [{"approved": number, "pending": 1} for number in numbers]
    found = [counting.presence(old, new) for old, new in itertools.pairwise(steps)]
    expected = (numbers[-1] > 0) - (numbers[0] > 0)
    assert sum(each["participants"] for each in found) == expected


@given(
    st.dictionaries(st.sampled_from("abc"), st.integers(-3, 3)),
    st.dictionaries(st.sampled_from("abc"), st.integers(-3, 3)),
)
def test_sums_contain_no_zero(numbers: dict[str, int], more: dict[str, int]) -> None:
    sums = counting.sums(numbers, more)
    assert 0 not in sums.values()
    assert all(sums.get(n, 0) == numbers.get(n, 0) + more.get(n, 0) for n in "abc")
