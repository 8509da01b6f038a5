"""A plaintext server: the API for other programs, as gRPC and HTTP on one port.

gRPC listens on its own loopback port, to which `shared_port` connects. The limit of the server's
thread pool does not count requests that wait for a transaction. Waiting requests therefore never
prevent the awaited commit from running.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import grpc
from google.protobuf import message

from datastore_emulator import engine as engines
from datastore_emulator import errors, protobufs, status_details, thread_pool
from datastore_emulator.admin_api import admin_service
from datastore_emulator.fault_injection import fault_plans
from datastore_emulator.server import admin_port, client_sockets, http_server, shared_port

SERVICE = "google.datastore.v1.Datastore"
THREADS = 128  # Maximum number of requests that run at the same time.
_RECEIVE_BYTES = 64 * 1024 * 1024  # Above the engine's limit, so that the engine reports the error.
_GRACE = 2.0  # Seconds that running requests get to finish when the server stops.


@dataclass(frozen=True, slots=True)
class GrpcServer:
    """A running server."""

    server: Any
    front: http_server.HttpServer
    threads: thread_pool.ThreadPool
    api: admin_service.AdminService

    @property
    def port(self) -> int:
        return self.front.port

    def stop(self) -> None:
        """Let running requests finish, end all operations, then close the server."""
        self.front.stop()
        self.server.stop(_GRACE).wait()
        self.api.close()
        self.threads.shutdown(wait=False)


def start(
    engine: engines.Engine,
    host: str,
    port: int,
    api: admin_service.AdminService | None = None,
    http: http_server.Handler | None = None,
) -> GrpcServer:
    """Serve an engine; port 0 picks a free port.

    Args:
        engine: Answers the calls.
        host: The address to listen on.
        port: The port to listen on.
        api: The Datastore Admin API for the engine; None uses an API without exports.
        http: Answers the port's HTTP requests; None answers the API, `/` and `/reset`.

    Raises:
        OSError: The address is not available.
    """
    threads = thread_pool.ThreadPool(THREADS)
    server = grpc.server(
        threads,  # type: ignore[arg-type]  # any executor works
        options=(
            ("grpc.max_receive_message_length", _RECEIVE_BYTES),
            ("grpc.max_send_message_length", -1),
            ("grpc.so_reuseport", 0),
        ),
    )
    handlers: dict[str, Any] = {
        method: grpc.unary_unary_rpc_method_handler(_handler(engine, method))
        for method in protobufs.REQUESTS
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
    api = api or admin_service.AdminService(engine)
    _add_admin_api(server, api)
    backend = server.add_insecure_port("127.0.0.1:0")
    if http is None:
        offered = frozenset({"/", "/reset"})
        http = admin_port.AdminPort(engine, api=api, commands=offered).answer
    site = http_server.Site(http, http_server.HOSTS if is_loopback(host) else None)
    front = shared_port.start(host, port, site, backend)
    server.start()
    return GrpcServer(server, front, threads, api)


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a host's addresses."""
    try:
        addresses = socket.getaddrinfo(host.strip("[]") or None, None, flags=socket.AI_PASSIVE)
    except OSError:
        return False
    return all(ipaddress.ip_address(address[0]).is_loopback for *_, address in addresses)


def _handler(engine: engines.Engine, method: str) -> Callable[[Any, Any], bytes]:
    def handle(raw: bytes, context: Any) -> bytes:
        try:
            request = _parse(method, raw)
            return engine.call(method, request, fault_plans.Caller(on_gone=context.add_callback))
        except errors.DatastoreError as error:
            if isinstance(error, errors.Dropped):
                client_sockets.cut(context.peer())
            context.set_trailing_metadata(status_details.of(error))
            context.abort(grpc.StatusCode[error.status], error.message)
            raise

    return handle


def _add_admin_api(server: Any, api: admin_service.AdminService) -> None:
    for service, methods in admin_service.SERVICES.items():
        handlers: dict[str, Any] = {
            method: grpc.unary_unary_rpc_method_handler(_admin_handler(api, method))
            for method in methods
        }
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))


def _admin_handler(api: admin_service.AdminService, method: str) -> Callable[[Any, Any], bytes]:
    def handle(raw: bytes, context: Any) -> bytes:
        try:
            content: bytes = api.call(method, api.parse(method, raw)).SerializeToString()
        except errors.DatastoreError as error:
            context.abort(grpc.StatusCode[error.status], error.message)
            raise
        return content

    return handle


def _parse(method: str, raw: bytes) -> protobufs.Request:
    """Parse a request.

    If gRPC parsed the request, a failure would give INTERNAL, which clients retry for several
    seconds.
    """
    try:
        parsed: protobufs.Request = protobufs.REQUESTS[method].FromString(raw)
    except message.DecodeError as error:
        raise errors.InvalidArgument(f"The request is not a {method}Request: {error}") from error
    return parsed
