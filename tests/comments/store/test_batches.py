"""Threads that wait for one line do their work in batches; a failure reaches only its own item."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from comments import errors
from comments.store import batches, connection

PATIENCE = 30.0


class Worker:
    """The work of a line. Each run waits until the test lets it go on, and is recorded."""

    def __init__(self, bad: Sequence[str] = ()) -> None:
        self.runs: list[tuple[list[str], bool]] = []
        self.bad = bad
        self.began = threading.Semaphore(0)
        self.goes_on = threading.Semaphore(0)

    def __call__(self, items: Sequence[str], has_run: bool) -> list[str]:
        self.runs.append((list(items), has_run))
        self.began.release()
        assert self.goes_on.acquire(timeout=PATIENCE)
        found = [item for item in items if item in self.bad]
        if found:
            raise ValueError(*found)
        return [item.upper() for item in items]


class Line:
    """A line with threads that wait in it."""

    def __init__(self, worker: Worker, most: int = 8, most_size: int = 100) -> None:
        self.batches = batches.Batches[str, str](most, most_size)
        self.worker = worker
        self.pool = ThreadPoolExecutor(16)

    def add(self, item: str, *, seconds: float = PATIENCE, **more: Any) -> "Future[str]":
        """Let a thread do an item's work, and wait until it leads or waits."""
        before = self._waiting()

        def run() -> str:
            with connection.within(seconds):
                given: dict[str, Any] = {"key": item, "size": 1} | more
                return self.batches.run("line", item, self.worker, **given)

        made = self.pool.submit(run)
        if before < 0:
            assert self.worker.began.acquire(timeout=PATIENCE)
        else:
            until(lambda: self._waiting() == before + 1 or made.done())
        return made

    def go_on(self, runs: int = 1) -> None:
        """Let the current run end, and let `runs - 1` more begin and end."""
        for number in range(runs):
            if number:
                assert self.worker.began.acquire(timeout=PATIENCE)
            self.worker.goes_on.release()

    def _waiting(self) -> int:
        found = self.batches._lines.get("line")
        return -1 if found is None else len(found)


def until(holds: Callable[[], bool]) -> None:
    for _ in range(int(PATIENCE / 0.005)):
        if holds():
            return
        threading.Event().wait(0.005)
    raise AssertionError("the threads did not get this far")


def test_a_thread_that_meets_nobody_works_at_once() -> None:
    line = Line(Worker())
    first = line.add("a")
    line.go_on()
    assert first.result(PATIENCE) == "A"
    assert line.worker.runs == [(["a"], False)]
    assert not line.batches._lines


def test_waiting_threads_work_together_in_their_order() -> None:
    line = Line(Worker())
    made = [line.add(item) for item in "abcd"]
    line.go_on(2)
    assert [each.result(PATIENCE) for each in made] == ["A", "B", "C", "D"]
    assert line.worker.runs == [(["a"], False), (["b", "c", "d"], False)]


@pytest.mark.parametrize(
    ("limits", "second", "third"),
    [
        ({"most": 2}, ["b", "c"], ["d"]),
        ({"most_size": 2}, ["b", "c"], ["d"]),
        ({"most_size": 0}, ["b"], ["c"]),
    ],
)
def test_a_batch_is_bounded(limits: dict[str, int], second: list[str], third: list[str]) -> None:
    line = Line(Worker(), **limits)
    made = [line.add(item) for item in "abcd"]
    line.go_on(4 if third == ["c"] else 3)
    assert [each.result(PATIENCE) for each in made] == ["A", "B", "C", "D"]
    assert [items for items, _ in line.worker.runs][1:3] == [second, third]


def test_items_with_one_key_are_never_in_one_batch() -> None:
    line = Line(Worker())
    made = [line.add("a"), line.add("b"), line.add("c", key="b"), line.add("d")]
    line.go_on(3)
    assert [each.result(PATIENCE) for each in made] == ["A", "B", "C", "D"]
    assert [items for items, _ in line.worker.runs] == [["a"], ["b"], ["c", "d"]]


def test_if_a_batch_fails_only_the_bad_item_gets_the_error() -> None:
    line = Line(Worker(bad="c"))
    made = [line.add(item) for item in "abcd"]
    late = line.add("e", size=100)
    line.go_on(6)
    for each, item in zip(made, "abcd", strict=True):
        if item == "c":
            with pytest.raises(ValueError, match="c"):
                each.result(PATIENCE)
        else:
            assert each.result(PATIENCE) == item.upper()
    assert late.result(PATIENCE) == "E"
    # The failed batch may have been applied, so the items are done alone and are told so.
    assert line.worker.runs == [
        (["a"], False),
        (["b", "c", "d"], False),
        *((list(item), True) for item in "bcd"),
        (["e"], False),
    ]


def test_a_thread_that_waits_too_long_leaves_the_line_and_its_work_is_not_done() -> None:
    line = Line(Worker())
    first = line.add("a")
    with pytest.raises(errors.Overloaded):
        line.add("b", seconds=0.05).result(PATIENCE)
    third = line.add("c")
    line.go_on(2)
    assert (first.result(PATIENCE), third.result(PATIENCE)) == ("A", "C")
    assert [items for items, _ in line.worker.runs] == [["a"], ["c"]]


@pytest.mark.parametrize("bad", ["", "b"])
def test_a_thread_may_give_up_while_its_batch_runs(bad: str) -> None:
    line = Line(Worker(bad=bad))
    made = [line.add("a"), line.add("b"), line.add("c", seconds=0.3)]
    line.go_on()
    assert line.worker.began.acquire(timeout=PATIENCE)
    with pytest.raises(errors.Overloaded):
        made[2].result(PATIENCE)
    line.worker.goes_on.release()
    if bad:
        line.worker.goes_on.release()
        with pytest.raises(ValueError, match="b"):
            made[1].result(PATIENCE)
    else:
        assert made[1].result(PATIENCE) == "B"
    assert ["c"] not in [items for items, _ in line.worker.runs]
    assert not line.batches._lines


def test_if_a_leading_thread_is_stopped_the_others_work_without_it() -> None:
    class Stopping(Worker):
        def __call__(self, items: Sequence[str], has_run: bool) -> list[str]:
            answers = super().__call__(items, has_run)
            if items[0] == "b" and len(items) > 1:
                raise SystemExit
            return answers

    line = Line(Stopping())
    made = [line.add(item) for item in "abc"]
    line.go_on(3)
    with pytest.raises(SystemExit):
        made[1].result(PATIENCE)
    assert made[2].result(PATIENCE) == "C"
    assert line.worker.runs[-1] == (["c"], True)


def test_in_a_race_each_item_is_done_once_and_never_two_batches_at_once() -> None:
    pool = ThreadPoolExecutor(32)
    lines = batches.Batches[int, int](5, 1_000)
    working: dict[int, int] = {0: 0, 1: 0}
    done: list[int] = []

    def work(items: Sequence[int], _: bool) -> list[int]:
        line = items[0] % 2
        working[line] += 1
        assert working[line] == 1
        assert len(items) <= 5
        threading.Event().wait(0.001)
        if len(items) > 1 and any(item % 37 == 0 for item in items):
            working[line] -= 1
            raise ValueError
        done.extend(items)
        working[line] -= 1
        return [-item for item in items]

    def run(item: int) -> int:
        with connection.within(PATIENCE):
            return lines.run(f"{item % 2}", item, work, key=f"{item}", size=1)

    assert list(pool.map(run, range(600))) == [-item for item in range(600)]
    assert sorted(done) == list(range(600))
    assert not lines._lines
