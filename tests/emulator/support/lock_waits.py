"""Waiting requests in tests: how many there are, and waiting until there are enough."""

from concurrent import futures

from emulator import inprocess
from tests.emulator.support.service_calls import Service, upsert
from tests.support import programs


def waiting(engine: inprocess.Engine) -> int:
    """Return how many requests wait in an engine."""
    return len(engine._transactions._locks._waiters)


def until_waiting(engine: inprocess.Engine, number: int) -> None:
    programs.wait_until(lambda: waiting(engine) == number, f"{number} requests wait")


def cross(
    first: Service, second: Service, engine: inprocess.Engine, threads: futures.Executor
) -> None:
    """Let two transactions each read what the other then changes; the younger waits, in `engine`.

    The older one commits. The result of the younger one's commit is returned or raised.
    """
    one, two = first.key("T", 1), first.key("T", 2)
    older, younger = first.begin(), second.begin()
    first.get(one, transaction=older)
    second.get(two, transaction=younger)
    commit = threads.submit(second.commit, upsert(second, one), transaction=younger)
    until_waiting(engine, 1)
    first.commit(upsert(first, two), transaction=older)
    commit.result(programs.PATIENCE)
