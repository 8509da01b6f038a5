"""Recategorizing a thread is exact despite interruptions and concurrent writers.

Six comments in steps of two need five commits: one to begin, three steps, and one that finds no
more comments.
"""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import grpc
import pytest

from comments import errors
from comments.domain import records
from comments.domain.counters import counting
from comments.events import dispatcher, outbox
from comments.posting import own_comment
from comments.store import connection, ownership, reads, transactions
from comments.store.models import comment_rows, conversion, counter_rows
from comments.threads import category_journal
from comments.tree.bulk import job_writes, recategorize
from comments.upkeep import scheduler, wiring
from comments.upkeep.integrity import recount
from datastore_emulator import errors as engine_errors
from tests.support.histories import counter_oracle
from tests.support.store_interceptors import InterceptorSlot
from tests.support.threads import compaction, sample_threads

NAME = records.ThreadName("demo", "page")
OTHER = records.ThreadName("demo", "other")
NOW = sample_threads.START + timedelta(days=1)
COMMITS = 5


class Killed(BaseException):
    """An error that simulates the end of the process."""


class Hook:
    """A hook that runs an action once, before or after the n-th commit (or other call) from now."""

    def __init__(self) -> None:
        self._plan: tuple[int, str, Callable[[], None]] | None = None
        self._method = ""

    def plan(self, number: int, when: str, act: Callable[[], None], method: str = "Commit") -> None:
        self._plan, self._method = (number, when, act), method

    @property
    def is_over(self) -> bool:
        return self._plan is None

    def __call__(self, method: str, _: Any, proceed: Any) -> Any:
        act, when = None, ""
        if method == self._method and self._plan is not None:
            number, when, act = self._plan
            self._plan = (number - 1, when, act) if number else None
            act = None if number else act
        if act and when == "before":
            act()
        answer = proceed()
        if act and when == "after":
            act()
        return answer


@pytest.fixture
def hook(interceptor: InterceptorSlot) -> Hook:
    return interceptor.use(Hook())


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recategorize, "AT_ONCE", 2)


@pytest.fixture
def filed(store: connection.Store, site: records.Site) -> records.Site:
    """Six comments by three authors on two days in news and sport, plus a second thread in news."""
    site = sample_threads.filing(site, "news", "sport", "travel")
    for n in range(6):
        sample_threads.post(
            site, f"{n}", author=_author(n % 3), now=sample_threads.START + timedelta(days=n % 2),
            categories=("news", "sport"),
        )  # fmt: skip
    sample_threads.post(site, "other", author=_author(0), thread="other", categories=("news",))
    _deliver()
    return site


def _author(number: int) -> records.Author:
    return records.Author("somebody", id=f"g:{number}")


def _deliver() -> None:
    dispatcher.deliver(counter_oracle.events(), now=NOW, handlers=wiring.HANDLERS)


def _change(*names: str) -> int:
    return recategorize.change(NAME, names, now=NOW)


def _assert_all_right() -> None:
    """Finish all recategorizations; check that counters are exact and a recount finds no fault."""
    # A post or retraction may change its thread's categories; a worker then recategorizes the
    # thread.
    recategorize.finish(now=NOW, steps=100)
    journals = [each.key.path[-1].name for each in reads.fetch(reads.Query("Job"))]
    assert [each for each in journals if each.startswith(category_journal.PREFIX)] == []
    assert recount.site("demo", tell=print, fixes=False) == 0
    _deliver()
    counter_oracle.assert_all_counted()
    assert recount.site("demo", tell=print, fixes=False) == 0


def _numbers(category: str) -> counter_rows.Numbers:
    key = counter_rows.statistics_key(counting.category_scope("demo", category))
    return counter_rows.numbers_of(reads.get(key))


def _elsewhere(store: connection.Store, act: Callable[[], object]) -> Callable[[], None]:
    """Return a function that runs `act` in a different thread and waits until it ends."""

    def work() -> None:
        with store.context():
            act()

    def run() -> None:
        helper = threading.Thread(target=work)
        helper.start()
        helper.join()

    return run


