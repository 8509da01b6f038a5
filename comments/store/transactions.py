"""Transactions: bodies that run until they commit once, and what they write."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import grpc
from google.api_core import exceptions as api
from google.cloud import ndb
from google.cloud.datastore_v1.types import datastore as rpc_types

from comments import errors
from comments.store import commit_counts, connection
from comments.store.ownership import Writes
from comments.store.wire import codec, wire_transaction

T = TypeVar("T")

_Mutation = rpc_types.Mutation.pb()


def transaction(body: Callable[[], T], *, line: str = "") -> T:
    """Run `body` in a read-write transaction until it commits once; return what it returned.

    `body` may run several times, also after a commit of its own that was applied: it looks first
    and recognises its own work. `line` names a row that many write at once: within one process
    those transactions then take turns instead of aborting one another.

    Each attempt names the one before it. Of transactions that wait for each other the store gives
    up the youngest, by its first attempt: so whoever came first is through in the end, however many
    come after it.

    Raises:
        errors.Overloaded: it did not commit before the deadline. It may have been applied.
    """
    store = connection.current()
    last = wire_transaction.Transaction(store.calls)
    is_unsure = False

    def attempt() -> T:
        nonlocal last, is_unsure
        last = wire_transaction.Transaction(store.calls, previous=last.id or last.previous)
        connection.state.may_have_run = is_unsure
        try:
            return _within_transaction(last, body)
        except (api.GoogleAPICallError, grpc.RpcError) as error:
            is_unsure = is_unsure or not isinstance(connection.known(error), api.Aborted)
            raise

    with connection.within(store.deadline), store.line(line):
        return connection.patiently(attempt, store)


def snapshot(body: Callable[[], T]) -> T:
    """Run `body` in a read-only transaction: everything it reads is of one moment."""
    store = connection.current()

    def attempt() -> T:
        return _within_transaction(
            wire_transaction.Transaction(store.calls, is_read_only=True), body
        )

    with connection.within(store.deadline):
        return connection.patiently(attempt, store)


def at_one_moment(body: Callable[[], T]) -> T:
    """Run `body` in the current transaction if there is one, else in a `snapshot`."""
    return body() if connection.state.transaction is not None else snapshot(body)


def _within_transaction(opened: wire_transaction.Transaction, body: Callable[[], T]) -> T:
    if connection.state.transaction is not None:
        raise RuntimeError("a transaction holds no other one")
    connection.state.transaction = opened
    try:
        result = body()
        opened.commit()
        connection.state.writes += opened.size
    except BaseException:
        opened.roll_back()
        raise
    finally:
        connection.state.transaction = None
        # Also after a failure: the commit may have been applied.
        for each in opened.afterwards:
            each()
    return result


def afterwards(call: Callable[[], None]) -> None:
    """Call this when the current attempt of the transaction is over, committed or not."""
    opened = connection.state.transaction
    if opened is None:
        raise RuntimeError("afterwards belongs inside datastore.transaction")
    opened.afterwards.append(call)


def may_have_run() -> bool:
    """Whether an earlier run of the current transaction may have been applied."""
    return connection.state.may_have_run


def apply(*changes: Writes) -> None:
    """Put and delete what owners asked for, when the current transaction commits."""
    opened = connection.state.transaction
    if opened is None or opened.is_read_only:
        raise errors.UnownedWrite("apply belongs inside datastore.transaction")
    store = connection.current()
    threads = _threads(changes)
    if threads:
        # What was asked before the commit must not be used again after it.
        opened.afterwards.append(lambda: commit_counts.note(threads))

    def entity(row: ndb.Model) -> Any:
        return codec.message(row, store.key(*row.key.pairs()))

    opened.add(
        [
            *(_Mutation(insert=entity(row)) for change in changes for row in change.insert),
            *(_Mutation(upsert=entity(row)) for change in changes for row in change.put),
            *(
                _Mutation(delete=store.key(*key.pairs()))
                for change in changes
                for key in change.delete
            ),
        ]
    )


def _threads(changes: Sequence[Writes]) -> set[str]:
    """The threads that are written, or whose comments are, by their keys' names."""
    rows: list[Any] = [row for change in changes for row in (*change.insert, *change.put)]
    kinds = [(row.key.pairs()[-1], row) for row in rows]
    found = {row.thread for (kind, _), row in kinds if kind == "Comment"}
    return found | {name for (kind, name), _ in kinds if kind == "Thread"}
