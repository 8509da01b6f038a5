"""Prepare data files that are filled once and copied for each test that starts from them.

Posting a thread with forty comments takes longer than most tests that read it.

The original file is never opened again, so no test sees another test's writes. Tests must not
change the objects that they share.
"""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pytest

from comments.domain import records
from comments.sites import site_settings
from comments.store import connection
from datastore_emulator import inprocess
from tests.support.threads import sample_threads

INDEXES = Path(__file__).parents[2] / "index.yaml"
NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)


@contextmanager
def opened(
    path: Path | None, concurrency: Literal["optimistic", "pessimistic"] = "pessimistic"
) -> Iterator[inprocess.Engine]:
    """Open an engine with the product's indexes and mode; the path None keeps data in memory."""
    with inprocess.open_engine(
        path, indexes=INDEXES, concurrency=concurrency, history=0, durability="fast"
    ) as engine:
        yield engine


@contextmanager
def opened_copy(begun: Path) -> Iterator[inprocess.Engine]:
    """Open an engine on a copy of a file, and delete the copy afterwards."""
    with (
        tempfile.TemporaryDirectory(prefix="begun-") as folder,
        opened(Path(shutil.copy(begun, folder))) as engine,
    ):
        yield engine


def demo() -> records.Site:
    """Store the site "demo"."""
    return site_settings.add(
        "demo", ["http://localhost:8080"], scheme=sample_threads.SETTINGS.scheme, now=NOW
    )


class Beginning(NamedTuple):
    """A data file with the site "demo", and the value that the filling function returned."""

    path: Path
    found: Any


def grown(folders: pytest.TempPathFactory, grow: Callable[[records.Site], object]) -> Beginning:
    """Make a data file with the site "demo"; call `grow` inside the store's context to fill it."""
    path = folders.mktemp("begun") / "data"
    with opened(path) as engine:
        store = connection.Store(inprocess.Channel(engine), project="test")
        with store.context():
            return Beginning(path, grow(demo()))
