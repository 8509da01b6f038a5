"""Fixtures of tests that look for damage."""

import pytest

from comments.domain import records
from comments.store import connection
from tests.support import prepared_stores


@pytest.fixture
def counted_rows(
    store: connection.Store, begun: prepared_stores.Beginning
) -> dict[str, records.Comment]:
    """What `counter_drift` has grown, by its texts; the store's context is entered."""
    rows: dict[str, records.Comment] = begun.found
    return rows
