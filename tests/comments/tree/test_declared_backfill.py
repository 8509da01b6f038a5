"""A job for declared counters adds each difference once, whatever other processes do meanwhile."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import grpc
import pytest

from comments import errors
from comments.domain import records
from comments.domain.counters import declared_counters
from comments.events import dispatcher
from comments.store import connection
from comments.tree.counters.declared import declarations, declared_backfill, declared_counts
from comments.upkeep import wiring
from tests.support.histories import counter_drift, counter_oracle, declared_oracle
from tests.support.store_interceptors import Faults, InterceptorSlot
from tests.support.threads import sample_threads

NOW = sample_threads.START + timedelta(days=1)
ANY = declared_counters.declare("any", [], ["thread", "author"])
OTHER = declared_counters.declare("any", ["status = approved"], ["author"])


class Meanwhile:
    """An interceptor that acts as another process after a number of commits, once.

    On emulators, the product ends a read-only transaction with a rollback.
    """

    def __init__(self) -> None:
        self._left = -1
        self._act: Callable[[], object] = lambda: None

    def plan(self, commits: int, act: Callable[[], object]) -> None:
        self._left, self._act = commits, act

    def __call__(self, method: str, _: Any, proceed: Callable[[], Any]) -> Any:
        answer = proceed()
        if method in {"Commit", "Rollback"} and self._left >= 0:
            self._left -= 1
            if self._left < 0:
                opened, connection.state.transaction = connection.state.transaction, None
                try:
                    self._act()
                finally:
                    connection.state.transaction = opened
        return answer


@pytest.fixture
def meanwhile(interceptor: InterceptorSlot) -> Meanwhile:
    return interceptor.use(Meanwhile())


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(declared_backfill, "AT_ONCE", 2)


@pytest.fixture
def posted(store: connection.Store, site: records.Site) -> records.Site:
    """A site with comments of seven authors, and with a counter that does not count them yet."""
    for number in range(7):
        author = sample_threads.author(f"{number}")
        sample_threads.post(site, f"{number}", author=author)
    _deliver()
    declarations.add("demo", ANY, now=NOW)
    return site


def _deliver() -> None:
    dispatcher.deliver(counter_oracle.events(), now=NOW, handlers=wiring.HANDLERS)


# A job commits its comparison, four parts, and the end of the job.
COMMITS = range(6)


def _run_twice() -> None:
    declared_backfill.complete("demo")


def _change() -> None:
    declarations.change("demo", OTHER, now=NOW)


def _remove() -> None:
    declarations.remove("demo", "any", now=NOW)
    declared_backfill.complete("demo")


def _replace() -> None:
    _remove()
    declarations.add("demo", ANY, now=NOW)
    declared_backfill.complete("demo")


def _drift() -> None:
    (first, *_) = declared_counts.stored_amounts("demo", declarations.of_site("demo").counters) or [
        ""
    ]
    if first:
        counter_drift.add_declared("demo", first, 1)
        counter_drift.recount_all()


@pytest.mark.parametrize("commits", COMMITS)
@pytest.mark.parametrize("act", [_run_twice, _change, _remove, _replace, _drift])
def test_other_processes_correct_and_change_the_counters_meanwhile(
    posted: records.Site, meanwhile: Meanwhile, commits: int, act: Callable[[], object]
) -> None:
    meanwhile.plan(commits, act)
    # What changed after the last comparison needs another one. On emulators, a job has fewer
    # commits, so the change may come in the second job.
    for _ in range(3):
        declared_backfill.complete("demo")
    declared_oracle.assert_counted()


@pytest.mark.parametrize("commits", COMMITS)
def test_changes_during_the_job_are_counted_once(
    posted: records.Site, meanwhile: Meanwhile, commits: int
) -> None:
    def write() -> None:
        for number in range(5, 9):
            sample_threads.post(posted, f"more {number}", author=sample_threads.author(f"{number}"))
        _deliver()
        sample_threads.post(posted, "not delivered", author=sample_threads.author("3"))

    meanwhile.plan(commits, write)
    declared_backfill.complete("demo")
    _deliver()
    declared_oracle.assert_counted()


@pytest.mark.embedded  # Emulators get fewer commits
def test_a_counter_is_complete_only_after_its_last_part(
    posted: records.Site, meanwhile: Meanwhile
) -> None:
    seen: list[tuple[int, bool]] = []

    def look() -> None:
        (counter,) = declarations.of_site("demo").counters
        seen.append((len(declared_counts.stored_amounts("demo", [counter])), counter.is_complete))
        meanwhile.plan(0, look)

    meanwhile.plan(0, look)
    declared_backfill.complete("demo")
    assert list(dict.fromkeys(seen)) == [
        (0, False), (2, False), (4, False), (6, False), (7, True)
    ]  # fmt: skip


def test_a_job_gives_up_if_others_keep_correcting(
    posted: records.Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(declared_counts, "mend", lambda *_: False)
    with pytest.raises(errors.Overloaded):
        declared_backfill.complete("demo")
    monkeypatch.undo()
    declared_backfill.finish(now=NOW + 2 * declared_backfill.PATIENCE)
    declared_oracle.assert_counted()


def test_differences_of_incomplete_counters_are_not_reported(posted: records.Site) -> None:
    assert counter_drift.recount_all(fixes=False) == []
    assert counter_drift.recount_all() == []
    assert declarations.counter("demo", "any").is_complete


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("commit", range(1, 8))
def test_a_part_whose_answer_is_lost_is_added_once(
    posted: records.Site, faults: Faults, commit: int, when: str
) -> None:
    faults.plan["Commit", faults.calls["Commit"] + commit] = (when, grpc.StatusCode.UNAVAILABLE)
    declared_backfill.complete("demo")
    declared_oracle.assert_counted()


def test_changes_from_before_the_declaration_are_counted_by_the_job_or_their_delivery(
    posted: records.Site,
) -> None:
    row = sample_threads.post(posted, "not delivered", author=sample_threads.author("3"))
    declarations.change("demo", OTHER, now=NOW)
    declared_backfill.complete("demo")
    sample_threads.retract(row)
    assert counter_drift.recount_all(fixes=False) == []
    _deliver()
    declared_oracle.assert_counted()
