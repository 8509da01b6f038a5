"""Requests that wait for one another, as a test sees them: how many there are, and from when on."""

from emulator import inprocess
from tests import programs


def waiting(engine: inprocess.Engine) -> int:
    """How many requests wait in an engine."""
    return len(engine._transactions._locks._waiters)


def until_waiting(engine: inprocess.Engine, number: int) -> None:
    programs.wait_until(lambda: waiting(engine) == number, f"{number} requests wait")
