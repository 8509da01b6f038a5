"""Helpers for tests: an emulator in one line, and clients for any channel.

    with testing.emulator() as datastore:
        client = datastore.ndb_client()
        ...
        datastore.reset()

No production code uses this module. `pytest_plugin` provides the same helpers as pytest fixtures.
"""

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import grpc

from datastore_emulator import clock, inprocess
from datastore_emulator.admin_api import admin_service
from datastore_emulator.execution import automatic_indexes, cost_meter
from datastore_emulator.server import grpc_server

Clock = clock.Clock
Pricing = cost_meter.Pricing
Reading = cost_meter.Reading
_construction = threading.Lock()


class Emulator:
    """An emulator for a test, in the test's process.

    Args:
        engine: Answers the requests. The code that opened the engine must close it.
        clock: The engine's clock; `clock.advance(300)` makes transactions expire.
    """

    def __init__(self, engine: inprocess.Engine, clock: clock.Clock) -> None:
        self.engine = engine
        self.clock = clock
        self.channel = inprocess.Channel(engine)
        self._running = contextlib.ExitStack()
        self._address = ""

    @property
    def address(self) -> str:
        """The value for DATASTORE_EMULATOR_HOST, "localhost:port".

        The first access starts a server.
        """
        if not self._address:
            self._address = self._running.enter_context(running_server(self.engine))
        return self._address

    def stop(self) -> None:
        """Stop the server, if it is running."""
        self._running.close()
        self._address = ""

    def reset(self) -> None:
        """Remove all data, end all transactions and faults, and reset the meter."""
        self.engine.install_faults(None)
        self.engine.reset()
        self.engine.meter.reset()

    def ndb_client(self, project: str = "test", **options: Any) -> Any:
        return ndb_client(self.channel, project, **options)

    def datastore_client(self, project: str = "test", **options: Any) -> Any:
        return datastore_client(self.channel, project, **options)

    def meter(self, pricing: Pricing | None = None) -> contextlib.AbstractContextManager[Reading]:
        """Meter the cost of requests: `with datastore.meter() as cost`."""
        return meter(self.engine, pricing)


@contextlib.contextmanager
def emulator(
    *,
    indexes: str | os.PathLike[str] | None = None,
    auto_indexes: automatic_indexes.AutomaticIndexes | None = None,
) -> Iterator[Emulator]:
    """Run an emulator in memory for the duration of the block.

    Without `auto_indexes`, the emulator refuses queries that lack an index.
    """
    now = Clock()
    with inprocess.open_engine(
        None, indexes=indexes, auto_indexes=auto_indexes, clock=now
    ) as engine:
        started = Emulator(engine, now)
        try:
            yield started
        finally:
            started.stop()


@contextlib.contextmanager
def running_server(
    engine: inprocess.Engine | None = None,
    *,
    path: str | os.PathLike[str] | None = None,
    indexes: str | os.PathLike[str] | None = None,
    exports: str | os.PathLike[str] | None = None,
) -> Iterator[str]:
    """Serve an engine on a free local port; yield "localhost:port".

    Without an engine, the server opens one from `path` and `indexes` and closes it at the end.
    Clients may export to the folder `exports` and import from it; if `exports` is None, the server
    refuses exports and imports.
    """
    with contextlib.ExitStack() as stack:
        if engine is None:
            engine = stack.enter_context(inprocess.open_engine(path, indexes=indexes))
        folder = None if exports is None else Path(exports)
        running = grpc_server.start(
            engine, "localhost", 0, admin_service.AdminService(engine, folder)
        )
        stack.callback(running.stop)
        yield f"localhost:{running.port}"


def meter(
    engine: inprocess.Engine, pricing: Pricing | None = None
) -> contextlib.AbstractContextManager[Reading]:
    """Meter the cost of all requests in this process, over any transport.

    The reading uses the engine's own pricing unless `pricing` is given (`Pricing`).

        with testing.meter(engine) as cost:
            handler()
        assert cost.reads <= 2
        assert cost.keys_written == {("Comment", "a1")}
    """
    return engine.meter.listen(pricing)


def ndb_client(
    channel: grpc.Channel,
    project: str = "test",
    *,
    namespace: str | None = None,
    database: str | None = None,
) -> Any:
    """Return a google.cloud.ndb.Client that uses a channel.

    An NDB client normally opens its own channel during construction. This function passes the given
    channel instead, so NDB neither connects nor looks up credentials.
    """
    from google.auth import credentials  # noqa: PLC0415 - loaded on first use
    from google.cloud import ndb  # noqa: PLC0415
    from google.cloud.datastore_v1.services.datastore.transports import (  # noqa: PLC0415
        DatastoreGrpcTransport,
    )

    with _construction, _no_own_channel(channel):
        client = ndb.Client(
            project=project,
            namespace=namespace,
            database=database,
            credentials=credentials.AnonymousCredentials(),
        )
    client.stub = DatastoreGrpcTransport(channel=channel)
    return client


def datastore_client(
    channel: grpc.Channel,
    project: str = "test",
    *,
    namespace: str | None = None,
    database: str | None = None,
) -> Any:
    """Return a google.cloud.datastore.Client that uses a channel."""
    from google.auth import credentials  # noqa: PLC0415 - loaded on first use
    from google.cloud import datastore  # noqa: PLC0415
    from google.cloud.datastore_v1.services.datastore import DatastoreClient  # noqa: PLC0415
    from google.cloud.datastore_v1.services.datastore.transports import (  # noqa: PLC0415
        DatastoreGrpcTransport,
    )

    # If the environment names an emulator, the client creates its own credentials and accepts no
    # others.
    has_own = "DATASTORE_EMULATOR_HOST" in os.environ
    client = datastore.Client(
        project=project,
        namespace=namespace,
        database=database,
        credentials=None if has_own else credentials.AnonymousCredentials(),
        _use_grpc=True,
    )
    client._datastore_api_internal = DatastoreClient(  # noqa: SLF001 - there is no public way
        transport=DatastoreGrpcTransport(channel=channel)
    )
    return client


@contextlib.contextmanager
def _no_own_channel(channel: grpc.Channel) -> Iterator[None]:
    def reuse_channel(*_arguments: object, **_options: object) -> grpc.Channel:
        return channel

    makers: tuple[tuple[str, Callable[..., grpc.Channel]], ...] = (
        ("google.cloud._helpers.make_secure_channel", reuse_channel),
        ("grpc.insecure_channel", reuse_channel),
    )
    with contextlib.ExitStack() as stack:
        for name, maker in makers:
            stack.enter_context(mock.patch(name, maker))
        yield
