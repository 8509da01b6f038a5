"""The benchmark of lists finds what it stored."""

import pytest

from benchmarks import lists
from comments.store import connection
from datastore_emulator import inprocess


@pytest.mark.embedded
def test_a_changed_set_contains_what_it_should(store: connection.Store) -> None:
    changes = lists.Changes(ids=400, marks=1_200)
    changes.run()
    assert changes.wrong() == 0


@pytest.mark.embedded
def test_an_inbox_contains_what_it_should(
    engine: inprocess.Engine, store: connection.Store
) -> None:
    full = lists.fill_inbox(engine, replies=5)
    assert (full.wrong, full.reads) == (0, 2 + 5)
