"""Convert rows to protobuf and back, with the same result as NDB in a fraction of the time.

Owns the only conversion between NDB's models and the wire format. This module encodes properties as
NDB does (a test compares the bytes), so NDB and this module can read each other's rows. It supports
only the property types that the kinds use. A kind with any other property type is refused at its
first conversion, before anything is stored.

Like NDB, this module refuses a required property without a value, returns the default for a
property that is not stored, and skips stored properties that the kind no longer has.
"""

import functools
from collections.abc import Callable, Collection, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, cast

from google.cloud import ndb
from google.cloud.datastore_v1.types import entity as entity_types

from comments.store.models import schema

Entity = entity_types.Entity.pb()
_Value = entity_types.Value.pb()
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class _Form(NamedTuple):
    """The encoding of a property type: functions that write it to a Value and read it back."""

    fill: Callable[[Any, Any], None]
    read: Callable[[Any], Any]


class _Column(NamedTuple):
    """One property of a kind."""

    name: str
    form: _Form
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


def _plain(field: str) -> _Form:
    return _Form(lambda value, given: setattr(value, field, given), lambda v: getattr(v, field))


def _fill_time(value: Any, given: datetime) -> None:
    seconds, micros = divmod((given - _EPOCH) // _MICROSECOND, 1_000_000)
    value.timestamp_value.seconds = seconds
    value.timestamp_value.nanos = micros * 1000
    value.timestamp_value.SetInParent()  # otherwise 1970-01-01 would be left out


def _read_time(value: Any) -> datetime:
    stored = value.timestamp_value
    return _EPOCH + timedelta(seconds=stored.seconds, microseconds=stored.nanos // 1000)


_FORMS: dict[type[Any], _Form] = {
    schema.StringProperty: _plain("string_value"),
    schema.TextProperty: _plain("string_value"),
    schema.IntegerProperty: _plain("integer_value"),
    schema.BooleanProperty: _plain("boolean_value"),
    schema.BlobProperty: _plain("blob_value"),
    schema.DateTimeProperty: _Form(_fill_time, _read_time),
}


def message(row: ndb.Model, key: Any, names: Collection[str] | None = None) -> Any:
    """Encode a row as a new entity; see `fill`."""
    made = Entity()
    fill(made, row, key, names)
    return made


def fill(made: Any, row: ndb.Model, key: Any, names: Collection[str] | None = None) -> None:
    """Encode a row and its key into an empty entity. With `names`, encode only these properties.

    Raises:
        ValueError: a required property has no value.
        TypeError: the kind has a property of an unknown type.
    """
    shape = _shape(cast("Any", type(row)))
    kept = cast("schema.StoredRow", row).kept
    properties = made.properties
    if names is None:
        made.CopyFrom(shape.blank)
        given_names: Iterable[str] = kept if kept.keys() >= shape.required else shape.columns
    else:
        given_names = names
        for name in names:
            properties[name].CopyFrom(shape.blank.properties[name])
    made.key.CopyFrom(key)
    for name in given_names:
        _, form, declared = shape.columns[name]
        if declared.is_repeated:
            _fill_array(properties[name].array_value, form, declared, getattr(row, name))
            continue
        given = kept.get(name, declared.default)
        if type(given) not in schema.AS_SET:
            given = getattr(row, name)
        if given is None:
            _fill_null(properties, name, declared, row)
        elif given != declared.default:
            form.fill(properties[name], given)


def _fill_null(properties: Any, name: str, declared: schema.Declared, row: ndb.Model) -> None:
    if declared.is_required:
        raise ValueError(f"{name} of {row.key} has no value")
    if declared.default is not None:
        properties[name].null_value = 0


def _fill_array(array: Any, form: _Form, declared: schema.Declared, given: list[Any]) -> None:
    for each in given:
        form.fill(array.values.add(exclude_from_indexes=not declared.is_indexed), each)


def row(key: ndb.Key, stored: Any) -> ndb.Model:
    """Decode a stored entity as a row, under NDB's key.

    Raises:
        TypeError: the kind has a property of an unknown type.
    """
    model, columns, *_ = _shape_of(key.kind())
    values: dict[str, Any] = {}
    properties = stored.properties
    for name in properties:  # `items` of a protobuf map is slow
        column = columns.get(name)
        if column is None:
            continue
        value = properties[name]
        if column.declared.is_repeated:
            values[name] = [column.form.read(each) for each in value.array_value.values]
        else:
            values[name] = None if value.HasField("null_value") else column.form.read(value)
    row: ndb.Model = model.made_of(key, values)
    return row


def _shape_of(kind: str) -> _Shape:
    return _shape(cast("Any", schema.KINDS[kind]))


@functools.cache
def _shape(model: Any) -> _Shape:
    properties = {
        name: each for name, each in vars(model).items() if isinstance(each, ndb.Property)
    }
    columns = {name: _column(model, name, each) for name, each in properties.items()}
    blank = Entity()
    for name, form, declared in columns.values():
        value = blank.properties[name]
        if declared.is_repeated:
            value.array_value.SetInParent()
            continue
        value.exclude_from_indexes = not declared.is_indexed
        if declared.default is None:
            value.null_value = 0
        else:
            form.fill(value, declared.default)
    required = frozenset(name for name, _, declared in columns.values() if declared.is_required)
    return _Shape(model, columns, required, blank)


def _column(model: Any, name: str, each: Any) -> _Column:
    form = _FORMS.get(type(each))
    if form is None:
        raise TypeError(f"{model.__name__}.{name} has a type that this module cannot encode")
    return _Column(name, form, each.declared)
