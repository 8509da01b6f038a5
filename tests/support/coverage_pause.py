"""Pause coverage in tests that run the same lines repeatedly.

Tests marked `slow` or `browser` run the same code repeatedly: in races, in random order, with many
rows, for every route. A parametrized test repeats its code for every value after the first.
Measuring doubles the processor time. Lines that only these tests reach count as never run, so the
report never claims more coverage than the measured tests have.
"""

import contextlib
import os
from collections.abc import Iterable, Iterator

import coverage

UNMEASURED = ("slow", "browser")  # Markers.
_TELLS_PROGRAMS = "COVERAGE_PROCESS_CONFIG"  # Makes a test's programs measure coverage.


def repeated(tests: Iterable[str]) -> set[str]:
    """Return the ids of the tests that call a test function with any value except the first."""
    seen = set()
    found = set()
    for each in tests:
        function, is_given, _ = each.partition("[")
        if is_given and function in seen:
            found.add(each)
        seen.add(function)
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
