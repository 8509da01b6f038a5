"""Workers share new connections evenly, by server.connection_counts."""

import contextlib
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from server import connection_counts, limits, worker
from tests.support import worker_process

HELLO = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"
FOREVER = limits.Limits(head=3_600.0)
OTHER = 7  # The age of a worker that only publishes a number


@pytest.fixture(autouse=True)
def counts(monkeypatch: pytest.MonkeyPatch) -> connection_counts.ConnectionCounts:
    """Counts that no worker of another test has written."""
    made = connection_counts.ConnectionCounts()
    monkeypatch.setattr(worker, "_COUNTS", made)
    return made


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Believe old numbers: on a busy machine, a worker may publish its number late."""
    monkeypatch.setattr(connection_counts, "FRESH", 3_600.0)


@contextlib.contextmanager
def two_workers(bounds: limits.Limits) -> Iterator[Any]:
    """Two workers that accept from one socket, and answer with their names."""

    def named(name: bytes) -> Any:
        def application(_environ: Any, start_response: Any) -> list[bytes]:
            start_response("200 OK", [("Content-Length", "1")])
            return [name]

        return application

    with (
        socket.create_server(("127.0.0.1", 0), backlog=256) as listener,
        worker_process.serving(
            named(b"a"), bounds=bounds, listener=listener.dup(), age=1, keepalive=60
        ) as first,
        worker_process.serving(
            named(b"b"), bounds=bounds, listener=listener.dup(), age=2, keepalive=60
        ) as second,
    ):
        worker_process.wait_until(lambda: is_published(1) and is_published(2))
        yield first, second


def is_published(age: int) -> bool:
    size = connection_counts._ENTRY.size
    entry = worker._COUNTS.entries[age * size : (age + 1) * size]
    return connection_counts._ENTRY.unpack(entry)[0] > 0


def workers_of(connections: Any) -> Counter[bytes]:
    """Return the number of connections that each worker serves."""
    for each in connections:
        each.sendall(HELLO)
    return Counter(worker_process.answer(each)[1] for each in connections)


@pytest.mark.usefixtures("patient")
class TestTwoWorkers:
    def test_connections_that_arrive_together_are_shared_evenly(self) -> None:
        with two_workers(FOREVER) as (first, _), contextlib.ExitStack() as stack:
            opened = [stack.enter_context(first.connect()) for _ in range(8)]
            assert workers_of(opened) == {b"a": 4, b"b": 4}

    def test_connections_from_many_threads_are_shared_evenly(self) -> None:
        with two_workers(FOREVER) as (first, _), contextlib.ExitStack() as stack:
            opened: list[Any] = []

            def connect() -> None:
                opened.append(stack.enter_context(first.connect()))

            threads = [threading.Thread(target=connect) for _ in range(8)]
            for each in threads:
                each.start()
            for each in threads:
                each.join()
            assert workers_of(opened) == {b"a": 4, b"b": 4}

    def test_the_worker_whose_clients_left_gets_the_next_connections(self) -> None:
        with two_workers(FOREVER) as (first, second), contextlib.ExitStack() as stack:
            opened = [stack.enter_context(first.connect()) for _ in range(6)]
            # Both workers have accepted their share before a client leaves.
            owners = [workers_of([each]) for each in opened]
            for each, owner in zip(opened, owners, strict=True):
                if owner == {b"a": 1}:
                    each.close()
            worker_process.wait_until(lambda: not first.worker.connections.open)
            more = [stack.enter_context(second.connect()) for _ in range(3)]
            assert workers_of(more) == {b"a": 3}

    def test_a_worker_that_stops_gets_no_connections_left_to_it(self) -> None:
        with two_workers(FOREVER) as (first, second), contextlib.ExitStack() as stack:
            kept = [stack.enter_context(first.connect()) for _ in range(2)]
            assert workers_of(kept) == {b"a": 1, b"b": 1}
            first.tell()
            worker_process.wait_until(lambda: not is_published(1))
            more = [stack.enter_context(second.connect()) for _ in range(3)]
            assert workers_of(more) == {b"b": 3}

    @pytest.mark.slow
    def test_a_worker_that_leaves_a_connection_to_others_can_stop(self) -> None:
        with two_workers(FOREVER) as (first, second):
            second.stop()
            worker._COUNTS.of(OTHER).write(0, time.monotonic())
            with first.connect() as kept, first.connect():
                assert workers_of([kept]) == {b"a": 1}
                assert workers_of([kept]) == {b"a": 1}  # It serves its own connections.
                first.stop()


class TestOneWorker:
    def test_a_number_that_a_dead_worker_left_behind_is_ignored(self) -> None:
        worker._COUNTS.of(OTHER).write(0, time.monotonic())
        with self.serving(FOREVER) as served, contextlib.ExitStack() as stack:
            opened = [stack.enter_context(served.connect()) for _ in range(5)]
            assert workers_of(opened) == {b"ok": 5}

    @contextlib.contextmanager
    def serving(self, bounds: limits.Limits) -> Any:
        def application(_environ: Any, start_response: Any) -> list[bytes]:
            start_response("200 OK", [("Content-Length", "2")])
            return [b"ok"]

        with worker_process.serving(application, bounds=bounds, keepalive=60) as served:
            yield served


@pytest.mark.parametrize(
    ("number", "others", "is_above"),
    [
        (0, (), False),
        (9, (), False),
        (0, (0,), False),
        (1, (0,), True),
        (3, (3, 4), False),
        (4, (3, 5), True),
        (9, (8,), False),  # An eighth more
        (10, (8,), True),
        (90, (80,), False),
        (91, (80,), True),
    ],
)
def test_a_worker_compares_its_number_with_the_fewest(
    number: int, others: tuple[int, ...], is_above: bool
) -> None:
    made = connection_counts.ConnectionCounts()
    for age, other in enumerate(others, start=2):
        made.of(age).write(other, 100.0)
    own = made.of(1)
    own.write(0, 100.0)  # Its own earlier number does not count.
    assert own.is_above_others(number, 100.25) == is_above
    assert not own.is_above_others(number, 100.0 + connection_counts.FRESH)
    for age in range(2, 2 + len(others)):
        made.of(age).remove()
    assert not own.is_above_others(number, 100.25)


def test_places_without_a_worker_do_not_count_in_the_first_second_of_a_machine() -> None:
    own = connection_counts.ConnectionCounts().of(1)
    own.write(9, 0.25)
    assert not own.is_above_others(9, 0.5)
