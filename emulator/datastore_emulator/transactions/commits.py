"""Commits: the mutations of one request, with or without a transaction.

Owns the order of steps in a Commit. First, find the transaction, if any. Then check everything that
needs no lock, and prepare the rows. Finally, write, answer and meter. `mutations` decides what a
mutation does, and `open_transactions` decides whether a transaction may commit.

A commit that returns OK or ABORTED ends its transaction. After any other error, the transaction
remains open. The response is serialized before the COMMIT, because a commit must fail if its
response is too large. A commit without a transaction applies its mutations in order, up to the
first one that fails. The earlier mutations are stored, and then the error of the failed mutation is
raised. A mutation that no stored data can make valid is found before any is applied, and the whole
commit is refused.
"""

from __future__ import annotations

from collections.abc import Callable

from datastore_emulator import errors, protobufs
from datastore_emulator.encoding import keys
from datastore_emulator.execution import cost_meter
from datastore_emulator.fault_injection import fault_plans
from datastore_emulator.storage import row_writer
from datastore_emulator.transactions import mutations, open_transactions

MAX_RESPONSE_BYTES = 4 * 1024 * 1024  # The default limit of gRPC clients
_NON_TRANSACTIONAL = 2
# The errors of a mutation that depend on the stored data; all others concern the whole commit.
_OF_ONE_MUTATION = (
    errors.AlreadyExists,
    errors.FailedPrecondition,
    errors.InvalidArgument,
    errors.NotFound,
)
_RESULT, _INDEX_UPDATES, _COMMIT_TIME = 3, 4, 8  # Field numbers of a CommitResponse.

Begin = Callable[["protobufs.TransactionOptions", tuple[str, str]], open_transactions.Transaction]


class Commits:
    """Answers commit requests for one engine.

    Args:
        opened: The open transactions that a commit can belong to.
        begin: Begins a single-use transaction with the given options, for a project and database.
        meter: Receives the cost of each commit.
    """

    def __init__(
        self, opened: open_transactions.Transactions, begin: Begin, meter: cost_meter.Meter
    ) -> None:
        self._transactions = opened
        self._begin = begin
        self._meter = meter

    def commit(
        self, request: protobufs.CommitRequest, default: keys.Partition, *, are_own: bool = False
    ) -> bytes:
        """Answer a Commit; `default` is the partition of keys that name no partition.

        `are_own` tells whether the caller made the entities in their stored form (`mutations`).
        """
        selector = request.WhichOneof("transaction_selector")
        has_transaction = selector is not None
        if request.mode == _NON_TRANSACTIONAL and has_transaction:
            raise errors.InvalidArgument(
                "A non-transactional commit may not specify a transaction."
            )
        if request.mode != _NON_TRANSACTIONAL and not has_transaction:
            raise errors.InvalidArgument("A transactional commit must specify a transaction.")
        if not has_transaction:
            return self._write(request, default, None, are_own=are_own)
        if selector == "single_use_transaction":
            return self._single_use(request, default, are_own=are_own)
        return self._in_transaction(request, request.transaction, default, are_own=are_own)

    def _single_use(
        self, request: protobufs.CommitRequest, default: keys.Partition, *, are_own: bool
    ) -> bytes:
        options = request.single_use_transaction
        if options.WhichOneof("mode") == "read_only":
            raise errors.InvalidArgument("A single-use transaction must be read-write.")
        scope = (default.project, default.database)
        name = self._begin(options, scope).name
        try:
            return self._in_transaction(request, name, default, are_own=are_own)
        except BaseException:
            # No client knows the transaction's id, so no client can end the transaction.
            self._transactions.roll_back(name, scope)
            raise

    def _in_transaction(
        self,
        request: protobufs.CommitRequest,
        name: bytes,
        default: keys.Partition,
        *,
        are_own: bool,
    ) -> bytes:
        scope = (default.project, default.database)
        with self._transactions.using(name, scope) as transaction:
            if transaction.is_read_only and request.mutations:
                raise errors.InvalidArgument("Cannot modify entities in a read-only transaction.")
            try:
                answer = self._write(request, default, transaction, are_own=are_own)
            except errors.Aborted:
                self._transactions.end(transaction, open_transactions.Outcome.ABORTED)
                raise
            self._transactions.end(transaction, open_transactions.Outcome.COMMITTED)
            return answer

    def _write(
        self,
        request: protobufs.CommitRequest,
        default: keys.Partition,
        transaction: open_transactions.Transaction | None,
        *,
        are_own: bool,
    ) -> bytes:
        if not request.mutations:
            # Without writes, no check is needed, because all reads came from one snapshot.
            if transaction is None:
                return b""
            seen = self._transactions.snapshot_of(transaction).version
            return protobufs.field(_COMMIT_TIME, protobufs.timestamp(seen))

        def check() -> list[mutations.Mutation]:
            stored = {} if transaction is None else transaction.reads.found
            checked = mutations.check(request.mutations, default, stored, are_own=are_own)
            if transaction is None:
                mutations.check_each_once(checked)
            return checked

        def apply(
            writer: row_writer.RowWriter, checked: list[mutations.Mutation]
        ) -> tuple[bytes, list[mutations.Mutation], errors.DatastoreError | None]:
            results, failure = _apply_all(writer, checked, is_atomic=transaction is not None)
            answer = _response(writer, results, is_transactional=transaction is not None)
            both = zip(checked, results, strict=False)
            return answer, [write for write, result in both if not result.has_conflict], failure

        answer, applied, failure = self._transactions.write(transaction, check, apply)
        deletes = sum(write.entity is None for write in applied)
        self._meter.count_commit(
            [write.key for write in applied], writes=len(applied) - deletes, deletes=deletes
        )
        if failure is not None:
            raise failure
        return answer


def _apply_all(
    writer: row_writer.RowWriter, checked: list[mutations.Mutation], *, is_atomic: bool
) -> tuple[list[mutations.Applied], errors.DatastoreError | None]:
    """Apply mutations in order; return their results, and the error, if any, that stopped them."""
    results: list[mutations.Applied] = []
    for write in checked:
        fault_plans.point("commit.mutation")
        try:
            results.append(mutations.apply(writer, write))
        except errors.DatastoreError as failure:
            if is_atomic or not results or type(failure) not in _OF_ONE_MUTATION:
                raise
            return results, failure
    return results, None


def _response(
    writer: row_writer.RowWriter, results: list[mutations.Applied], *, is_transactional: bool
) -> bytes:
    parts = [protobufs.field(_RESULT, result.content) for result in results]
    parts.append(protobufs.number_field(_INDEX_UPDATES, writer.index_updates))
    if is_transactional:
        parts.append(protobufs.field(_COMMIT_TIME, protobufs.timestamp(writer.commit_version)))
    return checked_size(b"".join(parts))


def checked_size(answer: bytes) -> bytes:
    """Before the commit, refuse a response that is too large for clients."""
    if len(answer) >= MAX_RESPONSE_BYTES:
        raise errors.InvalidArgument(
            f"The response would be {MAX_RESPONSE_BYTES} bytes or more. Send a smaller request."
        )
    return answer
