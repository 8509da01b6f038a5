"""Provide fixtures for tests that request every route."""

from collections.abc import Iterator

import pytest

from tests.support import datastores, every_route


@pytest.fixture(scope="module")
def all_roles(shared_datastore: datastores.Datastore) -> Iterator[every_route.AllRoles]:
    """A service with callers in every role; a module's tests share it and its store context."""
    with every_route.opened(every_route.AllRoles, shared_datastore) as made:
        yield made
