"""Claims about a query that comes in several batches: it is one run, and ends at its limit."""

import pytest
from google.cloud import ndb

from comments.store import connection, reads

ROWS = 700  # the store sends 300 in a batch


class Row(ndb.Model):
    """A kind that nobody owns."""


@pytest.mark.parametrize("limit", [None, 1, 300, 450, 600, ROWS, ROWS + 1])
def test_a_query_of_many_batches_gives_each_result_once_up_to_its_limit(
    store: connection.Store, limit: int | None
) -> None:
    names = [f"{number:03}" for number in range(ROWS)]
    ndb.put_multi([Row(id=name) for name in names])  # type: ignore[call-arg]
    request = reads.prepared(reads.Query("Row", order=["__key__"], limit=limit))
    for _ in range(2):  # what was prepared may be asked again
        found = [each.key.path[-1].name for each in reads.ask(request)]
        assert found == names[:limit]
