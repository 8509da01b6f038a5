"""One-line RPC calls: raw messages are built from plain Python values and converted back."""

import contextlib
import datetime as dt
import threading
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from google.protobuf import descriptor_pool, message_factory

OPERATORS = {"<": 1, "<=": 2, ">": 3, ">=": 4, "=": 5, "in": 6, "!=": 9, "under": 11, "not in": 13}


def message(name: str) -> Any:
    """Return a raw message class."""
    descriptor = descriptor_pool.Default().FindMessageTypeByName(f"google.datastore.v1.{name}")
    return message_factory.GetMessageClass(descriptor)


class Unindexed:
    """A value that is excluded from indexes."""

    def __init__(self, value: Any) -> None:
        self.value = value


class Service:
    """Calls the RPCs with raw messages, which it builds from plain Python values."""

    def __init__(self, channel: grpc.Channel, project: str = "test") -> None:
        self.channel = channel
        self.project = project
        self.database = ""

    def call(self, method: str, *, patience: float | None = None, **fields: Any) -> Any:
        request = message(f"{method}Request")(
            **{"project_id": self.project, "database_id": self.database} | fields
        )
        return self.send(method, request, patience=patience)

    def send(self, method: str, request: Any, *, patience: float | None = None) -> Any:
        rpc = self.channel.unary_unary(
            f"/google.datastore.v1.Datastore/{method}",
            request_serializer=type(request).SerializeToString,
            response_deserializer=message(f"{method}Response").FromString,
        )
        return rpc(request, timeout=patience)

    def key(self, *path: Any, namespace: str = "") -> Any:
        key = message("Key")()
        key.partition_id.project_id = self.project
        key.partition_id.database_id = self.database
        key.partition_id.namespace_id = namespace
        for kind, name in zip(path[::2], [*path[1::2], None][: len(path[::2])], strict=True):
            element = key.path.add(kind=kind)
            if isinstance(name, str):
                element.name = name
            elif name is not None:
                element.id = name
        return key

    def value(self, given: Any) -> Any:  # noqa: C901 - one line for each type
        value = message("Value")()
        if isinstance(given, Unindexed):
            value.CopyFrom(self.value(given.value))
            value.exclude_from_indexes = True
            return value
        if isinstance(given, message("Value")):
            return given
        if given is None:
            value.null_value = 0
        elif isinstance(given, dict):
            value.entity_value.SetInParent()
            self.fill(value.entity_value, given)
        elif isinstance(given, list):
            value.array_value.SetInParent()
            value.array_value.values.extend(self.value(each) for each in given)
        elif isinstance(given, tuple):
            value.geo_point_value.latitude, value.geo_point_value.longitude = given
        elif isinstance(given, message("Key")):
            value.key_value.CopyFrom(given)
        elif isinstance(given, dt.datetime):
            value.timestamp_value.FromDatetime(given)
        else:
            kinds = {bool: "boolean", int: "integer", float: "double", str: "string", bytes: "blob"}
            setattr(value, f"{kinds[type(given)]}_value", given)
        return value

    def fill(self, entity: Any, properties: dict[str, Any]) -> None:
        for name, given in properties.items():
            entity.properties[name].CopyFrom(self.value(given))

    def entity(self, key: Any, /, **properties: Any) -> Any:
        entity = message("Entity")(key=key)
        self.fill(entity, properties)
        return entity

    def commit(self, *mutations: dict[str, Any], transaction: bytes | None = None) -> Any:
        made = [message("Mutation")(**each) for each in mutations]
        if transaction is None:
            return self.call("Commit", mode=2, mutations=made)
        return self.call("Commit", mode=1, mutations=made, transaction=transaction)

    def put(self, key: Any, /, **properties: Any) -> Any:
        return self.commit({"upsert": self.entity(key, **properties)})

    def delete(self, key: Any) -> Any:
        return self.commit({"delete": key})

    def lookup(self, *asked: Any, **options: Any) -> Any:
        return self.call("Lookup", keys=asked, read_options=options)

    def get(self, key: Any, **options: Any) -> Any:
        found = self.lookup(key, **options).found
        return self.plain(found[0].entity) if found else None

    def plain(self, entity: Any) -> dict[str, Any]:
        return {name: self.python(value) for name, value in sorted(entity.properties.items())}

    def python(self, value: Any) -> Any:
        kind = value.WhichOneof("value_type")
        if kind == "null_value":
            return None
        if kind == "array_value":
            return [self.python(each) for each in value.array_value.values]
        if kind == "entity_value":
            return self.plain(value.entity_value)
        return getattr(value, kind)

    def begin(self, **options: Any) -> bytes:
        made = message("TransactionOptions")(**options)
        return self.call("BeginTransaction", transaction_options=made).transaction

    def rollback(self, transaction: bytes) -> None:
        self.call("Rollback", transaction=transaction)

    def fill_filter(self, made: Any, given: tuple[Any, ...]) -> None:
        """Fill a filter message from (name, operator, value) or from ("and" or "or", *filters)."""
        if given[0] in ("and", "or") and (len(given) == 1 or isinstance(given[1], tuple)):
            made.composite_filter.op = 1 + (given[0] == "or")
            for part in given[1:]:
                self.fill_filter(made.composite_filter.filters.add(), part)
            return
        name, operator, value = given
        made.property_filter.property.name = name
        made.property_filter.op = OPERATORS[operator]
        made.property_filter.value.CopyFrom(self.value(value))

    def query(  # noqa: C901 - one line for each field
        self, kind: str | None = "T", *filters: tuple[Any, ...], **fields: Any
    ) -> Any:
        """Return a query; all filters must match, and each order is "name" or "-name"."""
        query = message("Query")()
        if kind is not None:
            query.kind.add(name=kind)
        if filters:
            self.fill_filter(query.filter, ("and", *filters))
        for name in fields.pop("order", ()):
            query.order.add(property={"name": name.lstrip("-")}, direction=1 + name.startswith("-"))
        for name in fields.pop("projection", ()):
            query.projection.add(property={"name": name})
        for name in fields.pop("distinct", ()):
            query.distinct_on.add(name=name)
        if fields.pop("keys_only", False):
            query.projection.add(property={"name": "__key__"})
        limit = fields.pop("limit", None)
        if limit is not None:
            query.limit.value = limit
        for name, given in fields.items():
            setattr(query, name, given)
        return query

    def batch(self, query: Any, namespace: str = "", **options: Any) -> Any:
        partition = {"project_id": self.project, "namespace_id": namespace}
        return self.call(
            "RunQuery", query=query, partition_id=partition, read_options=options
        ).batch

    def results(self, query: Any, namespace: str = "", **options: Any) -> list[Any]:
        """Run a query to its end, as the client libraries do."""
        copy = message("Query")()
        copy.CopyFrom(query)
        found: list[Any] = []
        while True:
            batch = self.batch(copy, namespace, **options)
            found += batch.entity_results
            if batch.more_results != 1:
                return found
            copy.start_cursor = batch.end_cursor
            copy.offset -= batch.skipped_results
            if copy.HasField("limit"):
                copy.limit.value -= len(batch.entity_results)

    def names(
        self,
        kind: str | None = "T",
        *filters: tuple[Any, ...],
        namespace: str = "",
        transaction: bytes | None = None,
        **fields: Any,
    ) -> list[Any]:
        """Run a query and return the last id or name in each result's key."""
        options = {} if transaction is None else {"transaction": transaction}
        found = self.results(self.query(kind, *filters, **fields), namespace, **options)
        return [last(each.entity.key) for each in found]

    def count(self, query: Any, *limits: int | None, **options: Any) -> list[int]:
        aggregations = [
            {"count": {} if most is None else {"up_to": {"value": most}}} for most in limits
        ]
        response = self.call(
            "RunAggregationQuery",
            aggregation_query={"nested_query": query, "aggregations": aggregations},
            read_options=options,
        )
        found = response.batch.aggregation_results[0].aggregate_properties
        return [found[f"property_{number + 1}"].integer_value for number in range(len(limits))]


