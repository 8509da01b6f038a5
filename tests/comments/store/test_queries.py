"""A query with several batches returns one sequence of results and stops at its limit."""

import pytest
from google.cloud import ndb

from comments.store import connection, reads
from tests.support import datastores

ROWS = 700  # the store sends batches of 300
NAMES = [f"{number:03}" for number in range(ROWS)]


class Row(ndb.Model):
    """A kind without an owner."""


@pytest.fixture(scope="module")
def rows(shared_datastore: datastores.Datastore) -> connection.Store:
    """The store with the rows."""
    # Google's Datastore emulator can take longer than the usual 10 seconds.
    store = shared_datastore.connect(rpc_timeout=60.0)
    with store.context():
        ndb.put_multi([Row(id=name) for name in NAMES])  # type: ignore[call-arg]
    return store


@pytest.mark.parametrize("limit", [None, 1, 300, 450, 600, ROWS, ROWS + 1])
def test_a_query_of_many_batches_returns_each_result_once_up_to_its_limit(
    rows: connection.Store, limit: int | None
) -> None:
    with rows.context():
        found = reads.fetch(reads.Query("Row", order=["__key__"], limit=limit))
        assert [each.key.path[-1].name for each in found] == NAMES[:limit]
