"""Help for tests: a server on a free port, and an NDB client on any channel.

Owns nothing that runs in production.
"""

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import grpc

from emulator import inprocess, server
from emulator import meter as meters

_construction = threading.Lock()


@contextlib.contextmanager
def running_server(
    engine: inprocess.Engine | None = None,
    *,
    path: str | os.PathLike[str] | None = None,
    indexes: str | os.PathLike[str] | None = None,
) -> Iterator[str]:
    """Serve an engine on a free local port; yields "localhost:port".

    Without an engine one is opened from `path` and `indexes` and closed at the end.
    """
    with contextlib.ExitStack() as stack:
        if engine is None:
            engine = stack.enter_context(inprocess.open_engine(path, indexes=indexes))
        running = server.start(engine, "localhost", 0)
        stack.callback(running.stop)
        yield f"localhost:{running.port}"


def meter(engine: inprocess.Engine) -> contextlib.AbstractContextManager[meters.Reading]:
    """Meter what requests cost, whichever door they come through, in this process.

    with testing.meter(engine) as cost:
        handler()
    assert cost.reads <= 2
    assert cost.keys_written == {("Comment", "a1")}
    """
    return engine.meter.listen()


def ndb_client(
    channel: grpc.Channel,
    project: str = "test",
    *,
    namespace: str | None = None,
    database: str | None = None,
) -> Any:
    """Return a google.cloud.ndb.Client that talks through a channel.

    NDB opens a channel of its own when it is constructed; here it is handed the given one instead,
    so nothing connects and no credentials are looked up.
    """
    from google.auth import credentials  # noqa: PLC0415 - only tests pay for NDB
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


@contextlib.contextmanager
def _no_own_channel(channel: grpc.Channel) -> Iterator[None]:
    def given(*_arguments: object, **_options: object) -> grpc.Channel:
        return channel

    makers: tuple[tuple[str, Callable[..., grpc.Channel]], ...] = (
        ("google.cloud._helpers.make_secure_channel", given),
        ("grpc.insecure_channel", given),
    )
    with contextlib.ExitStack() as stack:
        for name, maker in makers:
            stack.enter_context(mock.patch(name, maker))
        yield
