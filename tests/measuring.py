"""Coverage is measured where a test shows once what code does, not where it is run for long.

Owns the pause of measuring. Tests that are `slow` or drive a `browser` run the same lines again and
again, in races, in any order, at size, for every route; being measured makes them half as long
again. What they alone reach counts as never run, so the report can only say less than what is
tested.
"""

import contextlib
import os
from collections.abc import Iterator

import coverage

UNMEASURED = ("slow", "browser")  # markers
_TELLS_PROGRAMS = "COVERAGE_PROCESS_CONFIG"  # what has the programs that a test starts measured


@contextlib.contextmanager
def paused() -> Iterator[None]:
    """Measure nothing here, neither in this process nor in those that it starts."""
    measuring = coverage.Coverage.current()
    if measuring is None:
        yield
        return
    told = os.environ.pop(_TELLS_PROGRAMS, None)
    measuring.stop()
    try:
        yield
    finally:
        measuring.start()
        if told is not None:
            os.environ[_TELLS_PROGRAMS] = told
