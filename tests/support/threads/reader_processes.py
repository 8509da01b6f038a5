"""Simulate processes on one database; each is a store with separate caches and a separate clock.

Each call runs in a separate thread, because a thread can enter only one store at a time. Therefore,
one process can act while another process waits in the middle of a call. `Reader.assert_current`
compares a process's answer with the ordered query.
"""

import threading
import zlib
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from comments.domain import presentation, records
from comments.reading import listings, thread_pages
from comments.reading.materialized import view_cache
from comments.tree.lists import ordered_query
from tests.support import datastores
from tests.support.threads import sample_threads

T = TypeVar("T")
# The rows, the number of replies below each row, and the number of rows.
Whole = tuple[list[bytes], list[int], int]


class Reader:
    """A simulated process.

    Args:
        datastore: the database of the store.
        ahead: the number of seconds by which its clock is ahead of the other clocks.
        seen: a function that is called with each call's method and request before the call.
    """

    def __init__(
        self,
        datastore: datastores.Datastore,
        *,
        ahead: float = 0.0,
        seen: Callable[[str, object], object] = lambda _method, _request: None,
    ) -> None:
        self.now = ahead
        self._seen = seen
        self.store = datastore.connect(self._call)
        view_cache.HOLDINGS.put(self.store, view_cache.Holdings(lambda: self.now))

    def _call(self, method: str, request: object, proceed: Callable[[], bytes]) -> bytes:
        self._seen(method, request)
        return proceed()

    def do(self, work: Callable[[], T]) -> T:
        """Run `work` as this process."""
        done: list[T] = []
        failed: list[BaseException] = []

        def run() -> None:
            try:
                with self.store.context():
                    done.append(work())
            except BaseException as error:  # noqa: BLE001 - the error is raised below
                failed.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        if failed:
            raise failed[0]
        return done[0]

    def shown(self, name: records.ThreadName) -> Whole:
        """Return the rows that this process shows for a thread."""
        asked = thread_pages.PageRequest(200, None, sample_threads.SETTINGS.secret)
        page = self.do(lambda: listings.page(sample_threads.SETTINGS.scheme, name, asked))
        return list(page.comments), list(page.replies), page.total

    def expected(self, name: records.ThreadName) -> Whole:
        """Return the rows that this process must show for a thread."""
        return self.do(lambda: ordered_thread(name))

    def assert_current(self, name: records.ThreadName) -> None:
        """Fail if this process does not show the ordered query's result."""
        assert self.shown(name) == self.expected(name)


def warm_pair(datastore: datastores.Datastore, name: records.ThreadName) -> list[Reader]:
    """Make two processes that have read a whole thread; the second one's clock is fast."""
    pair = [Reader(datastore, ahead=ahead) for ahead in (0.0, 600.0)]
    assert_all_current(pair, name)
    return pair


def assert_all_current(processes: Iterable[Reader], name: records.ThreadName) -> None:
    """Fail if one of these processes does not show the ordered query's result."""
    for process in processes:
        process.assert_current(name)


def ordered_thread(name: records.ThreadName) -> Whole:
    """Return the ordered query's result for a thread."""
    rows = ordered_query.thread(name)
    below = [sum(each.sort_hash.startswith(row.sort_hash) for each in rows) - 1 for row in rows]
    return [presentation.fragment(row) for row in rows], below, len(rows)


def decompressed(message: Any) -> bytes:
    """Return an entity's decompressed blobs."""
    return b"\n".join(map(_held, blobs(message)))


def blobs(message: Any) -> tuple[bytes, bytes]:
    """Return an entity's compressed blobs: its content and, in a directory, the first page."""
    properties = message.properties
    content = properties["content"].blob_value if "content" in properties else b""
    return content, properties["head"].blob_value[1:] if "head" in properties else b""


def _held(blob: bytes) -> bytes:
    try:
        return zlib.decompress(blob)
    except zlib.error:  # Part of a directory, or not compressed
        return bytes(blob)
