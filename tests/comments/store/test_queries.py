"""A query with several batches returns one sequence of results and stops at its limit."""

import pytest

from comments.store import connection, ownership, reads, transactions
from comments.store.models import schema
from tests.support import datastores

ROWS = 700  # The store sends batches of 300
NAMES = [f"{number:03}" for number in range(ROWS)]


class NumberedRow(schema.StoredRow):
    """A kind without an owner."""


@pytest.fixture(scope="module")
def rows(shared_datastore: datastores.Datastore) -> connection.Store:
    """The store with the rows."""
    # Google's Datastore emulator can take longer than the usual 10 seconds.
    store = shared_datastore.connect(rpc_timeout=60.0)
    with store.context():
        for names in (NAMES[:350], NAMES[350:]):
            rows = tuple(NumberedRow(key=schema.RowKey(NumberedRow, name)) for name in names)
            put = ownership.Writes("any", put=rows)
            transactions.transaction(lambda put=put: transactions.apply(put))  # type: ignore[misc]
    return store


@pytest.mark.parametrize("limit", [None, 1, 300, 450, 600, ROWS, ROWS + 1])
def test_a_query_of_many_batches_returns_each_result_once_up_to_its_limit(
    rows: connection.Store, limit: int | None
) -> None:
    with rows.context():
        found = reads.fetch(reads.Query("Numbered", order=["__key__"], limit=limit))
        assert [each.key.path[-1].name for each in found] == NAMES[:limit]
