"""Options and selection of all tests: the product's and the emulator's."""

import gc
from collections.abc import Generator, Iterable

import coverage
import pytest

from tests.support import store_runs


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--few-values", action="store_true", help="give each test only its first value"
    )
    parser.addoption(
        "--store", action="store_true", help="use the emulator at DATASTORE_EMULATOR_HOST"
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--store"):
        run = store_runs.StoreRun(store_runs.host())
        config.pluginmanager.register(run, "store-run")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests that --few-values excludes."""
    if config.getoption("--few-values"):
        repeated = _repeated(item.nodeid for item in items)
        config.hook.pytest_deselected(items=[each for each in items if each.nodeid in repeated])
        items[:] = [each for each in items if each.nodeid not in repeated]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Exempt the collected tests from garbage collection: half a million objects that all stay."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def pytest_sessionfinish() -> None:
    """Store what coverage has measured: pytest-xdist kills workers that take 10 seconds to end."""
    measuring = coverage.Coverage.current()
    if measuring is not None:
        measuring.save()


def _repeated(tests: Iterable[str]) -> set[str]:
    """Return the ids of the tests that call a test function with any value except the first."""
    seen = set()
    found = set()
    for each in tests:
        function, is_given, _ = each.partition("[")
        if is_given and function in seen:
            found.add(each)
        seen.add(function)
    return found
