"""Provide fixtures for backend tests: clocks, threads, console browsers, caches, receivers."""

import dataclasses
import functools
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import flask
import pytest
from flask.testing import FlaskClient

from comments import app as apps
from comments import config
from comments.domain import records
from comments.limits import demand
from comments.posting import previews
from comments.sites import site_settings
from comments.store import connection
from comments.store.memory import per_process
from comments.web.http import context, response_cache
from datastore_emulator import inprocess
from datastore_emulator.transactions import open_transactions
from tests.support import datastores, loopback_servers
from tests.support.outside import webhook_site
from tests.support.people import account_holders
from tests.support.people.account_holders import OWNER, moderator
from tests.support.people.console_browser import Desk
from tests.support.people.post_times import Moment
from tests.support.people.provider_login import Impostor, Traveller
from tests.support.store_interceptors import Calls, Faults, InterceptorSlot
from tests.support.threads import cache_twins, compaction, sample_exports, sample_threads


@pytest.fixture
def export(tmp_path: Path) -> Callable[..., Path]:
    """Write a Disqus export with one argument on each line, starting at line 2."""

    def write(*lines: str, name: str = "export.xml") -> Path:
        return sample_exports.saved(tmp_path / name, *lines)

    return write


@pytest.fixture
def garden(store: connection.Store) -> records.Site:
    return site_settings.add(
        "garden", sample_exports.SITE.origins, scheme=sample_exports.SCHEME, now=sample_exports.NOW
    )


@pytest.fixture
def one_day() -> None:
    """Wait if midnight UTC is near, because a test that counts by day must not span it."""
    until_midnight = 86_400 - datetime.now(UTC).timestamp() % 86_400
    if until_midnight < 30:
        time.sleep(until_midnight)


class Clock:
    """A clock in seconds that the test advances."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def calls(interceptor: InterceptorSlot) -> Calls:
    """Record the store's calls."""
    return interceptor.use(Calls())


@pytest.fixture
def faults(interceptor: InterceptorSlot) -> Faults:
    """Let the test make store calls fail."""
    return interceptor.use(Faults())


@pytest.fixture
def tree_rows(store: connection.Store, site: records.Site) -> dict[str, records.Comment]:
    """The eight comments of the thread "page", by text, inside the store's context."""
    return sample_threads.grow(site, sample_threads.TREE)


@pytest.fixture
def compacted_page(open_store: connection.Store, site: records.Site) -> dict[str, records.Comment]:
    """The eight comments of the compacted thread "page", by text."""
    with open_store.context():
        rows = sample_threads.grow(site, sample_threads.TREE)
        compaction.whole(sample_threads.name_of(site))
    return rows


@pytest.fixture
def several(open_store: connection.Store, site: records.Site) -> cache_twins.Rows:
    """The rows of the thread "page"; the compacted threads on its site span several buckets."""
    with open_store.context(), pytest.MonkeyPatch.context() as patch:
        compaction.small_buckets(patch)
        grown = sample_threads.grow(site, sample_threads.TREE)
        for thread in ("page", *cache_twins.OTHERS):
            sample_threads.post(site, f"of {thread}", thread=thread)
            compaction.whole(sample_threads.name_of(site, thread))
        sample_threads.post(site, "of raw", thread="raw")
        return grown


@pytest.fixture
def quick(
    datastore: datastores.Datastore, settings: config.Settings, site: records.Site
) -> cache_twins.Process:
    """A process configured as in production."""
    return cache_twins.Process(datastore, settings)


@pytest.fixture
def plain(datastore: datastores.Datastore, settings: config.Settings) -> cache_twins.Process:
    """A process without a response cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(response_cache, "Replays", lambda wsgi: wsgi)
        return cache_twins.Process(datastore, settings)


@pytest.fixture
def brief_doubt(engine: inprocess.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Release a transaction's locks within 0.1 seconds if the answer to its first call was lost."""
    monkeypatch.setattr(open_transactions, "UNCLAIMED", 0.1)


@pytest.fixture
def traveller(app: flask.Flask, provider: Impostor) -> Traveller:
    """A browser that signs in through the provider."""
    return Traveller(app, provider)


@pytest.fixture
def desk(app: flask.Flask, store: connection.Store, site: records.Site) -> Desk:
    """A moderator's browser in the admin console."""
    account_holders.account("bob", moderator())
    return Desk(app, "bob")


@pytest.fixture
def owner(app: flask.Flask, store: connection.Store, site: records.Site) -> Desk:
    """A service owner's browser in the admin console."""
    account_holders.account("ann", OWNER)
    return Desk(app, "ann")


@pytest.fixture
def moment(monkeypatch: pytest.MonkeyPatch) -> Moment:
    """The clock that the API's views read; the test sets it."""
    moment = Moment()
    monkeypatch.setattr(context, "datetime", moment)
    return moment


@pytest.fixture
def door(
    open_store: connection.Store,
    settings: config.Settings,
    site: records.Site,
    moment: Moment,
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., FlaskClient]:
    """Return a function that makes clients for a service with the given limits.

    The service's clocks stand still, so no period of a limit ends in the middle of a test.
    """
    del site, moment
    by_minute = [(demand, "DEMAND", demand.Demand), (previews, "_PACE", previews.Pace)]
    for module, name, counter in by_minute:
        in_process = per_process.PerProcess(functools.partial(counter, lambda: 600.0))
        monkeypatch.setattr(module, name, in_process)

    def make(**rules: int) -> FlaskClient:
        app = apps.create_app(dataclasses.replace(settings, **rules), open_store)  # type: ignore[arg-type]
        return app.test_client()

    return make


@pytest.fixture
def at() -> webhook_site.Time:
    return webhook_site.Time()


@pytest.fixture
def told() -> Iterator[list[loopback_servers.Receiver]]:
    """Three loopback webhook receivers."""
    with ExitStack() as stack:
        yield [stack.enter_context(loopback_servers.receiver()) for _ in range(3)]
