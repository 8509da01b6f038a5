"""The API without sockets: a gRPC channel that calls the engine in the caller's thread.

Owns the channel interface that client libraries expect. A call ends before its future is returned,
so callbacks run immediately and no code waits. Credentials and metadata are accepted and ignored; a
timeout can end a call only while a fault plan delays the call.

    engine = open_engine("data/datastore")
    client.stub = DatastoreGrpcTransport(channel=Channel(engine))
"""

# ruff: noqa: ARG002 - grpc's abstract classes fix these methods, and describe them

import functools
import os
import time
from collections.abc import Callable
from datetime import datetime
from types import TracebackType
from typing import Any, Literal, Self

import grpc

from datastore_emulator import engine as engines
from datastore_emulator import errors, protobufs, status_details
from datastore_emulator.execution import automatic_indexes
from datastore_emulator.fault_injection import fault_plans
from datastore_emulator.storage import data_file, file_store, history
from datastore_emulator.transactions import open_transactions

Engine = engines.Engine
SERVICE = "/google.datastore.v1.Datastore/"

# interceptor(method, request, proceed) -> response
Interceptor = Callable[[str, Any, Callable[[], bytes]], bytes]


def open_engine(  # noqa: PLR0913 - independent options, passed by keyword
    path: str | os.PathLike[str] | None,
    *,
    indexes: str | os.PathLike[str] | None = None,
    auto_indexes: automatic_indexes.AutomaticIndexes | None = None,
    clock: Callable[[], float] = time.time,
    durability: Literal["durable", "fast"] = "durable",
    history: int = history.MAX_AGE,
    concurrency: Literal["optimistic", "pessimistic"] = "optimistic",
    built_in_indexes: Literal["lazy", "eager"] = "lazy",
) -> Engine:
    """Open a data file and create it if it is missing. Without a path, keep the data in memory.

    Args:
        path: The data file; SQLite keeps two more files next to it. Several processes may share it.
        indexes: An index.yaml. The indexes in this file replace the composite indexes in the data
            file. None keeps the data file's indexes.
        auto_indexes: Defines indexes that queries lack; its index.yaml is used instead of
            `indexes`. With None, such queries are refused.
        clock: Returns seconds since 1970.
        durability: "fast" does not wait for the disk: a commit survives a process crash, but a
            power loss can destroy the file. For tests.
        history: How many seconds `read_time` can go back; 0 keeps no history and refuses
            `read_time`.
        concurrency: "pessimistic", the default of Google's service, makes transactions lock what
            they read. All processes that share a file should use the same mode. Different modes are
            safe, but an optimistic process does not wait for locks.
        built_in_indexes: "lazy" makes the indexes of a kind's single properties only when a query
            first needs them, so writes are cheaper. "eager" writes both indexes of every property
            together with the entity, as Google's service does. All answers and bills are the same.
            A file becomes lazy when an engine first opens it as lazy, and then remains lazy for all
            engines.

    Raises:
        errors.FailedPrecondition: The file cannot be opened or is not in this engine's format.
        errors.Damaged: The file is damaged.
        errors.InvalidArgument: The index.yaml cannot be read.
    """
    composites = None if indexes is None else automatic_indexes.read_file(indexes)
    if auto_indexes is not None:
        composites = auto_indexes.read()
    store = file_store.FileStore(
        path,
        composites,
        lambda: int(clock() * 1_000_000),
        durability=data_file.Durability(durability),
        history_seconds=history,
        has_lazy_indexes=built_in_indexes == "lazy",
    )
    engine = Engine(
        store,
        clock,
        stopwatch=time.perf_counter,
        concurrency=open_transactions.Concurrency(concurrency),
    )
    engine.auto_indexes = auto_indexes
    return engine


class _Finished(grpc.Call, grpc.Future):  # type: ignore[type-arg]  # generic in stubs only
    """The methods that a finished call and its future have in common."""

    def initial_metadata(self) -> tuple[()]:
        return ()

    def trailing_metadata(self) -> status_details.Metadata:
        return ()

    def is_active(self) -> bool:
        return False

    def time_remaining(self) -> None:  # type: ignore[override]  # None is "no limit" in grpc
        return None

    def add_callback(self, callback: Callable[[], object]) -> bool:
        """Refuse the callback, because the call has ended."""
        return False

    def cancel(self) -> bool:
        return False

    def cancelled(self) -> bool:
        return False

    def running(self) -> bool:
        return False

    def done(self) -> bool:
        return True

    def add_done_callback(self, fn: Callable[[Any], object]) -> None:
        fn(self)


class CallError(grpc.RpcError, _Finished):  # grpc also combines the two in this way
    """A refusal in gRPC's form: an exception that also represents the finished call."""

    def __init__(self, error: errors.DatastoreError) -> None:
        super().__init__(error.message)
        self._code = grpc.StatusCode[error.status]
        self._details = error.message
        self._metadata = status_details.of(error)

    def trailing_metadata(self) -> status_details.Metadata:
        return self._metadata

    def code(self) -> grpc.StatusCode:
        return self._code

    def details(self) -> str:
        return self._details

    def result(self, timeout: float | None = None) -> Any:
        raise self

    def exception(self, timeout: float | None = None) -> Exception:
        return self

    def traceback(self, timeout: float | None = None) -> TracebackType | None:
        return self.__traceback__


