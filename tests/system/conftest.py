"""Fixtures of tests that ask every route."""

from collections.abc import Iterator

import pytest

from tests.support import every_route


@pytest.fixture(scope="module")
def all_roles() -> Iterator[every_route.AllRoles]:
    """A service with somebody of every role, inside its store; a module's tests share it."""
    with every_route.opened(every_route.AllRoles) as made:
        yield made
