"""Provide fixtures for tests that request every route."""

from collections.abc import Iterator

import pytest

from tests.support import every_route


@pytest.fixture(scope="module")
def all_roles() -> Iterator[every_route.AllRoles]:
    """A service with callers in every role; a module's tests share it and its store context."""
    with every_route.opened(every_route.AllRoles) as made:
        yield made
