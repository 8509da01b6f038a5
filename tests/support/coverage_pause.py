"""Pause coverage in tests that run the same lines repeatedly.

Tests marked `slow` or `browser` run the same code repeatedly: in races, in random order, with many
rows, for every route. A parametrized test repeats its code for every value after the first, and a
Hypothesis test for every example after the first few. Measuring doubles the processor time. Lines
that only these tests, values and examples reach count as never run, so the report never claims more
coverage than the measured tests have.
"""

import contextlib
import functools
import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import coverage

UNMEASURED = ("slow", "browser")  # Markers.
EXAMPLES = 10  # Measured examples of a Hypothesis test.
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


def save() -> None:
    """Write what this process has measured so far."""
    measuring = coverage.Coverage.current()
    if measuring is not None:
        measuring.save()


@contextlib.contextmanager
def paused_after_first_examples(test: object) -> Iterator[None]:
    """Stop measuring when a Hypothesis test has run its first examples; resume at the end."""
    handle = getattr(test, "hypothesis", None)
    if handle is None:
        yield
        return
    with contextlib.ExitStack() as pause:
        # Hypothesis documents that plugins may replace the inner test.
        run_example = handle.inner_test
        handle.inner_test = _limited(run_example, lambda: pause.enter_context(paused()))
        try:
            yield
        finally:
            handle.inner_test = run_example


def _limited(run_example: Callable[..., Any], pause: Callable[[], object]) -> Callable[..., Any]:
    """Return a function that runs an example and calls `pause` after the measured examples."""
    numbers = itertools.count(1)

    @functools.wraps(run_example)  # Hypothesis reads the signature, and the source for its seed.
    def run(*args: Any, **kwargs: Any) -> Any:
        if next(numbers) == EXAMPLES + 1:
            pause()
        return run_example(*args, **kwargs)

    return run
