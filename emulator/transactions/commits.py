"""Commits: the mutations of one request, with or without a transaction.

Owns the sequence of a Commit: find its transaction, if any; check everything that needs no lock;
write, answer and meter. `mutations` decides what a mutation does, and `open_transactions` decides
whether a transaction may commit.

Invariants:

1. A commit that returns OK or ABORTED ends its transaction. After any other error, the transaction
   remains open.
2. The response is serialized before the COMMIT, because a commit must fail if its response cannot
   be serialized.
"""

from __future__ import annotations

from collections.abc import Callable

from emulator import errors, protobufs
from emulator.encoding import keys
from emulator.execution import cost_meter
from emulator.fault_injection import fault_plans
from emulator.storage import row_writer
from emulator.transactions import mutations, open_transactions

MAX_RESPONSE_BYTES = 4 * 1024 * 1024  # the default limit of gRPC clients
_NON_TRANSACTIONAL = 2

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

    def commit(self, request: protobufs.CommitRequest, default: keys.Partition) -> bytes:
        """Answer a Commit; `default` is the partition of keys that name no partition."""
        selector = request.WhichOneof("transaction_selector")
        has_transaction = selector is not None
        if request.mode == _NON_TRANSACTIONAL and has_transaction:
            raise errors.InvalidArgument(
                "A non-transactional commit may not specify a transaction."
            )
        if request.mode != _NON_TRANSACTIONAL and not has_transaction:
            raise errors.InvalidArgument("A transactional commit must specify a transaction.")
        if not has_transaction:
            return self._write(request, default, None)
        if selector == "single_use_transaction":
            return self._single_use(request, default)
        return self._in_transaction(request, request.transaction, default)

    def _single_use(self, request: protobufs.CommitRequest, default: keys.Partition) -> bytes:
        options = request.single_use_transaction
        if options.WhichOneof("mode") == "read_only":
            raise errors.InvalidArgument("A single-use transaction must be read-write.")
        scope = (default.project, default.database)
        name = self._begin(options, scope).name
        try:
            return self._in_transaction(request, name, default)
        except BaseException:
            # No client knows the transaction's id, so no client can end the transaction.
            self._transactions.roll_back(name, scope)
            raise

    def _in_transaction(
        self, request: protobufs.CommitRequest, name: bytes, default: keys.Partition
    ) -> bytes:
        scope = (default.project, default.database)
        with self._transactions.using(name, scope) as transaction:
            if transaction.is_read_only and request.mutations:
                raise errors.InvalidArgument("Cannot modify entities in a read-only transaction.")
            try:
                answer = self._write(request, default, transaction)
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
    ) -> bytes:
        if not request.mutations:
            # Without writes, no check is needed, because all reads came from one snapshot.
            if transaction is None:
                return b""
            seen = self._transactions.snapshot_of(transaction).version
            return protobufs.field(8, protobufs.timestamp(seen))

        def check() -> list[mutations.Mutation]:
            checked = mutations.check(request.mutations, default)
            if transaction is None:
                mutations.check_each_once(checked)
            return checked

        def apply(
            writer: row_writer.RowWriter, checked: list[mutations.Mutation]
        ) -> tuple[bytes, protobufs.CommitResponse, list[mutations.Mutation]]:
            response = protobufs.CommitResponse()
            for write in checked:
                fault_plans.point("commit.mutation")
                response.mutation_results.append(mutations.apply(writer, write))
            response.index_updates = writer.index_updates
            if transaction is not None:
                response.commit_time.FromMicroseconds(writer.commit_version)
            return serialized(response), response, checked

        answer, response, checked = self._transactions.write(transaction, check, apply)
        applied = [
            write
            for write, result in zip(checked, response.mutation_results, strict=True)
            if not result.conflict_detected
        ]
        deletes = sum(write.entity is None for write in applied)
        self._meter.count_commit(
            [write.key for write in applied], writes=len(applied) - deletes, deletes=deletes
        )
        return answer


def serialized(response: protobufs.CommitResponse | protobufs.AllocateIdsResponse) -> bytes:
    """Serialize a response before the commit; refuse one that is too large for clients."""
    answer = response.SerializeToString()
    if len(answer) >= MAX_RESPONSE_BYTES:
        raise errors.InvalidArgument(
            f"The response would be {MAX_RESPONSE_BYTES} bytes or more. Send a smaller request."
        )
    return answer
