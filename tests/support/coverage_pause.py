"""Pause coverage in tests that run the same lines over and over.

Tests that are `slow` or drive a `browser` repeat the same code: in races, in random order, at size,
for every route. So does a parametrized test after its first few values. Measuring takes twice the
processor time. Lines that only these tests reach count as never run, so the report never claims
more than is tested.
"""

import collections
import contextlib
import os
from collections.abc import Iterable, Iterator

import coverage

UNMEASURED = ("slow", "browser")  # markers
MOST = 3  # measured values of one parametrized test
_TELLS_PROGRAMS = "COVERAGE_PROCESS_CONFIG"  # makes programs that a test starts measure themselves


def repeated(tests: Iterable[str]) -> set[str]:
    """Return the ids of parametrized tests that come after the first `MOST` of their function."""
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
    """Stop measuring in this process and in the processes that it starts."""
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
