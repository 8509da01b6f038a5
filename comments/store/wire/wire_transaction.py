"""One transaction on the wire: begun by its first look-up, ended by its commit or rolled back.

Owns the calls of a transaction and their order, and what it is to write until it commits. NDB runs
transactions too, in a call more and in ten times the processor time; its models stay, its
transactions are not used.

A transaction that begins with a read saves a call. If the answer to that read is lost, nobody
knows the transaction's id to end it: its locks stand until the store lets go of them by itself.
"""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import grpc
from google.cloud.datastore_v1.types import datastore as rpc_types

SERVICE = "/google.datastore.v1.Datastore/"
_ROLLBACK_SECONDS = 1.0

_Begin = rpc_types.BeginTransactionRequest.pb()
_Commit = rpc_types.CommitRequest.pb()
_Rollback = rpc_types.RollbackRequest.pb()
_Options = rpc_types.TransactionOptions.pb()
_TRANSACTIONAL = 1


class Calls:
    """The calls of transactions on one channel.

    Args:
        channel: where they go.
        fields: what every request names.
        timeout: how many seconds the next call may take.
    """

    def __init__(
        self, channel: grpc.Channel, fields: dict[str, str], timeout: Callable[[], float]
    ) -> None:
        def method(name: str) -> Any:
            return channel.unary_unary(
                f"{SERVICE}{name}",
                request_serializer=getattr(rpc_types, f"{name}Request").pb().SerializeToString,
                response_deserializer=getattr(rpc_types, f"{name}Response").pb().FromString,
            )

        self.fields = fields
        self.timeout = timeout
        self.begin = method("BeginTransaction")
        self.commit = method("Commit")
        self.rollback = method("Rollback")


class Transaction:
    """A transaction that may not have begun yet.

    Args:
        calls: how it talks.
        is_read_only: whether it reads one moment and writes nothing.
        previous: the id of the attempt before this one, whose age it keeps; or nothing.
    """

    def __init__(self, calls: Calls, *, is_read_only: bool = False, previous: bytes = b"") -> None:
        self.id = b""
        self.previous = previous
        self.is_read_only = is_read_only
        self._calls = calls
        self._options = _Options()
        if is_read_only:
            self._options.read_only.SetInParent()
        else:
            self._options.read_write.previous_transaction = previous
        self._mutations: list[Any] = []
        # What is called when it is over, committed or not.
        self.afterwards: list[Callable[[], None]] = []

    def join(self, request: Any) -> None:
        """Make a read part of it; it begins with an answer only if `begun` is told that."""
        if not self.id:
            asked = _Begin(**self._calls.fields, transaction_options=self._options)
            self.begun(self._calls.begin(asked, timeout=self._calls.timeout()))
        request.read_options.transaction = self.id

    def join_lookup(self, request: Any) -> None:
        """Make a look-up part of it; if it is the first, its answer tells the id to `begun`."""
        if self.id:
            request.read_options.transaction = self.id
        else:
            request.read_options.new_transaction.CopyFrom(self._options)

    def begun(self, answer: Any) -> None:
        """Take note of the id that an answer brings, if it does."""
        self.id = self.id or answer.transaction

    def add(self, mutations: Sequence[Any]) -> None:
        """Write these when it commits."""
        self._mutations += mutations

    @property
    def size(self) -> int:
        """How many entities it writes."""
        return len(self._mutations)

    def commit(self) -> None:
        """End it and write. What neither read nor wrote makes no call."""
        request = _Commit(**self._calls.fields, mode=_TRANSACTIONAL, mutations=self._mutations)
        if self.id:
            request.transaction = self.id
        elif self._mutations:
            request.single_use_transaction.CopyFrom(self._options)
        else:
            return
        self._calls.commit(request, timeout=self._calls.timeout())

    def roll_back(self) -> None:
        """End it and write nothing. It ends by itself if this is not answered."""
        if self.id:
            request = _Rollback(**self._calls.fields, transaction=self.id)
            with contextlib.suppress(grpc.RpcError):
                wait = min(_ROLLBACK_SECONDS, self._calls.timeout())
                self._calls.rollback(request, timeout=wait)