def last(key: Any) -> Any:
    """Return the last id or name in a key."""
    element = key.path[-1]
    return element.name or element.id


def increment_from_64_threads(service: Service, key: Any) -> None:
    """Increment an entity's property `n` once in each thread; retry after ABORTED."""

    def increment() -> None:
        while True:
            transaction = service.begin()
            try:
                number = service.get(key, transaction=transaction)["n"]
                write = {"upsert": service.entity(key, n=number + 1)}
                service.commit(write, transaction=transaction)
            except grpc.RpcError as error:
                if error.code() is not grpc.StatusCode.ABORTED:
                    raise
            else:
                return

    threads = [threading.Thread(target=increment) for _ in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@contextlib.contextmanager
def assert_refused(status: str, text: str = "") -> Iterator[None]:
    """Expect that the block is refused with a status and a text."""
    with pytest.raises(grpc.RpcError) as caught:
        yield
    assert caught.value.code() is grpc.StatusCode[status], caught.value.details()
    assert text in str(caught.value.details())


def upsert(service: Service, key: Any, **properties: Any) -> dict[str, Any]:
    return {"upsert": service.entity(key, **properties)}


def put_all(service: Service, *rows: tuple[Any, dict[str, Any]], kind: str = "T") -> None:
    """Store entities of one kind, given by name and properties, in one commit."""
    mutations = [
        {"upsert": service.entity(service.key(kind, name), **properties)}
        for name, properties in rows
    ]
    service.commit(*mutations)