def test_all_comments_move_together_with_their_counters(filed: records.Site) -> None:
    assert _change("Travel", "sport") == 6
    _assert_all_right()
    assert _numbers("news") == {"approved": 1, "participants": 1}
    assert _numbers("sport") == {"approved": 6, "participants": 3}
    assert _numbers("travel") == {"approved": 6, "participants": 3}
    assert _change() == 6
    _assert_all_right()
    assert _numbers("sport") == _numbers("travel") == {}
    assert _change() == 0
    _assert_all_right()


def test_readers_see_no_change(filed: records.Site) -> None:
    compaction.whole(NAME)
    rows = _rows()
    assert scheduler.find_due_work() == [OTHER]
    _change("travel")
    assert scheduler.find_due_work() == [OTHER]
    assert _rows() == rows  # Even the revisions are unchanged


def _rows() -> list[records.Comment]:
    return [conversion.comment_from_message(each) for each in reads.fetch(reads.Query("Comment"))]


def test_an_unknown_thread_or_invalid_category_is_refused_and_changes_nothing(
    filed: records.Site,
) -> None:
    with pytest.raises(errors.NotFound):
        recategorize.change(records.ThreadName("demo", "nothing"), ["news"], now=NOW)
    with pytest.raises(errors.BadInput):
        _change("a//b")
    _assert_all_right()


@pytest.mark.parametrize("commit", range(COMMITS))
def test_another_process_finishes_a_change_killed_after_any_commit(
    filed: records.Site, hook: Hook, commit: int
) -> None:
    def die() -> None:
        raise Killed

    hook.plan(commit, "after", die)
    with pytest.raises(Killed):
        _change("travel")
    assert hook.is_over
    sample_threads.post(filed, "meanwhile", author=_author(4))
    assert recount.site("demo", tell=print, fixes=False) == 0
    scheduler.continue_jobs(NOW, steps=100)
    _assert_all_right()
    assert _numbers("travel") == {"approved": 7, "participants": 4}


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("commit", range(COMMITS))
def test_a_commit_whose_answer_is_lost_counts_once(
    filed: records.Site, hook: Hook, commit: int, when: str
) -> None:
    def fail() -> None:
        error = engine_errors.DatastoreError("planned")
        error.status = grpc.StatusCode.UNAVAILABLE.name
        raise error

    hook.plan(commit, when, fail)
    _change("travel")
    assert hook.is_over
    _assert_all_right()
    assert _numbers("travel") == {"approved": 6, "participants": 3}


@pytest.mark.parametrize("commit", range(COMMITS))
def test_two_runners_share_one_recategorization(
    filed: records.Site, open_store: connection.Store, hook: Hook, commit: int
) -> None:
    other = _elsewhere(open_store, lambda: recategorize.finish(now=NOW, steps=2))
    hook.plan(commit, "after", other)
    _change("travel")
    assert hook.is_over
    _assert_all_right()
    assert _numbers("travel") == {"approved": 6, "participants": 3}


@pytest.mark.parametrize("commit", range(COMMITS))
def test_the_later_of_two_changes_wins(
    filed: records.Site, open_store: connection.Store, hook: Hook, commit: int
) -> None:
    hook.plan(
        commit,
        "after",
        _elsewhere(open_store, lambda: recategorize.change(NAME, ["sport"], now=NOW)),
    )
    _change("travel")
    assert hook.is_over
    _assert_all_right()
    assert _numbers("sport") == {"approved": 6, "participants": 3}
    assert _numbers("travel") == {}


