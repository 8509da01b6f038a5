"""Convert rows to protobuf and back, with the same result as NDB in a fraction of the time.

Owns the only conversion between NDB's models and the wire format. This module encodes properties as
NDB does (a test compares the bytes), so NDB and this module can read each other's rows. It supports
only the property types that the kinds use. A kind with any other property type is refused at its
first conversion, before anything is stored.

Like NDB, this module refuses a required property without a value, returns the default for a
property that is not stored, and skips stored properties that the kind no longer has.
"""

import functools
from collections.abc import Collection, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, cast

from google.cloud import ndb
from google.cloud.datastore_v1.types import entity as entity_types

from comments.store.models import schema

Entity = entity_types.Entity.pb()
_Value = entity_types.Value.pb()
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class _Column(NamedTuple):
    """One property of a kind, and the field of a Value that contains its values."""

    name: str
    field: str
    declared: schema.Declared


class _Shape(NamedTuple):
    """A kind: its class, its properties, and an entity in which all properties have their defaults.

    Most properties of a row have their defaults, so copying `blank` is faster than encoding each of
    them.
    """

    model: Any
    columns: dict[str, _Column]
    required: frozenset[str]
    blank: Any


_TIME = "timestamp_value"
_FIELDS: dict[type[Any], str] = {
    schema.StringProperty: "string_value",
    schema.TextProperty: "string_value",
    schema.IntegerProperty: "integer_value",
    schema.BooleanProperty: "boolean_value",
    schema.BlobProperty: "blob_value",
    schema.DateTimeProperty: _TIME,
}


def message(row: Any, key: Any, names: Collection[str] | None = None) -> Any:
    """Encode a row as a new entity; see `fill`."""
    made = Entity()
    fill(made, row, key, names)
    return made


def fill(made: Any, row: Any, key: Any, names: Collection[str] | None = None) -> None:
    """Encode a row and its key into an empty entity. With `names`, encode only these properties.

    Raises:
        ValueError: a required property has no value.
        TypeError: the kind has a property of an unknown type.
    """
    shape, kept = _shape(cast("Any", type(row))), row.kept
    properties = made.properties
    wanted = _fill_blanks(made, shape, kept, names)
    made.key.CopyFrom(key)
    for name in wanted:
        _, field, declared = shape.columns[name]
        given = kept.get(name, declared.default)
        if declared.is_repeated or type(given) not in schema.AS_SET:
            given = getattr(row, name)
        if declared.is_repeated:
            array = properties[name].array_value.values
            for each in given:
                _fill(array.add(exclude_from_indexes=not declared.is_indexed), field, each)
        elif given is None and declared.is_required:
            raise ValueError(f"{name} of {row.key} has no value")
        elif given is None:
            properties[name].null_value = 0
        elif given != declared.default:
            _fill(properties[name], field, given)


def _fill_blanks(
    made: Any, shape: _Shape, kept: dict[str, Any], names: Collection[str] | None
) -> Iterable[str]:
    """Fill in the defaults, and return the names of the properties that may have other values."""
    if names is None:
        made.CopyFrom(shape.blank)
        return kept if kept.keys() >= shape.required else shape.columns
    for name in names:
        made.properties[name].CopyFrom(shape.blank.properties[name])
    return names


def _fill(value: Any, field: str, given: Any) -> None:
    if field != _TIME:
        setattr(value, field, given)
        return
    seconds, micros = divmod((given - _EPOCH) // _MICROSECOND, 1_000_000)
    value.timestamp_value.seconds = seconds
    value.timestamp_value.nanos = micros * 1000
    value.timestamp_value.SetInParent()  # otherwise 1970-01-01 would be left out


def row(key: ndb.Key, stored: Any) -> schema.StoredRow:
    """Decode a stored entity as a row, under NDB's key.

    Raises:
        TypeError: the kind has a property of an unknown type.
    """
    model, columns, *_ = _shape(cast("Any", schema.KINDS[key.kind()]))
    values: dict[str, Any] = {}
    properties = stored.properties
    for name in properties:  # `items` of a protobuf map is slow
        column = columns.get(name)
        if column is None:
            continue
        _, field, declared = column
        value = properties[name]
        if declared.is_repeated:
            values[name] = [_read(each, field) for each in value.array_value.values]
        elif value.HasField("null_value"):
            values[name] = None
        else:
            values[name] = getattr(value, field) if field != _TIME else _read(value, field)
    made: schema.StoredRow = model.made_of(key, values)
    return made


def _read(value: Any, field: str) -> Any:
    if field != _TIME:
        return getattr(value, field)
    stored = value.timestamp_value
    return _EPOCH + timedelta(seconds=stored.seconds, microseconds=stored.nanos // 1000)


@functools.cache
def _shape(model: Any) -> _Shape:
    columns: dict[str, _Column] = {}
    blank = Entity()
    for name, each in vars(model).items():
        if not isinstance(each, ndb.Property):
            continue
        field = _FIELDS.get(type(each))
        if field is None:
            raise TypeError(f"{model.__name__}.{name} has a type that this module cannot encode")
        declared = cast("Any", each).declared
        columns[name] = _Column(name, field, declared)
        value = blank.properties[name]
        if declared.is_repeated:
            value.array_value.SetInParent()
            continue
        value.exclude_from_indexes = not declared.is_indexed
        if declared.default is None:
            value.null_value = 0
        else:
            _fill(value, field, declared.default)
    required = frozenset(name for name, _, declared in columns.values() if declared.is_required)
    return _Shape(model, columns, required, blank)
