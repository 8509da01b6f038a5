"""A thread enters the store again with NDB's context of its last request."""

import threading
from typing import Any

import pytest

from comments.store import connection
from tests.support import datastores


def entered(store: connection.Store) -> Any:
    with store.context() as context:
        return context


def test_a_thread_reuses_its_context(open_store: connection.Store) -> None:
    assert entered(open_store) is entered(open_store)


def test_a_context_is_not_used_again_after_a_failure(open_store: connection.Store) -> None:
    before = entered(open_store)
    with pytest.raises(ValueError, match="damaged"), open_store.context() as failed:
        raise ValueError("damaged")
    assert failed is before
    assert entered(open_store) is not before


def test_each_thread_has_its_own_context(open_store: connection.Store) -> None:
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(entered(open_store)))
    thread.start()
    thread.join()
    assert found[0] is not entered(open_store)


def test_another_store_gets_another_context(
    open_store: connection.Store, datastore: datastores.Datastore
) -> None:
    other = datastore.connect(None)
    assert entered(open_store) is not entered(other)
    assert entered(other).client is other._client
