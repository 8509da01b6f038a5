"""Coverage is measured where a test shows once what code does, not where it is run for long.

Owns the pause of measuring. Tests that are `slow` or drive a `browser` run the same lines again and
again, in races, in any order, at size, for every route; so does a test that is given more than a
few values. Being measured takes them twice the processor's time. What they alone reach counts as
never run, so the report can only say less than what is tested.
"""

import collections
import contextlib
import os
from collections.abc import Iterable, Iterator

import coverage

UNMEASURED = ("slow", "browser")  # markers
MOST = 3  # of the values that one test is given
_TELLS_PROGRAMS = "COVERAGE_PROCESS_CONFIG"  # what has the programs that a test starts measured


def repeated(tests: Iterable[str]) -> set[str]:
    """Of the ids of tests those that are given a value after `MOST` others."""
    given: collections.Counter[str] = collections.Counter()
    found = set()
    for each in tests:
        function, is_given, _ = each.partition("[")
        given[function] += 1
        if is_given and given[function] > MOST:
            found.add(each)
    return found


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
