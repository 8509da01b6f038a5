"""Laws of the one formula: it telescopes, forgets the path, and never adds zero."""

import itertools
from collections import Counter as Multiset
from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from comments import counters
from comments.counters import Key, State
from comments.records import Status

THREAD = counters.thread_scope("demo/page")
SITE = counters.site_scope("demo")
ANN = counters.author_scope("demo", "g:ann")
ANN_HERE = counters.participation_scope("demo/page", "g:ann")

states = st.builds(
    State,
    site=st.sampled_from(["demo", "blog"]),
    thread=st.sampled_from(["demo/page", "demo/other"]),
    author=st.sampled_from(["", "g:ann", "g:bob"]),
    status=st.sampled_from([status.value for status in Status]),
    listed=st.booleans(),
    up=st.integers(0, 5),
    down=st.integers(0, 5),
)
perhaps = st.none() | states
paths = st.lists(perhaps, min_size=2, max_size=8)


def along(path: list[State | None]) -> dict[Key, int]:
    steps = itertools.pairwise(path)
    return counters.total(counters.increments(counters.COMMENTS, *step) for step in steps)


def recounted(comments: Iterable[State]) -> dict[Key, int]:
    """Every counter by looking at all comments: the oracle, written without the registry."""
    found: Multiset[Key] = Multiset()
    for state in comments:
        scopes = [counters.thread_scope(state.thread), counters.site_scope(state.site)]
        if state.author:
            scopes.append(counters.author_scope(state.site, state.author))
            scopes.append(counters.participation_scope(state.thread, state.author))
        for scope in scopes:
            found[Key(scope, state.status)] += 1
            if state.status == "approved":
                found[Key(scope, "up")] += state.up
                found[Key(scope, "down")] += state.down
                found[Key(scope, "score")] += state.up - state.down
        if state.listed:
            found[Key(scopes[0], "listed")] += 1
    return {key: number for key, number in found.items() if number}


@given(paths)
def test_increments_telescope_over_any_sequence_of_changes(path: list[State | None]) -> None:
    assert along(path) == counters.increments(counters.COMMENTS, path[0], path[-1])


@given(perhaps, perhaps, st.lists(perhaps), st.lists(perhaps))
def test_every_path_to_a_state_adds_the_same(
    first: State | None,
    last: State | None,
    one_way: list[State | None],
    another: list[State | None],
) -> None:
    assert along([first, *one_way, last]) == along([first, *another, last])


@given(perhaps, perhaps)
def test_nothing_is_added_zero(old: State | None, new: State | None) -> None:
    assert 0 not in counters.increments(counters.COMMENTS, old, new).values()


@given(perhaps)
def test_what_did_not_change_adds_nothing(state: State | None) -> None:
    assert counters.increments(counters.COMMENTS, state, state) == {}


@given(st.lists(st.tuples(st.integers(0, 5), perhaps), max_size=30))
def test_counters_equal_their_recount_after_any_changes(
    changes: list[tuple[int, State | None]],
) -> None:
    comments: dict[int, State | None] = {}
    stored: dict[Key, int] = {}
    for place, state in changes:
        more = counters.increments(counters.COMMENTS, comments.get(place), state)
        stored = counters.total([stored, more])
        comments[place] = state
    assert stored == recounted(state for state in comments.values() if state is not None)


def test_a_post_counts_in_its_thread_its_site_and_with_its_author() -> None:
    posted = State("demo", "demo/page", "g:ann", "approved", listed=True)
    assert counters.increments(counters.COMMENTS, None, posted) == {
        Key(THREAD, "approved"): 1,
        Key(THREAD, "listed"): 1,
        Key(SITE, "approved"): 1,
        Key(ANN, "approved"): 1,
        Key(ANN_HERE, "approved"): 1,
    }


def test_a_retraction_takes_the_author_his_comment_and_its_votes() -> None:
    posted = State("demo", "demo/page", "g:ann", "approved", listed=True, up=3, down=1)
    gone = State("demo", "demo/page", "", "retracted", listed=True, up=3, down=1)
    assert counters.by_scope(counters.increments(counters.FROM_EVENTS, posted, gone)) == {
        SITE: {"approved": -1, "retracted": 1, "up": -3, "down": -1, "score": -2},
        ANN: {"approved": -1, "up": -3, "down": -1, "score": -2},
    }


def test_a_move_takes_from_one_thread_what_it_gives_the_other() -> None:
    here = State("demo", "demo/page", "g:ann", "approved", listed=True, up=1)
    there = here._replace(thread="demo/other")
    moved = counters.by_scope(counters.increments(counters.COMMENTS, here, there))
    counted = {"approved": 1, "listed": 1, "up": 1, "score": 1}
    assert moved[counters.thread_scope("demo/other")] == counted
    assert moved[THREAD] == {name: -number for name, number in counted.items()}
    assert SITE not in moved
    assert ANN not in moved


@given(st.lists(st.integers(0, 3), min_size=2, max_size=8))
def test_a_participant_is_counted_when_the_number_leaves_or_returns_to_zero(
    numbers: list[int],
) -> None:
    steps = [{"approved": number, "pending": 1} for number in numbers]
    found = counters.total(
        counters.presence(THREAD, old, new) for old, new in itertools.pairwise(steps)
    )
    expected = (numbers[-1] > 0) - (numbers[0] > 0)
    assert found == ({Key(THREAD, "participants"): expected} if expected else {})


@given(
    st.dictionaries(st.sampled_from("abc"), st.integers(-3, 3)),
    st.dictionaries(st.sampled_from("abc"), st.integers(-3, 3)),
)
def test_added_numbers_hold_no_zero(numbers: dict[str, int], more: dict[str, int]) -> None:
    sums = counters.added(numbers, more)
    assert 0 not in sums.values()
    assert all(sums.get(n, 0) == numbers.get(n, 0) + more.get(n, 0) for n in "abc")
