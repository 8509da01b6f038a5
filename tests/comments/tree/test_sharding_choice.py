"""Writers in one process choose different shards, and no state accumulates."""

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


def test_an_idle_thread_has_one_shard_and_no_state(known: Shards) -> None:
    with known.turn(NAME) as turn:
        assert turn.take() == 0
        assert turn.end() == 0
    assert len(known) == 0


def test_an_aborted_attempt_takes_another_shard_which_the_next_transaction_keeps(
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


def test_two_processes_use_different_shards_after_their_first_conflict(
    known: Shards, clock: Clock
) -> None:
    others = Shards(clock)
    with known.turn(NAME) as loses, others.turn(NAME) as wins:
        assert [loses.take(), wins.take(), loses.take()] == [0, 0, 0]  # There is one shard.
        assert [loses.end(), wins.end()] == [4, 0]
    for each in (known, others):  # One process spreads the thread; both read the number.
        each.learn(NAME, 4)
    for _ in range(2):
        with known.turn(NAME) as one, others.turn(NAME) as two:
            shards = one.take(), two.take()
            one.end(), two.end()
        assert shards[0] != shards[1] == 0
    with known.turn(NAME) as first:
        assert first.take() == shards[0]  # The writer keeps its shard.
        first.end()


def test_a_conflict_is_remembered_until_there_are_more_shards(known: Shards) -> None:
    with known.turn(NAME) as turn:
        assert [turn.take(), turn.take()] == [0, 0]
        turn.end()
    with known.turn(NAME) as turn:
        assert turn.take() == 0
        turn.count = 2
        turn.end()
    with known.turn(NAME) as turn:
        assert turn.take() == 1
        turn.end()


def test_concurrent_writers_take_different_shards(known: Shards) -> None:
    known.learn(NAME, 8)
    turns = [sharding.TransactionShard(known, NAME) for _ in range(8)]
    assert len({turn.take() for turn in turns}) == 8


def test_more_writers_than_shards_share_them(known: Shards) -> None:
    known.learn(NAME, 2)
    turns = [sharding.TransactionShard(known, NAME) for _ in range(5)]
    assert {turn.take() for turn in turns} == {0, 1}


def test_a_conflict_requests_four_shards_per_writer(known: Shards, clock: Clock) -> None:
    turns = [sharding.TransactionShard(known, NAME) for _ in range(3)]
    for turn in turns:
        turn.take()
    turns[0].take()
    assert turns[0].end() == 12
    known.learn(NAME, 12)
    clock.now += sharding.SPREAD_EVERY
    turns[1].take()
    assert turns[1].end() == 0


def test_a_process_spreads_a_thread_at_most_once_a_second(known: Shards, clock: Clock) -> None:
    turns = [sharding.TransactionShard(known, NAME) for _ in range(3)]
    for turn in turns:
        turn.take()
        turn.take()
    assert [turns[0].end() > 0, turns[1].end() > 0] == [True, False]
    clock.now += sharding.SPREAD_EVERY
    assert turns[2].end() > 0


def test_the_number_of_shards_is_limited(known: Shards) -> None:
    turns = [sharding.TransactionShard(known, NAME) for _ in range(40)]
    for turn in turns:
        turn.take()
    turns[0].take()
    assert turns[0].end() == sharding.MOST


def test_a_removed_shard_is_not_taken(known: Shards) -> None:
    known.learn(NAME, 8)
    turns = [sharding.TransactionShard(known, NAME) for _ in range(8)]
    for turn in turns:
        turn.take()
        turn.end()
    known.learn(NAME, 1)
    again = sharding.TransactionShard(known, NAME)
    assert again.take() == 0


def test_a_thread_is_quiet_some_time_after_its_last_conflict(known: Shards, clock: Clock) -> None:
    known.learn(NAME, 8)
    with known.turn(NAME) as turn:
        turn.take()
        turn.take()
        clock.now += sharding.QUIET
        assert known.quiet() == []  # A writer is still at work
        turn.end()
    assert known.quiet() == []
    clock.now += sharding.QUIET
    assert known.quiet() == [NAME]
    known.forget(NAME)
    assert len(known) == 0


def test_an_exception_ends_a_turn(known: Shards) -> None:
    def fail() -> None:
        with known.turn(NAME) as turn:
            turn.take()
            raise ValueError("planned")

    with pytest.raises(ValueError, match="planned"):
        fail()
    with known.turn(NAME) as turn:
        assert turn.take() == 0  # The first writer's shard is free again
        turn.end()
    assert len(known) == 0
