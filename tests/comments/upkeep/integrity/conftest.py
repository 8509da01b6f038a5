"""Provide fixtures for tests of recounts and repairs."""

import pytest

from comments.domain import records
from comments.store import connection
from tests.support import prepared_stores


@pytest.fixture
def counted_rows(
    store: connection.Store, begun: prepared_stores.Beginning
) -> dict[str, records.Comment]:
    """The rows of `counter_drift` by text, inside the store's context."""
    rows: dict[str, records.Comment] = begun.found
    return rows
