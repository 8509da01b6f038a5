"""A server's thread pool.

Owns the limit on the number of requests that run at the same time. The limit does not count a
request that waits for another request to end. A new thread runs in place of the waiting one, so
waiting requests never use up the threads that the awaited request needs.
"""

from __future__ import annotations

import collections
import contextlib
import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from typing import Any

_here = threading.local()


@contextlib.contextmanager
def waiting() -> Iterator[None]:
    """Mark this thread as waiting for another request. Has no effect outside a pool."""
    pool: ThreadPool | None = getattr(_here, "pool", None)
    if pool is None:
        yield
        return
    pool.lend()
    try:
        yield
    finally:
        pool.take_back()


class ThreadPool(futures.Executor):
    """An executor with `size` threads, plus one for each waiting thread.

    A thread starts when work is queued and no thread is idle; threads beyond the pool size end
    after their task.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._tasks: collections.deque[tuple[futures.Future[Any], Callable[[], Any]]] = (
            collections.deque()
        )
        self._changed = threading.Condition()
        self._threads: set[threading.Thread] = set()
        self._idle = 0
        self._waiting = 0
        self._is_down = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> futures.Future[Any]:
        """Run a function on a thread of the pool."""
        future: futures.Future[Any] = futures.Future()
        with self._changed:
            if self._is_down:
                raise RuntimeError("The pool is shut down.")
            self._tasks.append((future, lambda: fn(*args, **kwargs)))
            self._serve()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 - the signature of Executor
        """Refuse new tasks; the threads end once the queue is empty."""
        with self._changed:
            self._is_down = True
            while cancel_futures and self._tasks:
                self._tasks.popleft()[0].cancel()
            self._changed.notify_all()
            threads = list(self._threads)
        if wait:
            for thread in threads:
                thread.join()

    def lend(self) -> None:
        """Let a new thread run in place of a waiting thread."""
        with self._changed:
            self._waiting += 1
            if self._tasks:
                self._serve()

    def take_back(self) -> None:
        """Count a thread toward the limit again after it has waited."""
        with self._changed:
            self._waiting -= 1

    def _serve(self) -> None:
        """Ensure that a thread takes the next task."""
        if self._idle >= len(self._tasks):
            self._changed.notify()
            return
        if len(self._threads) - self._waiting < self._size:
            # Use daemon threads, because a program that ends without stopping its server must not
            # hang.
            thread = threading.Thread(target=self._work, name="datastore", daemon=True)
            self._threads.add(thread)
            thread.start()

    def _work(self) -> None:
        _here.pool = self
        while (task := self._next()) is not None:
            future, run = task
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(run())
            except BaseException as error:  # noqa: BLE001 - the future raises it in the caller
                future.set_exception(error)
            del task, future, run  # An idle thread must not keep a request alive

    def _next(self) -> tuple[futures.Future[Any], Callable[[], Any]] | None:
        with self._changed:
            self._idle += 1
            self._changed.wait_for(lambda: self._tasks or self._is_down or self._is_surplus())
            self._idle -= 1
            if self._tasks and not self._is_surplus():
                return self._tasks.popleft()
            self._threads.discard(threading.current_thread())
            return None

    def _is_surplus(self) -> bool:
        return len(self._threads) - self._waiting > self._size
