"""Run transactions: run a body until it commits once, and collect its writes."""

import contextlib
from collections.abc import Callable, Collection
from typing import Any, TypeVar

import grpc
from google.api_core import exceptions as api
from google.cloud.datastore_v1.types import datastore as rpc_types

from comments import errors
from comments.store import connection, ownership
from comments.store.memory import commit_counts
from comments.store.ownership import ERASER, Patch, Writes
from comments.store.wire import codec

T = TypeVar("T")

# A rollback gets at least this time, even after the deadline. With a shorter time-out, the call
# might not reach the store, and the store would keep the transaction's locks for up to a minute.
_ROLLBACK_SECONDS = 1.0
_Rollback = rpc_types.RollbackRequest.pb()


def transaction(body: Callable[[], T], *, line: str = "", has_run: bool = False) -> T:
    """Run `body` in a read-write transaction until it commits once, and return its result.

    `body` may run several times, even after its commit was applied, so `body` must recognize its
    own earlier work. `line` names a row that many transactions write concurrently. Within one
    process, these transactions then take turns instead of aborting each other. `has_run` means that
    an earlier transaction with the same effect may have been applied (see `may_have_run`).

    Each attempt sends the id of the previous attempt to the store. When transactions wait for each
    other, the store aborts the transaction whose first attempt began last. Every transaction
    therefore commits eventually, no matter how many others start after it.

    Raises:
        errors.Overloaded: the transaction did not commit before the deadline. The writes may still
        have been applied.
    """
    store = connection.current()
    previous, is_unsure = b"", has_run

    def attempt() -> T:
        nonlocal previous, is_unsure
        opened = connection.Transaction(previous=previous)
        connection.state.may_have_run = is_unsure
        try:
            return _within_transaction(opened, body)
        except (api.GoogleAPICallError, grpc.RpcError) as error:
            previous = opened.id or previous
            is_unsure = is_unsure or not isinstance(connection.api_error(error), api.Aborted)
            raise

    with connection.within(store.deadline), store.line(line):
        return connection.patiently(attempt, store)


def snapshot(body: Callable[[], T]) -> T:
    """Run `body` in a read-only transaction, in which all reads see the same moment."""
    store = connection.current()

    def attempt() -> T:
        return _within_transaction(connection.Transaction(is_read_only=True), body)

    with connection.within(store.deadline):
        return connection.patiently(attempt, store)


def at_one_moment(body: Callable[[], T]) -> T:
    """Run `body` in the current transaction if there is one, otherwise in a `snapshot`."""
    return body() if connection.state.transaction is not None else snapshot(body)


def _within_transaction(opened: connection.Transaction, body: Callable[[], T]) -> T:
    if connection.state.transaction is not None:
        raise RuntimeError("transactions are never nested")
    connection.state.transaction = opened
    try:
        result = body()
        commit(opened)
        connection.state.writes += len(opened.mutations)
    except BaseException:
        _roll_back(opened)
        raise
    finally:
        connection.state.transaction = None
        # Make these calls even after a failure, because the commit may have been applied.
        for action in opened.afterwards:
            action()
    return result


def commit(opened: connection.Transaction) -> None:
    """Commit a transaction. If the transaction has neither read nor written, make no call."""
    store, request = connection.current(), opened.request
    request.project_id, request.database_id = store.project, store.database
    if opened.id and opened.is_read_only and store.is_emulator:
        _roll_back(opened)
        return
    if opened.id:
        request.transaction = opened.id
    elif opened.mutations:
        request.single_use_transaction.CopyFrom(opened.options)
    else:
        return
    store.commit(request, timeout=connection.timeout(store))


def _roll_back(opened: connection.Transaction) -> None:
    """Roll back a transaction. If the rollback fails, the store expires the transaction later."""
    if opened.id:
        store = connection.current()
        request = _Rollback(**store.request_fields(), transaction=opened.id)
        with contextlib.suppress(grpc.RpcError):
            store.rollback(request, timeout=_ROLLBACK_SECONDS)


def afterwards(call: Callable[[], None]) -> None:
    """Run `call` when the current attempt of the transaction ends, committed or not."""
    opened = connection.state.transaction
    if opened is None:
        raise RuntimeError("afterwards must be called inside a transaction")
    opened.afterwards.append(call)


def pending_bytes() -> int:
    """Return the size of the changes that the current transaction has collected so far."""
    opened = connection.state.transaction
    return 0 if opened is None else sum(mutation.ByteSize() for mutation in opened.mutations)


def pending_writes() -> int:
    """Return the number of changes that the current transaction has collected so far."""
    opened = connection.state.transaction
    return 0 if opened is None else len(opened.mutations)


def may_have_run() -> bool:
    """Return whether an earlier run of the current transaction may have been applied."""
    return connection.state.may_have_run


def apply(*changes: Writes) -> None:
    """Add owners' puts and deletes to the current transaction's commit.

    Raises:
        errors.UnownedWrite: an entity is of a kind that belongs to another owner.
    """
    opened = connection.state.transaction
    if opened is None or opened.is_read_only:
        raise errors.UnownedWrite("apply must be called inside a transaction")
    begun = len(opened.mutations)
    threads = set[str]()
    try:
        for writes in changes:
            _add(opened.mutations, writes, threads)
    except BaseException:
        del opened.mutations[begun:]
        raise
    if threads:
        # Data that was read before the commit must not be reused after the commit.
        opened.afterwards.append(lambda: commit_counts.note(threads))


def _add(mutations: Any, change: Writes, threads: set[str]) -> None:
    """Encode the writes as mutations, and add the threads that they change to `threads`."""
    store, owner = connection.current(), change.owner

    def encode(made: Any, row: Any, names: Collection[str] | None = None) -> None:
        kind, name = row.key[-1]
        ownership.check(owner, kind)
        if kind in {"Thread", "Comment"}:
            threads.add(name if kind == "Thread" else row.thread)
        codec.fill(made, row, store.key(*row.key), names)

    for row in change.insert:
        encode(mutations.add().insert, row)
    for row in change.put:
        encode(mutations.add().upsert, row)
    for key in change.delete:
        if owner != ERASER:
            ownership.check(owner, key.kind())
        mutations.add(delete=store.key(*key))
    for patch in change.patch:
        made = mutations.add()
        encode(made.update, patch.row, patch.names)
        _keep_others(made, patch)


def _keep_others(mutation: Any, patch: Patch) -> None:
    """Make an update keep the properties that a patch does not name."""
    if not connection.current().is_emulator:
        mutation.property_mask.paths.extend(patch.names)
        return
    # Google's Datastore emulator ignores masks and would drop these properties.
    for name in patch.stored.properties.keys() - set(patch.names):
        mutation.update.properties[name].CopyFrom(patch.stored.properties[name])
