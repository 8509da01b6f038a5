"""Connect tests to a Datastore: the embedded engine, or a project of an emulator over gRPC.

`scripts/test --store` selects the emulator. A test that uses only the API of Datastore gets its
store from the fixture `datastore` and runs against both.

Each `Emulator` has a project of its own, so no test sees another test's entities, also if many
processes share the emulator. A call without an interceptor takes the same path as in production:
gRPC's own channel.
"""

import functools
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import grpc
from google.cloud.datastore_v1.types import datastore as rpc_types

from comments.store import connection
from datastore_emulator import errors as engine_errors
from datastore_emulator import inprocess
from tests.support import prepared_stores
from tests.support.store_interceptors import InterceptorSlot

# Answers may be larger than gRPC's 4 MiB, as in main.py.
_UNLIMITED = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
_PATIENCE = 60  # Seconds for the commit of a prepared store
_BATCH = 400  # Entities in one commit; Datastore's limit was 500 for years

_CommitRequest = rpc_types.CommitRequest.pb()
_RunQueryRequest = rpc_types.RunQueryRequest.pb()
_RunQueryResponse = rpc_types.RunQueryResponse.pb()
_FINISHED = _RunQueryResponse().batch.NO_MORE_RESULTS


class Datastore(Protocol):
    """A database of a test."""

    def connect(
        self, interceptor: inprocess.Interceptor | None = None, **options: Any
    ) -> connection.Store:
        """Return a new connection with its own caches, as another process has them.

        `options` are arguments of `connection.Store`, for example the deadline.
        """
        ...


# Connects a test to a new database. The argument opens the engine if the database is embedded.
Open = Callable[[Callable[[], inprocess.Engine]], Datastore]


class Embedded:
    """The engine in the test's process."""

    def __init__(self, engine: inprocess.Engine) -> None:
        self.engine = engine

    def connect(
        self, interceptor: inprocess.Interceptor | None = None, **options: Any
    ) -> connection.Store:
        channel = inprocess.Channel(self.engine, interceptor)
        return connection.Store(channel, project="test", **options)


class Emulator:
    """A new project of the emulator at `host`, which is "localhost:port"."""

    def __init__(self, host: str) -> None:
        self._host = host
        self.project = f"test-{uuid.uuid4().hex[:16]}"

    def connect(
        self, interceptor: inprocess.Interceptor | None = None, **options: Any
    ) -> connection.Store:
        channel = _channel(self._host)
        if interceptor is not None:
            channel = grpc.intercept_channel(channel, _Adapter(interceptor))
        return connection.Store(channel, project=self.project, is_emulator=True, **options)

    def load(self, path: Path) -> None:
        """Store the entities of a prepared data file in this project."""
        store = self.connect()
        entities = _entities(path)
        for start in range(0, len(entities), _BATCH):
            request = _CommitRequest(
                project_id=self.project, mode=_CommitRequest.Mode.NON_TRANSACTIONAL
            )
            for entity in entities[start : start + _BATCH]:
                _move(request.mutations.add(upsert=entity).upsert, self.project)
            store.commit(request, timeout=_PATIENCE)


@functools.cache
def _channel(host: str) -> grpc.Channel:
    return grpc.insecure_channel(host, options=_UNLIMITED)


class _Adapter(grpc.UnaryUnaryClientInterceptor):
    """Call an interceptor of the engine's channel around each call of a gRPC channel."""

    def __init__(self, interceptor: inprocess.Interceptor) -> None:
        self._interceptor = interceptor

    def intercept_unary_unary(
        self, continuation: Callable[..., Any], client_call_details: Any, request: Any
    ) -> Any:
        if isinstance(self._interceptor, InterceptorSlot) and not self._interceptor.is_used:
            return continuation(client_call_details, request)
        name = client_call_details.method.rpartition("/")[2]
        raw = getattr(request, "_pb", request)  # The message inside a proto-plus wrapper
        response = getattr(rpc_types, f"{name}Response")

        def proceed() -> bytes:
            try:
                answer = continuation(client_call_details, request).result()
            except grpc.RpcError as error:
                raise _refusal(error) from error
            return getattr(answer, "_pb", answer).SerializeToString()

        try:
            answer = self._interceptor(name, raw, proceed)
        except engine_errors.DatastoreError as error:
            raise inprocess.CallError(error) from error
        is_wrapped = raw is not request
        return inprocess._Answer(
            response.deserialize(answer) if is_wrapped else response.pb().FromString(answer)
        )


def _refusal(error: Any) -> engine_errors.DatastoreError:
    made = engine_errors.DatastoreError(error.details())
    made.status = error.code().name
    return made


@functools.cache
def _entities(path: Path) -> list[Any]:
    """Return the entities of a data file, which must no longer change."""
    found = []
    with prepared_stores.opened_copy(path) as engine:
        run = inprocess.Channel(engine).unary_unary(
            f"{inprocess.SERVICE}RunQuery", response_deserializer=_RunQueryResponse.FromString
        )
        request = _RunQueryRequest(project_id="test")
        request.query.SetInParent()
        while True:
            batch = run(request).batch
            found += [result.entity for result in batch.entity_results]
            if batch.more_results == _FINISHED:
                return found
            request.query.start_cursor = batch.end_cursor


def _move(entity: Any, project: str) -> None:
    """Change the project in an entity's key and in the keys of its properties."""
    if entity.HasField("key"):
        entity.key.partition_id.project_id = project
    for value in entity.properties.values():
        _move_value(value, project)


def _move_value(value: Any, project: str) -> None:
    kind = value.WhichOneof("value_type")
    if kind == "key_value":
        value.key_value.partition_id.project_id = project
    elif kind == "entity_value":
        _move(value.entity_value, project)
    elif kind == "array_value":
        for each in value.array_value.values:
            _move_value(each, project)
