"""The driver for google-cloud-datastore."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from typing import Any

from google.auth.credentials import AnonymousCredentials
from google.cloud import datastore
from google.cloud.datastore import aggregation
from google.cloud.datastore import query as queries
from google.cloud.datastore.helpers import GeoPoint
from google.cloud.datastore_v1.services.datastore import DatastoreClient
from google.cloud.datastore_v1.services.datastore.transports import DatastoreGrpcTransport

from emulator.tests.clients import driver


class _Work:
    """A client's reads and writes, inside a transaction if one is open."""

    def __init__(self, client: Any, transaction: Any = None) -> None:
        self._client = client
        self._transaction = transaction

    def get(self, *paths: tuple[Any, ...]) -> list[driver.Row]:
        keys = [self._key(path) for path in paths]
        return [_row(each) for each in self._client.get_multi(keys, transaction=self._transaction)]

    def put(self, path: tuple[Any, ...], /, **properties: Any) -> Any:
        return self.put_unindexed(path, (), **properties)

    def put_unindexed(
        self, path: tuple[Any, ...], names: Sequence[str], /, **properties: Any
    ) -> Any:
        entity = datastore.Entity(self._key(path), exclude_from_indexes=tuple(names))
        entity.update({name: self._value(value) for name, value in properties.items()})
        (self._transaction or self._client).put(entity)
        return entity.key.flat_path

    def delete(self, *paths: tuple[Any, ...]) -> None:
        for path in paths:
            (self._transaction or self._client).delete(self._key(path))

    def query(self, asked: driver.Asked) -> driver.Page:
        found = self._query(asked).fetch(
            limit=asked.limit,
            offset=asked.offset,
            start_cursor=asked.cursor,
        )
        rows = [_row(each) for each in found]
        return driver.Page(rows, found.next_page_token, is_end=found.next_page_token is None)

    def _key(self, path: tuple[Any, ...]) -> Any:
        return self._client.key(*path)

    def _query(self, asked: driver.Asked) -> Any:
        query = self._client.query(
            kind=asked.kind,
            ancestor=self._key(asked.ancestor) if asked.ancestor else None,
            order=asked.order,
            projection=asked.projection,
            distinct_on=asked.distinct,
        )
        if asked.filter is not None:
            query.add_filter(filter=self._filter(asked.filter))
        return query

    def _filter(self, given: Any) -> Any:
        if isinstance(given, driver.Both):
            return queries.And([self._filter(each) for each in given.filters])
        if isinstance(given, driver.Either):
            return queries.Or([self._filter(each) for each in given.filters])
        return queries.PropertyFilter(given.name, given.operator, self._value(given.value))

    def _value(self, value: Any) -> Any:
        if isinstance(value, driver.Point):
            return GeoPoint(value.latitude, value.longitude)
        if isinstance(value, driver.Path):
            return self._key(value.parts)
        if isinstance(value, list):
            return [self._value(each) for each in value]
        if isinstance(value, dict):
            entity = datastore.Entity()
            entity.update({name: self._value(each) for name, each in value.items()})
            return entity
        return value


class Datastore(_Work):
    """A client of google-cloud-datastore."""

    def __init__(self, channel: Any, project: str, namespace: str, database: str) -> None:
        client = datastore.Client(
            project=project,
            namespace=namespace or None,
            database=database or None,
            credentials=AnonymousCredentials(),
        )
        client._datastore_api_internal = DatastoreClient(
            transport=DatastoreGrpcTransport(channel=channel)
        )
        super().__init__(client)

    def aggregate(self, asked: driver.Asked, function: str, name: str = "") -> Any:
        made = {
            "count": aggregation.CountAggregation,
            "sum": lambda alias: aggregation.SumAggregation(name, alias=alias),
            "avg": lambda alias: aggregation.AvgAggregation(name, alias=alias),
        }[function](alias="answer")
        query = self._client.aggregation_query(self._query(asked))
        query.add_aggregation(made)
        (answer,) = next(iter(query.fetch(limit=asked.limit)))
        return answer.value

    def allocate(self, path: tuple[Any, ...], count: int) -> list[tuple[Any, ...]]:
        made = self._client.allocate_ids(self._key(path), count)
        return [key.flat_path for key in made]

    def transaction(self, body: Callable[[driver.Work], Any], *, is_read_only: bool = False) -> Any:
        with self._client.transaction(read_only=is_read_only) as transaction:
            return body(_Work(self._client, transaction))


def _plain(value: Any) -> Any:
    if isinstance(value, dt.datetime):
        return dt.datetime.combine(value.date(), value.time(), dt.UTC)  # Drops the nanoseconds
    if isinstance(value, GeoPoint):
        return driver.Point(value.latitude, value.longitude)
    if isinstance(value, datastore.Key):
        return driver.Path(value.flat_path)
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, datastore.Entity):
        return {name: _plain(each) for name, each in value.items()}
    return value


def _row(entity: Any) -> driver.Row:
    properties = {name: _plain(value) for name, value in entity.items()}
    return driver.Row(entity.key.flat_path, properties)
