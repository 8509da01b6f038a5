"""Concurrent replies of one process share transactions, which never overlap."""

import itertools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import pytest

from comments.domain import records
from comments.store import connection
from comments.tree.counters import sharding
from tests.support import stored_state
from tests.support.store_interceptors import InterceptorSlot
from tests.support.threads import sample_threads

WRITERS, REPLIES = 8, 8
Keys = frozenset[tuple[str, str]]


class Taken(NamedTuple):
    """A committed transaction: its begin and end, its reads and its writes."""

    writer: int
    begun: int
    ended: int
    read: Keys
    written: Keys


class Watch:
    """A recorder for each thread's transactions, in the order of their calls."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._moment = 0
        self._open: dict[int, tuple[int, set[tuple[str, str]]]] = {}
        self.taken: list[Taken] = []

    def __call__(self, method: str, request: Any, proceed: Callable[[], Any]) -> Any:
        if method == "Lookup" and not _is_transactional(request.read_options):
            return proceed()
        me = threading.get_ident()
        with self._guard:
            self._moment += 1
            begun, read = self._open.setdefault(me, (self._moment, set()))
            if method.endswith("Lookup"):
                read.update(_name(key) for key in request.keys)
        try:
            answer = proceed()
        except BaseException:
            self._open.pop(me, None)
            raise
        if method.endswith("Commit"):
            written = frozenset(_name(_written(each)) for each in request.mutations)
            with self._guard:
                self._moment += 1
                del self._open[me]
                self.taken.append(Taken(me, begun, self._moment, frozenset(read), written))
        return answer


def _is_transactional(options: Any) -> bool:
    return bool(options.transaction) or options.HasField("new_transaction")


def _written(mutation: Any) -> Any:
    operation = mutation.WhichOneof("operation")
    value = getattr(mutation, operation)
    return value if operation == "delete" else value.key


def _name(key: Any) -> tuple[str, str]:
    return key.path[-1].kind, "/".join(each.name for each in key.path)


@pytest.fixture
def watch(interceptor: InterceptorSlot) -> Watch:
    return interceptor.use(Watch())


def test_concurrent_replies_of_one_process_share_transactions(
    open_store: connection.Store, site: records.Site, watch: Watch
) -> None:
    """Compare the times of every two transactions."""
    with open_store.context():
        parents = [sample_threads.post(site, f"{n}").id for n in range(WRITERS)]
        sharding.spread(sample_threads.name_of(site), 4 * WRITERS)
    watch.taken.clear()
    gate = threading.Barrier(WRITERS)

    def write(number: int) -> None:
        with open_store.context():
            for reply in range(REPLIES):
                gate.wait(60)  # Makes all replies concurrent
                sample_threads.post(site, f"{number}.{reply}", parents[number])

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(write, range(WRITERS)))
    taken = [each for each in watch.taken if any(kind == "Comment" for kind, _ in each.written)]
    assert REPLIES <= len(taken) < WRITERS * REPLIES
    assert all(kind != "Thread" for each in taken for kind, _ in each.written)
    taken.sort(key=lambda each: each.begun)
    assert all(one.ended < other.begun for one, other in itertools.pairwise(taken))
    with open_store.context():
        stored_state.assert_sums(is_delivered=False)
