"""Run the tests that need only the API of Datastore against an emulator: `pytest --store`.

A test takes part if its store comes from the fixture `open_datastore`, directly or through
`datastore`, `store`, `site`, `client` and others. Two groups of tests are left out: tests of the
embedded engine itself, which have the marker `embedded` or use the fixture `engine`, and tests
without a store, which would not ask the emulator anything. Tests that one of Google's emulators
cannot pass are skipped with the emulator's reason (`emulator_names`).
"""

import collections
import os
from collections.abc import Iterator
from typing import Any

import pytest

from datastore_emulator import inprocess
from tests.support import emulator_names

EMBEDDED = "embedded"
_OF_THE_ENGINE = ("emulator/tests/", "tests/server/")
_LEFT_OUT = "left_out"


def is_embedded(item: pytest.Item) -> bool:
    """Return whether a test looks inside the embedded engine."""
    return (
        item.get_closest_marker(EMBEDDED) is not None
        or "engine" in getattr(item, "fixturenames", ())
        or item.nodeid.startswith(_OF_THE_ENGINE)
    )


def host() -> str:
    """Return the address of the emulator, or end the run."""
    found = os.environ.get("DATASTORE_EMULATOR_HOST", "")
    if not found:
        raise pytest.UsageError(
            "--store needs the address of an emulator in DATASTORE_EMULATOR_HOST, "
            "for example localhost:8081."
        )
    return found


class StoreRun:
    """The plugin that selects the tests and reports how many ran and how many were left out."""

    def __init__(self, host: str) -> None:
        self.host = host
        self._emulator = emulator_names.identify(host)
        self._left_out: collections.Counter[str] = collections.Counter()

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Deselect the tests that do not take part, and skip those that the emulator fails."""
        chosen, others = [], []
        for item in items:
            reason = _reason(item)
            (others if reason else chosen).append(item)
            self._left_out[reason] += bool(reason)
        config.hook.pytest_deselected(items=others)
        items[:] = chosen
        for item in items:
            if reason := self._emulator.limit(item.nodeid):
                item.add_marker(pytest.mark.skip(reason=reason))
        if hasattr(config, "workeroutput"):
            config.workeroutput[_LEFT_OUT] = dict(self._left_out)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take the numbers of a worker. All workers collect the same tests."""
        counted = getattr(node, "workeroutput", {}).get(_LEFT_OUT, {})
        self._left_out = collections.Counter(counted) or self._left_out

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Iterator[None]:
        """Make a test fail that opens an embedded engine, because the emulator is not asked."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(inprocess, "open_engine", _refuse)
            return (yield)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        ran = sum(len(terminalreporter.stats.get(each, ())) for each in ("passed", "failed"))
        reasons = ", ".join(
            f"{count} {reason}" for reason, count in self._left_out.items() if count
        )
        terminalreporter.write_line(
            f"store: {ran} tests ran against {self.host}, {self._emulator.name}; "
            f"{self._left_out.total()} were left out ({reasons or 'none'})."
        )


def _reason(item: pytest.Item) -> str:
    """Return why a test is left out, or "" if it takes part."""
    if is_embedded(item):
        return "embedded"
    return "" if "open_datastore" in getattr(item, "fixturenames", ()) else "without a store"


def _refuse(*_arguments: object, **_options: object) -> None:
    raise AssertionError("mark this test `embedded`, because it opens the embedded engine")
