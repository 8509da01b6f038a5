"""Provide fixtures for all tests: a store on a fresh engine, a site, an application, a client."""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import flask
import flask.testing
import pytest

from comments import config
from comments.domain import records
from comments.sites import site_settings
from comments.store import connection
from datastore_emulator import inprocess
from tests.support import (
    app_compilation,
    datastores,
    hypothesis_profiles,
    prepared_stores,
    store_runs,
)
from tests.support.store_interceptors import InterceptorSlot
from tests.support.threads import sample_threads

if TYPE_CHECKING:
    from tests.support.outside import mail_server
    from tests.support.people import provider_login

ROOT = Path(__file__).parent.parent

hypothesis_profiles.load()
app_compilation.compile_once()


@pytest.fixture(scope="module")
def begun() -> prepared_stores.Beginning | None:
    """A data file that each test of a module copies. Modules override this fixture."""
    return None


@pytest.fixture
def engine(begun: prepared_stores.Beginning | None) -> Iterator[inprocess.Engine]:
    """A fresh engine with the indexes of index.yaml and the product's concurrency mode."""
    opened = (
        prepared_stores.opened(None) if begun is None else prepared_stores.opened_copy(begun.path)
    )
    with opened as engine:
        yield engine


@pytest.fixture(scope="session")
def open_datastore(
    pytestconfig: pytest.Config,
) -> datastores.Open:
    """Return a function that connects a test to a new database.

    With `--store`, the database is a new project of the emulator. Otherwise, it is the engine that
    the function's argument opens.
    """
    if pytestconfig.getoption("--store"):
        host = store_runs.host()
        return lambda _open_engine: datastores.Emulator(host)
    return lambda open_engine: datastores.Embedded(open_engine())


@pytest.fixture(scope="module")
def shared_datastore(open_datastore: datastores.Open) -> Iterator[datastores.Datastore]:
    """A database that the tests of a module share."""
    with contextlib.ExitStack() as stack:
        yield open_datastore(lambda: stack.enter_context(prepared_stores.opened(None)))


@pytest.fixture
def new_datastore(
    open_datastore: datastores.Open,
) -> Iterator[Callable[[], datastores.Datastore]]:
    """Return a function that creates an empty database."""
    with contextlib.ExitStack() as stack:
        yield lambda: open_datastore(lambda: stack.enter_context(prepared_stores.opened(None)))


@pytest.fixture
def datastore(
    request: pytest.FixtureRequest,
    open_datastore: datastores.Open,
    begun: prepared_stores.Beginning | None,
) -> datastores.Datastore:
    """The database of a test that uses only the API of Datastore."""
    opened = open_datastore(lambda: request.getfixturevalue("engine"))
    if isinstance(opened, datastores.Emulator) and begun is not None:
        opened.load(begun.path)
    return opened


@pytest.fixture
def interceptor() -> InterceptorSlot:
    """The slot for an interceptor of store calls. A fixture or a test fills the slot."""
    return InterceptorSlot()


@pytest.fixture
def open_store(datastore: datastores.Datastore, interceptor: InterceptorSlot) -> connection.Store:
    """A store with its context not yet entered, for threads, servers and clients."""
    return datastore.connect(interceptor)


@pytest.fixture
def store(open_store: connection.Store) -> Iterator[connection.Store]:
    """A store with its context entered in this thread."""
    with open_store.context():
        yield open_store


@pytest.fixture
def settings(request: pytest.FixtureRequest) -> config.Settings:
    """The settings from the marker `settings`: complete settings, changes to the defaults, or both.

    With `mail=True`, the service sends mail to the fixture `box`.
    """
    marker = request.node.get_closest_marker("settings") or pytest.mark.settings().mark
    (given,) = marker.args or (sample_threads.SETTINGS,)
    changes = dict(marker.kwargs)
    if changes.pop("mail", False):
        box: mail_server.Box = request.getfixturevalue("box")
        given = box.settings()
    return dataclasses.replace(given, **changes)


@pytest.fixture
def site(open_store: connection.Store, begun: prepared_stores.Beginning | None) -> records.Site:
    """The stored site "demo"."""
    with open_store.context():
        return prepared_stores.demo() if begun is None else site_settings.get("demo")


@pytest.fixture
def app(open_store: connection.Store, settings: config.Settings) -> flask.Flask:
    from comments import app as apps  # noqa: PLC0415 - import Flask only on demand

    return apps.create_app(settings, open_store)


@pytest.fixture
def client(app: flask.Flask, site: records.Site) -> flask.testing.FlaskClient:
    """A test client for an application that has the site "demo"."""
    return app.test_client()


@pytest.fixture
def box() -> Iterator["mail_server.Box"]:
    """A mail server that records its mail."""
    from tests.support.outside import mail_server  # noqa: PLC0415 - import aiosmtpd only on demand

    with mail_server.serving() as box:
        yield box


@pytest.fixture
def short_deadline(open_store: connection.Store) -> connection.Store:
    """The store with a deadline of a quarter of a second."""
    open_store.deadline = 0.25
    return open_store


@pytest.fixture
def quick_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hash passwords as weakly as possible for tests of other features."""
    from tests.support.people import account_holders  # noqa: PLC0415 - import argon2 only on demand

    account_holders.weaken_passwords(monkeypatch)


@pytest.fixture
def provider(store: connection.Store, site: records.Site) -> Iterator["provider_login.Impostor"]:
    """A login provider that is offered to everyone; tests can falsify its answers."""
    from tests.support.people import provider_login  # noqa: PLC0415 - import Flask only on demand

    with provider_login.impostor(store) as found:
        provider_login.register(found)
        yield found
