"""Run the state machine through a socket."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import grpc

from datastore_emulator import inprocess, testing
from emulator.tests.oracle import state_machine


class Remote(state_machine.Machine):
    """The same state machine with a separate gRPC server."""

    @staticmethod
    @contextlib.contextmanager
    def open_door(engine: inprocess.Engine) -> Iterator[grpc.Channel]:
        with testing.running_server(engine) as address, grpc.insecure_channel(address) as channel:
            yield channel
