"""Provide fixtures for tests of backups: a service's folders, and the files of its engine."""

import contextlib
import dataclasses
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import embedded_engine
from comments import config
from comments.domain import records
from comments.events import dispatcher
from comments.sites import site_settings
from comments.upkeep import wiring
from tests.support.histories import counter_oracle
from tests.support.threads import compaction, sample_threads

Open = Callable[[config.Settings], contextlib.AbstractContextManager[records.Site]]


@contextlib.contextmanager
def _opened(settings: config.Settings) -> Iterator[records.Site]:
    settings.data_dir.mkdir(exist_ok=True)
    with (
        embedded_engine.DataFiles().open_store(settings.data_file, settings) as store,
        store.context(),
    ):
        if not list(site_settings.every()):
            site_settings.add(
                "demo", ["https://a.example"], scheme=settings.scheme, now=sample_threads.START
            )
        yield site_settings.get("demo")


@pytest.fixture
def open_service() -> Open:
    """Return a context manager that opens the store of a service in this process."""
    return _opened


def _service(folder: Path) -> config.Settings:
    (folder / "backups").mkdir(parents=True)
    return dataclasses.replace(
        sample_threads.SETTINGS, data_dir=folder / "data", backup_dir=folder / "backups"
    )


@pytest.fixture(scope="session")
def _grown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    settings = _service(tmp_path_factory.mktemp("backups"))
    with _opened(settings) as site:
        rows = sample_threads.grow(site, sample_threads.TREE)
        sample_threads.grow(site, {"a": {"b": {}}}, thread="other")
        sample_threads.retract(rows["1.1.2"])
        compaction.whole(sample_threads.name_of(site))
        dispatcher.deliver(
            counter_oracle.events(), now=sample_threads.START, handlers=wiring.HANDLERS
        )
    return settings.data_dir


@pytest.fixture
def service(tmp_path: Path, _grown: Path) -> config.Settings:
    """The settings of a service with two threads, whose store is closed."""
    settings = _service(tmp_path)
    shutil.copytree(_grown, settings.data_dir)
    return settings


@pytest.fixture
def files() -> embedded_engine.DataFiles:
    return embedded_engine.DataFiles()
