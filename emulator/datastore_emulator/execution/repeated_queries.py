"""Repeated queries: a cache of answers, each used until the next commit.

Programs that poll for changes send the same query again and again, and mostly get the same answer.
Asking the data file for its last change takes a small part of the time of a query.

An answer is used again only for a request with the same bytes, and only if the file's last change,
read after the request has arrived, is the same as in the snapshot that gave the answer. Requests in
a transaction, for a past moment or for an explanation are never answered from here, and neither are
those for which a fault plan cuts the batch. An answer used again is billed like the first one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from datastore_emulator import protobufs
from datastore_emulator.execution import cost_meter
from datastore_emulator.fault_injection import fault_plans
from datastore_emulator.storage import file_store, row_reader

MOST_KEPT = 1024  # Maximum number of answers.
LONGEST_REQUEST = 1024  # Maximum size in bytes.
LONGEST_RESPONSE = 4096  # Maximum size in bytes.


class KnownAnswer(NamedTuple):
    """A serialized response, and its cost."""

    response: bytes
    bill: cost_meter.Bill
    entries: int
    keys_of: Callable[[], Iterable[protobufs.Key]]


class RepeatedQueries:
    """The answers that one engine knows. Safe for use from many threads.

    Args:
        store: The data file.
    """

    def __init__(self, store: file_store.FileStore) -> None:
        self._store = store
        self.forget()

    def forget(self) -> None:
        """Drop all answers."""
        # The answers of one state of the file. Threads replace the pair as a whole.
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
        """Keep the answer that a snapshot with this last change gave."""
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
