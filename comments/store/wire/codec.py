"""Convert rows to protobuf and back.

Rows are stored as Google's library NDB stores them, because NDB wrote the oldest stores: every
property is stored, even if it has no value. A test compares the stored bytes with those that NDB
writes.

A row is refused before anything is stored if a required property has no value, a value has the
wrong type, or an indexed text is too long. When a row is read, a property that is not stored gets
its default, and a stored property that the kind no longer has is skipped.
"""

import functools
from collections.abc import Collection, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, cast

from google.cloud.datastore_v1.types import entity as entity_types

from comments.store.models import schema

Entity = entity_types.Entity.pb()
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_LONGEST_INDEXED = 1500  # Maximum bytes (Datastore's limit)


class _Shape(NamedTuple):
    """The required properties of a kind, and an entity in which all properties have their defaults.

    Most properties of a row have their defaults, so copying `blank` is faster than encoding every
    default.
    """

    required: frozenset[str]
    blank: Any


def message(row: schema.StoredRow, key: Any, names: Collection[str] | None = None) -> Any:
    """Encode a row as a new entity; see `fill`."""
    made = Entity()
    fill(made, row, key, names)
    return made


def fill(made: Any, row: schema.StoredRow, key: Any, names: Collection[str] | None = None) -> None:
    """Encode a row and its key into an empty entity. With `names`, encode only these properties.

    Raises:
        ValueError: a required property has no value, or an indexed text is too long.
        TypeError: a value has the wrong type.
    """
    columns, kept, properties = row.COLUMNS, vars(row), made.properties
    wanted = _fill_blanks(made, row, names)
    made.key.CopyFrom(key)
    for name in wanted:
        column = columns.get(name)
        if column is None:
            continue  # The key
        given = kept.get(name, column.default)
        if column.is_repeated:
            array = properties[name].array_value.values
            for item in column.derive(row) if column.derive else given:
                value = array.add(exclude_from_indexes=not column.is_indexed)
                _fill(value, name, column, item)
        elif given is not None and given != column.default:
            _fill(properties[name], name, column, given)
        elif given is None and column.is_required:
            raise ValueError(f"{name} of {row.key} has no value")
        elif given is None:
            properties[name].null_value = 0


def _fill_blanks(made: Any, row: schema.StoredRow, names: Collection[str] | None) -> Iterable[str]:
    """Fill in the defaults, and return the names of the properties that may have other values."""
    shape = _shape(cast("Any", type(row)))
    if names is None:
        made.CopyFrom(shape.blank)
        return vars(row) if vars(row).keys() >= shape.required else row.COLUMNS
    for name in names:
        made.properties[name].CopyFrom(shape.blank.properties[name])
    return names


def _fill(value: Any, name: str, column: schema.Property[Any], given: Any) -> None:
    if column.field == schema.TIME:
        seconds, micros = divmod((given - _EPOCH) // _MICROSECOND, 1_000_000)
        value.timestamp_value.seconds = seconds
        value.timestamp_value.nanos = micros * 1000
        value.timestamp_value.SetInParent()  # Otherwise 1970-01-01 would be left out
        return
    is_text = column.field == "string_value"
    if is_text and column.is_indexed and len(given.encode()) > _LONGEST_INDEXED:
        raise ValueError(f"{name} is longer than {_LONGEST_INDEXED} bytes")
    setattr(value, column.field, given)


def row(key: schema.RowKey, stored: Any) -> Any:
    """Decode a stored entity as a row."""
    model = schema.KINDS[key[-1][0]]
    columns, properties = model.COLUMNS, stored.properties
    values: dict[str, Any] = {}
    for name in properties:  # `items` of a protobuf map is slow
        column = columns.get(name)
        if column is None:
            continue
        field, value = column.field, properties[name]
        if column.is_repeated:
            values[name] = [getattr(item, field) for item in value.array_value.values]
        elif value.HasField("null_value"):
            values[name] = None
        elif field == schema.TIME:
            moment = value.timestamp_value
            values[name] = _EPOCH + timedelta(
                seconds=moment.seconds, microseconds=moment.nanos // 1000
            )
        else:
            values[name] = getattr(value, field)
    return model(key=key, **values)


@functools.cache
def _shape(model: type[schema.StoredRow]) -> _Shape:
    blank = Entity()
    for name, column in model.COLUMNS.items():
        value = blank.properties[name]
        if column.is_repeated:
            value.array_value.SetInParent()
            continue
        value.exclude_from_indexes = not column.is_indexed
        if column.default is None:
            value.null_value = 0
        else:
            _fill(value, name, column, column.default)
    required = frozenset(name for name, column in model.COLUMNS.items() if column.is_required)
    return _Shape(required, blank)
