"""Provide a site, an export and small batches to tests of undone imports."""

from pathlib import Path

import pytest

from comments.domain import records
from comments.sites import site_settings
from comments.store import connection
from comments.transfer.checking import import_batches
from tests.support.threads import compaction, sample_exports
from tests.support.threads import undone_imports as undone


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make an import write several batches, and a compaction several buckets."""
    monkeypatch.setattr(import_batches, "BATCH", 3)
    compaction.small_buckets(monkeypatch)


@pytest.fixture
def garden(store: connection.Store) -> records.Site:
    undone.Clock.current()
    return site_settings.add(
        "garden", sample_exports.SITE.origins, scheme=undone.SCHEME, now=undone.NOW
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The file of `undone_imports.EXPORT`."""
    return undone.saved(tmp_path / "export", undone.EXPORT, lilies={"closed": True})
