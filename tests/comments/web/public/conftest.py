"""Fixtures for the public pages."""

from collections.abc import Callable
from typing import Any

import pytest

from comments.domain import records
from comments.sites import site_settings
from comments.store import connection


@pytest.fixture
def plain(open_store: connection.Store, site: records.Site) -> Callable[..., None]:
    """Enable the form on the site "demo"; change other options with keywords."""
    del site

    def change(**options: Any) -> None:
        with open_store.context():
            site_settings.change("demo", options={"forms": True, **options})

    change()
    return change
