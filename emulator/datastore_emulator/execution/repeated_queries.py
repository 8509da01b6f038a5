"""Repeated queries: a cache of answers, each used until the next commit.

Programs that poll for changes send the same query again and again, and mostly get the same answer.
Reading the data file's last change takes only a small fraction of the time of a query.

An answer is reused only for a request with the same bytes. In addition, the file's last change,
read after the request has arrived, must be the same as in the snapshot that gave the answer. The
cache never answers requests in a transaction, requests for a past moment, requests for an
explanation, or requests whose batch a fault plan limits. A reused answer is billed like the first
one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from datastore_emulator import protobufs
from datastore_emulator.execution import cost_meter
from datastore_emulator.fault_injection import fault_plans
from datastore_emulator.storage import file_store, row_reader

MOST_KEPT = 1024  # Maximum number of cached answers.
LONGEST_REQUEST = 1024  # Maximum size of a request in bytes.
LONGEST_RESPONSE = 4096  # Maximum size of a response in bytes.


class KnownAnswer(NamedTuple):
    """A serialized response, and its cost."""

    response: bytes
    bill: cost_meter.Bill
    entries: int
    keys_of: Callable[[], Iterable[protobufs.Key]]


class RepeatedQueries:
    """The cached answers of one engine. Safe for use from many threads.

    Args:
        store: The data file.
    """

    def __init__(self, store: file_store.FileStore) -> None:
        self._store = store
        self.forget()

    def forget(self) -> None:
        """Drop all answers."""
        # The file's last change, and the answers that are valid for that state of the file. Threads
        # replace the pair as a whole.
        self._known: tuple[row_reader.LastChange | None, dict[bytes, KnownAnswer]] = (None, {})

    def find(self, asked: bytes) -> KnownAnswer | None:
        """Return the current answer to a request, if it is known."""
        change, answers = self._known
        answer = answers.get(asked)
        if answer is None:
            return None
        self._store.wait_for_checkpoint()
        return answer if self._store.last_change() == change else None

    def keep(self, asked: bytes, change: row_reader.LastChange, answer: KnownAnswer) -> None:
        """Cache an answer that came from a snapshot with the last change `change`."""
        if len(asked) > LONGEST_REQUEST or len(answer.response) > LONGEST_RESPONSE:
            return
        known, answers = self._known
        if known != change or len(answers) >= MOST_KEPT:
            answers = {}
            self._known = change, answers
        answers[asked] = answer


def identity(request: protobufs.RunQueryRequest) -> bytes:
    """Return the bytes that identify a request, or b"" if its answer must not be kept."""
    if request.HasField("explain_options") or fault_plans.has_batch_limit():
        return b""
    if request.read_options.WhichOneof("consistency_type") not in (None, "read_consistency"):
        return b""
    return request.SerializeToString(deterministic=True)
