"""Waiting requests in tests: counting them, and waiting until enough requests wait."""

from concurrent import futures
from typing import Any

from datastore_emulator import inprocess
from emulator.tests.support.service_calls import Service, upsert
from tests.support import programs


def waiting(engine: inprocess.Engine) -> int:
    """Return the number of waiting requests in an engine."""
    return len(engine._transactions._locks._waiters)


def until_waiting(engine: inprocess.Engine, number: int) -> None:
    programs.wait_until(lambda: waiting(engine) == number, f"{number} requests wait")


def cross(
    first: Service, second: Service, engine: inprocess.Engine, threads: futures.Executor
) -> None:
    """Make two transactions each read data that the other transaction then changes.

    The younger transaction waits in `engine`, and the older transaction commits. Return the result
    of the younger transaction's commit, or raise its error.
    """
    one, two = first.key("T", 1), first.key("T", 2)
    older, younger = first.begin(), second.begin()
    first.get(one, transaction=older)
    second.get(two, transaction=younger)
    commit = threads.submit(second.commit, upsert(second, one), transaction=younger)
    until_waiting(engine, 1)
    first.commit(upsert(first, two), transaction=older)
    commit.result(programs.PATIENCE)


def make_busy(
    engine: inprocess.Engine, service: Service, key: Any, threads: futures.Executor
) -> None:
    """Let two transactions of a process conflict on an entity, so that its next readers queue."""
    begun = [service.begin() for _ in range(2)]
    for transaction in begun:
        service.get(key, transaction=transaction)
    commit = threads.submit(service.commit, upsert(service, key, turn=1), transaction=begun[0])
    until_waiting(engine, 1)
    service.rollback(begun[1])
    commit.result(programs.PATIENCE)
