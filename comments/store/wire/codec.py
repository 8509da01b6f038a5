"""Rows as messages: our kinds to protobuf and back as NDB would, in a tenth of its time.

Owns the one conversion between NDB's models and what travels. A property is sent as NDB sends it
(a test compares the bytes), so rows that either wrote are read by both. It knows the properties
our kinds have; a kind with another one is refused when it is first converted, never half stored.

What NDB does on the way, and this too: a required property without a value is refused, one that
is not stored has its default, and stored properties that a kind no longer has are left out.
"""

# ruff: noqa: SLF001 - NDB says what a property was declared as in such attributes only

import functools
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, cast

from google.cloud import ndb
from google.cloud.datastore_v1.types import entity as entity_types

Entity = entity_types.Entity.pb()
_Value = entity_types.Value.pb()
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


# What a property's value is when NDB has nothing to do for it.
_TAKEN = frozenset({str, int, bool, bytes, datetime, type(None)})
_MISSING = object()


class _Form(NamedTuple):
    """How a type of property travels: filled into a Value, and read from one."""

    fill: Callable[[Any, Any], None]
    read: Callable[[Any], Any]


class _Column(NamedTuple):
    """One property of a kind."""

    name: str
    form: _Form
    is_indexed: bool
    is_required: bool
    is_repeated: bool


class _Shape(NamedTuple):
    """A kind: its class and its properties."""

    model: Any
    columns: dict[str, _Column]


def _plain(field: str) -> _Form:
    return _Form(lambda value, given: setattr(value, field, given), lambda v: getattr(v, field))


def _fill_time(value: Any, given: datetime) -> None:
    seconds, micros = divmod((given - _EPOCH) // _MICROSECOND, 1_000_000)
    value.timestamp_value.seconds = seconds
    value.timestamp_value.nanos = micros * 1000
    value.timestamp_value.SetInParent()  # 1970 is a time too


def _read_time(value: Any) -> datetime:
    stored = value.timestamp_value
    return _EPOCH + timedelta(seconds=stored.seconds, microseconds=stored.nanos // 1000)


_FORMS: dict[type[Any], _Form] = {
    ndb.StringProperty: _plain("string_value"),
    ndb.TextProperty: _plain("string_value"),
    ndb.IntegerProperty: _plain("integer_value"),
    ndb.BooleanProperty: _plain("boolean_value"),
    ndb.BlobProperty: _plain("blob_value"),
    ndb.DateTimeProperty: _Form(_fill_time, _read_time),
}


def message(row: ndb.Model, key: Any) -> Any:
    """The entity of a row, under its key as a message.

    Raises:
        ValueError: a required property has no value.
        TypeError: the kind has a property of an unknown type.
    """
    made = Entity()
    made.key.CopyFrom(key)
    properties, kind = made.properties, cast("Any", type(row))
    held = cast("Any", row)._values
    for name, form, is_indexed, is_required, is_repeated in _shape(kind).columns.values():
        given = held.get(name, _MISSING)
        # A value as it was assigned is taken as it is. What NDB has to make first, a default or one
        # that it wrapped when it read the row, NDB makes, at ten times the cost.
        if type(given) not in _TAKEN:
            given = getattr(row, name)
        value = properties[name]
        if is_repeated:
            value.array_value.SetInParent()
            for each in given:
                _fill(value.array_value.values.add(), form, each, is_indexed=is_indexed)
            continue
        if given is None and is_required:
            raise ValueError(f"{name} of {row.key} has no value")
        _fill(value, form, given, is_indexed=is_indexed)
    return made


def _fill(value: Any, form: _Form, given: Any, *, is_indexed: bool) -> None:
    if given is None:
        value.null_value = 0
    else:
        form.fill(value, given)
    if not is_indexed:
        value.exclude_from_indexes = True


def row(key: ndb.Key, stored: Any) -> ndb.Model:
    """The row of a stored entity, under NDB's key.

    Raises:
        TypeError: the kind has a property of an unknown type.
    """
    model, columns = _shape_of(key.pairs()[-1][0])
    values: dict[str, Any] = {}
    for name, value in stored.properties.items():
        column = columns.get(name)
        if column is None:
            continue
        if column.is_repeated:
            values[name] = [column.form.read(each) for each in value.array_value.values]
        else:
            values[name] = None if value.HasField("null_value") else column.form.read(value)
    made: Any = model()
    # Past the checks of what people assign: key and values were checked when they were stored.
    made._entity_key = key
    made._values = values
    found: ndb.Model = made
    return found


def _shape_of(kind: str) -> _Shape:
    known: Any = ndb.Model
    return _shape(known._lookup_model(kind))


@functools.cache
def _shape(model: Any) -> _Shape:
    return _Shape(
        model,
        {name: _column(model, name, each) for name, each in model._properties.items()},
    )


def _column(model: Any, name: str, declared: Any) -> _Column:
    form = _FORMS.get(type(declared))
    is_plain = (
        form is not None
        and declared._code_name == name
        and not getattr(declared, "_compressed", False)
        and getattr(declared, "_tzinfo", UTC) == UTC
    )
    if form is None or not is_plain:
        raise TypeError(f"{model.__name__}.{name} is of a type that is not stored here")
    return _Column(
        name,
        form,
        bool(declared._indexed),
        bool(declared._required),
        bool(declared._repeated),
    )
