"""Imports are written in the order of a recursive walk, regardless of their dates."""

import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from comments.domain.records import Status
from comments.transfer.checking import write_order

START = datetime(2020, 1, 1, tzinfo=UTC)


def node(node_id: str, answers: str | None = None, minute: int = 0) -> write_order.Node:
    return write_order.Node(
        id=node_id,
        line=1,
        thread="t",
        answers=answers,
        created=START + timedelta(minutes=minute),
        status=Status.APPROVED,
        place=(0, 0),
    )


def arranged(*nodes: write_order.Node, levels: int = 8) -> list[str]:
    return [each.id for each in write_order.arrange(nodes, levels)]


def test_parents_come_before_replies_and_siblings_by_date() -> None:
    nodes = [node("4", "2", 9), node("3", None, 5), node("2", None, 1), node("5", "2", 3)]
    assert arranged(*nodes) == ["2", "5", "4", "3"]


def test_equal_dates_are_settled_by_the_id_as_a_number() -> None:
    assert arranged(node("10"), node("9"), node("b"), node("a")) == ["a", "b", "9", "10"]


def test_replies_on_the_deepest_level_are_siblings_by_date() -> None:
    nodes = [
        node("1", None, 0),
        node("2", "1", 1),
        node("3", "2", 2),
        node("4", "2", 5),
        node("5", "3", 6),
        node("6", "4", 7),
        node("7", "5", 4),
        node("8", "2", 8),
    ]
    # With three levels, all comments below 2 become its children. 7 answers 5 but has an earlier
    # date.
    assert arranged(*nodes, levels=3) == ["1", "2", "3", "4", "5", "7", "6", "8"]


def test_one_level_makes_everything_a_root() -> None:
    nodes = [node("1", None, 0), node("2", "1", 3), node("3", "2", 4), node("4", None, 2)]
    assert arranged(*nodes, levels=1) == ["1", "4", "2", "3"]


def test_a_long_chain_is_arranged_without_recursion() -> None:
    count = 3 * sys.getrecursionlimit()
    chain = [node(str(n), str(n - 1) if n else None, count - n) for n in range(count)]
    assert arranged(*chain) == [str(n) for n in range(count)]
    assert list(write_order.cycles({each.id: each for each in chain})) == []


def test_each_cycle_is_found_once_without_the_comments_that_lead_to_it() -> None:
    links = {"a": "b", "b": "c", "c": "a", "d": "a", "e": "e", "f": None, "g": "f"}
    nodes = {key: node(key, answers) for key, answers in links.items()}
    circles = [{each.id for each in circle} for circle in write_order.cycles(nodes)]
    assert sorted(circles, key=len) == [{"e"}, {"a", "b", "c"}]


@st.composite
def discussions(draw: st.DrawFn) -> list[write_order.Node]:
    """Draw any links without cycles; each reply is dated after its parent."""
    nodes: list[write_order.Node] = []
    for number in range(draw(st.integers(1, 25))):
        answers = draw(st.none() | st.sampled_from(nodes)) if nodes else None
        earliest = (answers.created - START).seconds // 60 + 1 if answers else 0
        minute = draw(st.integers(earliest, earliest + 5))
        nodes.append(node(str(number), answers.id if answers else None, minute))
    return draw(st.permutations(nodes))


def oracle(nodes: list[write_order.Node], levels: int) -> list[str]:
    """Return the ids in the defined order: compute each place separately, then walk recursively."""
    by_id = {each.id: each for each in nodes}

    def place(each: write_order.Node) -> tuple[str | None, int]:
        if each.answers is None:
            return None, 0
        above, level = place(by_id[each.answers])
        return (above, level) if level == levels - 1 else (each.answers, level + 1)

    def walk(parent: str | None) -> Iterator[str]:
        below = [each for each in nodes if place(each)[0] == parent]
        for each in sorted(below, key=lambda each: (each.created, int(each.id))):
            yield each.id
            yield from walk(each.id)

    return list(walk(None))


@given(discussions(), st.integers(1, 5))
def test_any_discussion_is_arranged_as_a_recursive_walk_by_date(
    nodes: list[write_order.Node], levels: int
) -> None:
    assert [each.id for each in write_order.arrange(nodes, levels)] == oracle(nodes, levels)


@given(discussions(), st.integers(1, 5), st.randoms())
def test_parents_come_before_replies_for_any_dates(
    nodes: list[write_order.Node], levels: int, random: Random
) -> None:
    for each in nodes:
        each.created = START + timedelta(minutes=random.randrange(10))
    order = [each.id for each in write_order.arrange(nodes, levels)]
    assert sorted(order) == sorted(each.id for each in nodes)
    for each in nodes:
        assert each.answers is None or order.index(each.answers) < order.index(each.id)


def test_only_comments_that_must_move_are_displaced() -> None:
    """All comments of the thread get new numbers, but most would fit."""
    nodes = [node("1"), node("2", "1"), node("3", "2", 1), node("4", "1", 2), node("5", None, 3)]
    places = [(None, 0), ("1", 1), ("2", 1), ("1", 2), (None, 4)]
    for each, (above, number) in zip(nodes, places, strict=True):
        each.above, each.number = above, number
    write_order.arrange(nodes, levels=2)
    assert [each.id for each in nodes if each.displaced] == ["3"]
    assert {each.number for each in nodes} == {None}
