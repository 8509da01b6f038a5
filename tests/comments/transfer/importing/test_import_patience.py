"""An import outlasts a store that is busy for a while, and then reports what it added."""

from collections.abc import Callable
from pathlib import Path

import pytest

from comments import errors
from comments.domain import records
from comments.events import outbox
from comments.transfer.importing import import_writer
from tests.support.store_interceptors import Commits, InterceptorSlot
from tests.support.threads.sample_exports import NOW, SCHEME, plan_of, rows, threads_of

LONG = 1_000  # More commits than an import tries.


@pytest.fixture
def commits(interceptor: InterceptorSlot) -> Commits:
    return interceptor.use(Commits())


class Busy:
    """A store that stays busy for some tries of an import, and the pauses between them."""

    def __init__(self, commits: Commits, tries: int, plan: list[str]) -> None:
        self._commits = commits
        self._tries = tries
        self.pauses: list[float] = []
        commits.plan = plan

    def wait(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self._commits.plan = ["late"] * LONG if len(self.pauses) < self._tries else []


@pytest.mark.parametrize("first", ["before", "after"])
def test_an_import_outlasts_a_busy_store(
    garden: records.Site, commits: Commits, export: Callable[..., Path], first: str
) -> None:
    told: list[str] = []
    with plan_of(export(*threads_of([3, 2]))) as plan:
        busy = Busy(commits, 3, [first, *["late"] * LONG])
        summary = import_writer.write(
            plan, scheme=SCHEME, now=NOW, told=told.extend, wait=busy.wait
        )
    assert len(busy.pauses) == 3
    assert summary == import_writer.ImportSummary(added=5, present=0, threads=2)
    assert len(rows()) == 5
    assert told == [event.id for event in outbox.pending_events(outbox.COUNTERS)]


def test_an_import_ends_if_the_store_stays_busy(
    garden: records.Site, commits: Commits, export: Callable[..., Path]
) -> None:
    with plan_of(export(*threads_of([1]))) as plan:
        busy = Busy(commits, LONG, ["late"] * LONG)
        with pytest.raises(errors.Overloaded):
            import_writer.write(plan, scheme=SCHEME, now=NOW, wait=busy.wait)
    assert len(busy.pauses) == import_writer._TRIES - 1
    assert rows() == []