@pytest.mark.parametrize("step", range(COMMITS - 1))
def test_a_late_runner_does_not_continue_another_changes_journal(
    filed: records.Site, open_store: connection.Store, hook: Hook, step: int
) -> None:
    """The recategorization restarts after a step reads its position and before its transaction."""
    act = _elsewhere(open_store, lambda: recategorize.begin(NAME, ("sport",)))
    hook.plan(step, "after", act, "RunQuery")
    _change("travel")
    assert hook.is_over
    _assert_all_right()
    assert _numbers("sport") == {"approved": 6, "participants": 3}
    assert _numbers("travel") == {}


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("commit", range(COMMITS))
def test_changes_between_two_commits_are_counted_in_the_right_categories(
    filed: records.Site, open_store: connection.Store, hook: Hook, commit: int, when: str
) -> None:
    first, *_, last = (row for row in _rows() if row.thread == NAME.id)

    def write() -> None:
        sample_threads.post(filed, "reply", first.id, author=_author(5))
        own_comment.retract(last.id, author_id=last.author.id, revision=None, now=NOW)
        _deliver()

    # Before a commit, the transaction locks the rows that it has read, so the other writer uses
    # different rows.
    act = write if when == "after" else lambda: sample_threads.post(filed, "text", thread="other")
    hook.plan(commit, when, _elsewhere(open_store, act))
    _change("travel")
    assert hook.is_over
    _assert_all_right()


def test_concurrent_writers_and_changes_leave_every_counter_exact(
    filed: records.Site, open_store: connection.Store
) -> None:
    def write(label: int) -> None:
        with open_store.context():
            for n in range(12):
                row = sample_threads.post(filed, f"{label}.{n}", author=_author(n % 4))
                if n % 3 == 0:
                    own_comment.retract(row.id, author_id=row.author.id, revision=None, now=NOW)

    def file(names: list[str]) -> None:
        with open_store.context():
            for turn in range(3):
                recategorize.change(NAME, names[turn:], now=NOW)

    with ThreadPoolExecutor(5) as pool:
        work = [pool.submit(write, label) for label in range(3)]
        work += [pool.submit(file, names) for names in (["news", "a", "b"], ["c", "sport"])]
        for each in work:
            each.result()
    recategorize.finish(now=NOW, steps=100)
    _assert_all_right()


def test_the_events_of_two_changes_are_distinct(filed: records.Site) -> None:
    for _ in range(2):
        _change("travel")
        _change("news")
    events = counter_oracle.events()
    assert len(events) == len(set(events)) == 4 * 3
    rows = outbox.read(events)
    assert {row.kind for row in rows} == {"filed"}
    assert outbox.EventKind.FILED not in outbox.OF_COMMENTS  # Only the counters handle this kind
    _assert_all_right()


def test_repeating_a_change_repairs_a_comment_with_damaged_categories(
    filed: records.Site,
) -> None:
    row = reads.get(comment_rows.comment_key(_rows()[0].id))
    row.categories = ["lost"]
    transactions.transaction(lambda: transactions.apply(ownership.Writes("tree", put=(row,))))
    recount.site("demo", tell=print, fixes=True)
    assert _numbers("lost") == {"approved": 1, "participants": 1}
    moved = _change(*reads.get(comment_rows.thread_key(NAME)).categories)
    moved += recategorize.change(OTHER, ["news"], now=NOW)
    assert moved == 1
    _assert_all_right()


def test_a_comment_of_another_thread_is_not_moved(filed: records.Site) -> None:
    recategorize.begin(NAME, ("travel",))
    (other,) = [row.id for row in _rows() if row.thread == "other"]
    refiled = transactions.transaction(
        lambda: job_writes.recategorize(NAME, [other, "a" * 26], now=NOW)
    )
    assert (refiled.writes, refiled.changed) == ((), 0)
    recategorize.finish(now=NOW, steps=100)
    _assert_all_right()


def test_one_call_takes_a_limited_number_of_steps(filed: records.Site) -> None:
    recategorize.begin(NAME, ("travel",))
    recategorize.begin(OTHER, ("travel",))
    assert recategorize.finish(now=NOW, steps=2) < 7
    assert recategorize.finish(now=NOW, steps=0) == 0
    recategorize.finish(now=NOW, steps=100)
    _assert_all_right()
    assert _numbers("travel") == {"approved": 7, "participants": 3}
