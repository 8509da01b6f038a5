"""A query with several batches returns one sequence of results and stops at its limit."""

import pytest
from google.cloud import ndb

from comments.store import connection, reads

ROWS = 700  # the store sends batches of 300


class Row(ndb.Model):
    """A kind without an owner."""


@pytest.mark.parametrize("limit", [None, 1, 300, 450, 600, ROWS, ROWS + 1])
def test_a_query_of_many_batches_returns_each_result_once_up_to_its_limit(
    store: connection.Store, limit: int | None
) -> None:
    names = [f"{number:03}" for number in range(ROWS)]
    ndb.put_multi([Row(id=name) for name in names])  # type: ignore[call-arg]
    found = reads.fetch(reads.Query("Row", order=["__key__"], limit=limit))
    assert [each.key.path[-1].name for each in found] == names[:limit]
