"""Change stored rows without the product's code, as a restore, a script or another client does.

No flag is set, no revision is raised, no counter is updated, and no event is written.
"""

from typing import Any

from google.cloud.datastore_v1.types import datastore as rpc_types

from comments.domain import records
from comments.store import connection, ownership, reads, transactions
from comments.store.models import bucket_rows, comment_rows, schema

_Commit = rpc_types.CommitRequest.pb()
_Mutation = rpc_types.Mutation.pb()
_OWNERS = {"Comment": "tree", "Participation": "counters", "Thread": "tree"}


def change(key: schema.RowKey, **values: Any) -> None:
    """Set properties of a stored entity."""

    def body() -> None:
        row = reads.get(key)
        row.populate(**values)
        transactions.apply(ownership.Writes(_owner(key), put=(row,)))

    transactions.transaction(body)


def comment(comment_id: str, **values: Any) -> None:
    """Set properties of a comment."""
    change(comment_rows.comment_key(comment_id), **values)


def without(comment_id: str, name: str) -> None:
    """Store a comment without one of its properties."""
    store = connection.current()
    (message,) = reads.read([comment_rows.comment_key(comment_id)])
    del message.properties[name]
    request = _Commit(**store.request_fields(), mode=2, mutations=[_Mutation(upsert=message)])
    store.commit(request, timeout=5.0)


def delete(*keys: schema.RowKey) -> None:
    """Delete entities."""
    writes = [ownership.Writes(_owner(key), delete=(key,)) for key in keys]
    transactions.transaction(lambda: transactions.apply(*writes))


def delete_comments(*ids: str) -> None:
    """Delete comments."""
    delete(*map(comment_rows.comment_key, ids))


def insert_copy(of: str, comment_id: str, **values: Any) -> None:
    """Insert a comment that equals another one, except for its id and these properties."""

    def body() -> None:
        source = reads.get(comment_rows.comment_key(of))
        given = {name: getattr(source, name) for name in source.COLUMNS} | values
        row = comment_rows.CommentRow(key=comment_rows.comment_key(comment_id), **given)
        transactions.apply(ownership.Writes("tree", put=(row,)))

    transactions.transaction(body)


def spoil_directory(name: records.ThreadName) -> None:
    """Replace the content of a thread's directory with bytes that nothing can decode."""
    change(bucket_rows.directory_key(name), content=b"spoiled", head=b"")


def _owner(key: schema.RowKey) -> str:
    return _OWNERS.get(key.kind(), "compactor")