class _Answer(_Finished):
    """A call with the status OK."""

    def __init__(self, response: Any) -> None:
        self._response = response

    def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.OK

    def details(self) -> str:
        return ""

    def result(self, timeout: float | None = None) -> Any:
        return self._response

    def exception(self, timeout: float | None = None) -> None:
        return None

    def traceback(self, timeout: float | None = None) -> None:
        return None


class _Method(grpc.UnaryUnaryMultiCallable):  # type: ignore[type-arg]  # generic in stubs only
    """One RPC of the service."""

    def __init__(
        self,
        channel: "Channel",
        path: str,
        serialize: Callable[[Any], bytes] | None,
        deserialize: Callable[[bytes], Any] | None,
    ) -> None:
        self._channel = channel
        self._name = path.rpartition("/")[2]
        self._is_known = path.startswith(SERVICE) and self._name in protobufs.REQUESTS
        self._serialize = serialize
        self._deserialize = deserialize

    def __call__(
        self, request: Any, timeout: float | None = None, *_arguments: object, **_options: object
    ) -> Any:
        """Make the call and return the response."""
        response = self._channel.run(self._name, self._message(request), timeout)
        return response if self._deserialize is None else self._deserialize(response)

    def with_call(
        self, request: Any, timeout: float | None = None, *_arguments: object, **_options: object
    ) -> tuple[Any, Any]:
        """Make the call and return the response and the finished call."""
        answer = _Answer(self(request, timeout))
        return answer.result(), answer

    def future(
        self, request: Any, timeout: float | None = None, *_arguments: object, **_options: object
    ) -> Any:
        """Make the call and return the finished call, whether it succeeded or failed."""
        try:
            return _Answer(self(request, timeout))
        except CallError as refusal:
            return refusal

    def _message(self, request: Any) -> Any:
        """Return the raw request message; most callers pass one already."""
        if not self._is_known:
            raise CallError(errors.Unimplemented(f"The method {self._name}"))
        wanted = protobufs.REQUESTS[self._name]
        raw = getattr(request, "_pb", request)  # The message inside a proto-plus wrapper
        if isinstance(raw, wanted):
            return raw
        return wanted.FromString(request if self._serialize is None else self._serialize(request))


class Channel(grpc.Channel):
    """A gRPC channel to an engine in this process. Closing the channel leaves the engine open.

    Args:
        engine: Answers the calls.
        interceptor: Called as `interceptor(method, request, proceed)` around every call. `method`
            is the RPC's name ("Commit"). `request` is the raw request message, which the
            interceptor must not change. `proceed` runs the call and returns the serialized
            response. The interceptor returns a serialized response or raises an
            `errors.DatastoreError`. An error raised before `proceed()` means that the request is
            not applied; after `proceed()`, the request is applied and the response is lost.
    """

    def __init__(self, engine: Engine, interceptor: Interceptor | None = None) -> None:
        self._engine = engine
        self._interceptor = interceptor

    def run(self, method: str, request: Any, timeout: float | None = None) -> bytes:
        """Make a call and return the serialized response."""
        call = functools.partial(self._engine.call, method)
        return self._run(method, call, request, timeout)

    def commit_own(self, request: Any, timeout: float | None = None) -> None:
        """Commit entities that the caller has made in their stored form.

        The engine trusts the caller; `Engine.commit_own` lists what the caller guarantees. All
        other requests, including commits by client libraries, go through `unary_unary`.
        """
        self._run("Commit", self._engine.commit_own, request, timeout)

    def version(self, key: Any) -> int:
        """Return the version of an entity; see `Engine.version`. Interceptors do not see the call.

        A program can keep a copy of an entity for as long as the entity has the same version.
        """
        try:
            return self._engine.version(key)
        except errors.DatastoreError as error:
            raise CallError(error) from error

    @property
    def lost_commits(self) -> tuple[datetime, datetime] | None:
        """The times between which acknowledged commits were lost, or None if no loss is known."""
        return self._engine.storage.lost

    def _run(
        self,
        method: str,
        call: Callable[[Any, fault_plans.Caller | None], bytes],
        request: Any,
        timeout: float | None,
    ) -> bytes:
        caller = None if timeout is None else fault_plans.Caller(timeout)
        try:
            if self._interceptor is None:
                return call(request, caller)
            return self._interceptor(method, request, lambda: call(request, caller))
        except errors.DatastoreError as error:
            raise CallError(error) from error

    def unary_unary(
        self,
        method: str,
        request_serializer: Callable[[Any], bytes] | None = None,
        response_deserializer: Callable[[bytes], Any] | None = None,
        _registered_method: bool | None = False,  # noqa: FBT001, FBT002 - grpc's own signature
    ) -> _Method:
        """Return a callable for one RPC of the service."""
        return _Method(self, method, request_serializer, response_deserializer)

    def unary_stream(self, method: str, *_arguments: object, **_options: object) -> Any:
        """Refuse the call, because the service has no streaming RPCs."""
        raise NotImplementedError(method)

    stream_unary = unary_stream
    stream_stream = unary_stream

    def subscribe(self, callback: Callable[[Any], object], try_to_connect: bool = False) -> None:  # noqa: FBT001, FBT002 - grpc's own signature
        """Report immediately that the channel is ready."""
        callback(grpc.ChannelConnectivity.READY)

    def unsubscribe(self, callback: Callable[[Any], object]) -> None:
        """Do nothing, because the state never changes."""

    def close(self) -> None:
        """Do nothing, because the code that opened the engine closes it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
