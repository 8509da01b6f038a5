"""The driver for google-cloud-ndb: Expando models and generic properties."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from typing import Any

from google.cloud import datastore, ndb

from datastore_emulator import testing
from emulator.tests.clients import driver

_OPERATORS = frozenset(("=", "<", "<=", ">", ">=", "!="))


class Ndb:
    """A client that uses NDB.

    Every call enters its own context, unless it already runs in one.
    """

    def __init__(self, channel: Any, project: str, namespace: str, database: str) -> None:
        self._client = testing.ndb_client(
            channel, project, namespace=namespace or None, database=database or None
        )

    def _inside(self, call: Callable[[], Any]) -> Any:
        if ndb.context.get_context(raise_context_error=False) is not None:
            return call()
        with self._client.context(cache_policy=False):
            return call()

    def get(self, *paths: tuple[Any, ...]) -> list[driver.Row]:
        def get() -> list[driver.Row]:
            for path in paths:
                _model(path[-2])
            return [_row(each) for each in ndb.get_multi([_key(p) for p in paths]) if each]

        return self._inside(get)

    def put(self, path: tuple[Any, ...], /, **properties: Any) -> Any:
        return self.put_unindexed(path, (), **properties)

    def put_unindexed(
        self, path: tuple[Any, ...], names: Sequence[str], /, **properties: Any
    ) -> Any:
        def put() -> Any:
            entity = _model(path[-1] if len(path) % 2 else path[-2])(**_identity(path))
            if names:
                entity._clone_properties()
            for name, value in properties.items():
                if name in names:
                    unindexed = ndb.GenericProperty(name, indexed=False)
                    entity._properties[name] = unindexed
                    unindexed._set_value(entity, _to_ndb(value))
                else:
                    setattr(entity, name, _to_ndb(value))
            return entity.put().flat()

        return self._inside(put)

    def delete(self, *paths: tuple[Any, ...]) -> None:
        self._inside(lambda: ndb.delete_multi([_key(path) for path in paths]))

    def query(self, asked: driver.Asked) -> driver.Page:
        def run() -> driver.Page:
            query = _query(asked)
            options: dict[str, Any] = {"limit": asked.limit, "offset": asked.offset or None}
            if asked.projection == ("__key__",):
                return driver.Page([driver.Row(k.flat(), {}) for k in query.fetch(keys_only=True)])
            if asked.projection:
                options["projection"] = list(asked.projection)
            if asked.cursor is not None or (asked.limit is not None and not asked.offset):
                rows, cursor, more = query.fetch_page(
                    asked.limit or 1000,
                    start_cursor=asked.cursor,
                    projection=options.get("projection"),
                )
                return driver.Page([_row(each) for each in rows], cursor, is_end=not more)
            return driver.Page([_row(each) for each in query.fetch(**options)], is_end=True)

        return self._inside(run)

    def aggregate(self, asked: driver.Asked, function: str, name: str = "") -> Any:
        assert function == "count", f"NDB has no {function} of {name}"
        return self._inside(lambda: _query(asked).count())

    def allocate(self, path: tuple[Any, ...], count: int) -> list[tuple[Any, ...]]:
        def allocate() -> list[tuple[Any, ...]]:
            parent = _key(path[:-1]) if len(path) > 1 else None
            made = _model(path[-1]).allocate_ids(count, parent=parent)
            return [key.flat() for key in made]

        return self._inside(allocate)

    def transaction(self, body: Callable[[driver.Work], Any], *, is_read_only: bool = False) -> Any:
        return self._inside(
            lambda: ndb.transaction(lambda: body(self), retries=0, read_only=is_read_only)
        )


def _model(kind: str, *names: str) -> Any:
    """Create a model, which NDB needs to read a kind; queries can name only its properties."""
    return type(kind, (ndb.Expando,), {name: ndb.GenericProperty() for name in names})


def _key(path: tuple[Any, ...]) -> Any:
    return ndb.Key(*path)


def _identity(path: tuple[Any, ...]) -> dict[str, Any]:
    if len(path) % 2:
        return {"parent": _key(path[:-1])} if len(path) > 1 else {}
    return {"key": _key(path)}


def _to_ndb(value: Any) -> Any:
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.UTC).replace(tzinfo=None)
    if isinstance(value, driver.Point):
        return ndb.GeoPt(value.latitude, value.longitude)
    if isinstance(value, driver.Path):
        return _key(value.parts)
    if isinstance(value, list):
        return [_to_ndb(each) for each in value]
    if isinstance(value, dict):
        return ndb.Expando(**{name: _to_ndb(each) for name, each in value.items()})
    return value


def _from_ndb(value: Any) -> Any:
    if isinstance(value, dt.datetime):
        return dt.datetime.combine(value.date(), value.time(), dt.UTC)  # Drops the nanoseconds
    if isinstance(value, ndb.GeoPt):
        return driver.Point(value.latitude, value.longitude)
    if isinstance(value, (ndb.Key, datastore.Key)):
        return driver.Path(value.flat() if isinstance(value, ndb.Key) else value.flat_path)
    if isinstance(value, list):
        return [_from_ndb(each) for each in value]
    if isinstance(value, ndb.Model):
        return _properties(value)
    return value


def _properties(entity: Any) -> dict[str, Any]:
    projected = entity._projection
    return {
        name: _from_ndb(prop._get_value(entity))
        for name, prop in entity._properties.items()
        if not projected or name in projected
    }


def _row(entity: Any) -> driver.Row:
    return driver.Row(entity.key.flat(), _properties(entity))


def _node(given: Any) -> Any:
    if isinstance(given, driver.Both):
        return ndb.AND(*map(_node, given.filters))
    if isinstance(given, driver.Either):
        return ndb.OR(*map(_node, given.filters))
    prop = ndb.GenericProperty(given.name)
    if given.operator == "IN":
        return prop._IN([_to_ndb(each) for each in given.value], server_op=True)
    if given.operator == "NOT_IN":
        return prop._NOT_IN([_to_ndb(each) for each in given.value])
    assert given.operator in _OPERATORS
    return prop._comparison(given.operator, _to_ndb(given.value))


def _query(asked: driver.Asked) -> Any:
    if asked.kind is not None:
        _model(asked.kind, *({*asked.projection, *asked.distinct} - {"__key__"}))
    orders = [
        -ndb.GenericProperty(name[1:]) if name.startswith("-") else ndb.GenericProperty(name)
        for name in asked.order
    ]
    return ndb.Query(
        kind=asked.kind,
        ancestor=_key(asked.ancestor) if asked.ancestor else None,
        filters=_node(asked.filter) if asked.filter else None,
        order_by=orders or None,
        distinct_on=list(asked.distinct) or None,
    )
