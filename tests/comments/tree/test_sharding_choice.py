"""Claims about shards: writers of one process that do not meet stay apart, and nothing piles up."""

import pytest

from comments.domain import records
from comments.tree.counters import sharding
from comments.tree.counters.sharding import Shards

NAME = records.ThreadName("demo", "page")


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def known(clock: Clock) -> Shards:
    return Shards(clock)


def test_at_rest_there_is_one_shard_and_nothing_is_kept(known: Shards) -> None:
    with known.turn(NAME) as turn:
        assert turn.take() == 0
        assert turn.end() == 0
    assert len(known) == 0


def test_an_aborted_run_takes_another_shard_and_the_next_transaction_keeps_to_it(
    known: Shards,
) -> None:
    known.learn(NAME, 8)
    with known.turn(NAME) as turn:
        first, second = turn.take(), turn.take()
        turn.end()
    assert first != second
    with known.turn(NAME) as turn:
        assert turn.take() == second
        turn.end()


def test_writers_at_once_take_different_shards(known: Shards) -> None:
    known.learn(NAME, 8)
    turns = [sharding.Turn(known, NAME) for _ in range(8)]
    assert len({turn.take() for turn in turns}) == 8


def test_more_writers_than_shards_share_them(known: Shards) -> None:
    known.learn(NAME, 2)
    turns = [sharding.Turn(known, NAME) for _ in range(5)]
    assert {turn.take() for turn in turns} == {0, 1}


def test_a_conflict_asks_for_four_shards_for_each_writer_and_no_more(
    known: Shards, clock: Clock
) -> None:
    turns = [sharding.Turn(known, NAME) for _ in range(3)]
    for turn in turns:
        turn.take()
    turns[0].take()
    assert turns[0].end() == 12
    known.learn(NAME, 12)
    clock.now += sharding.SPREAD_EVERY
    turns[1].take()
    assert turns[1].end() == 0


def test_a_process_tries_to_spread_a_thread_once_a_second(known: Shards, clock: Clock) -> None:
    turns = [sharding.Turn(known, NAME) for _ in range(3)]
    for turn in turns:
        turn.take()
        turn.take()
    assert [turns[0].end() > 0, turns[1].end() > 0] == [True, False]
    clock.now += sharding.SPREAD_EVERY
    assert turns[2].end() > 0


def test_there_are_never_more_than_the_most(known: Shards) -> None:
    turns = [sharding.Turn(known, NAME) for _ in range(40)]
    for turn in turns:
        turn.take()
    turns[0].take()
    assert turns[0].end() == sharding.MOST


def test_a_shard_that_is_no_longer_there_is_not_taken(known: Shards) -> None:
    known.learn(NAME, 8)
    turns = [sharding.Turn(known, NAME) for _ in range(8)]
    for turn in turns:
        turn.take()
        turn.end()
    known.learn(NAME, 1)
    again = sharding.Turn(known, NAME)
    assert again.take() == 0


def test_a_thread_is_quiet_a_while_after_its_last_conflict(known: Shards, clock: Clock) -> None:
    known.learn(NAME, 8)
    with known.turn(NAME) as turn:
        turn.take()
        turn.take()
        clock.now += sharding.QUIET
        assert known.quiet() == []  # it is being written
        turn.end()
    assert known.quiet() == []
    clock.now += sharding.QUIET
    assert known.quiet() == [NAME]
    known.forget(NAME)
    assert len(known) == 0


def test_what_goes_wrong_ends_a_turn(known: Shards) -> None:
    def fail() -> None:
        with known.turn(NAME) as turn:
            turn.take()
            raise ValueError("planned")

    with pytest.raises(ValueError, match="planned"):
        fail()
    with known.turn(NAME) as turn:
        assert turn.take() == 0  # the first writer is free again
        turn.end()
    assert len(known) == 0
