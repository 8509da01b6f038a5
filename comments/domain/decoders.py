"""Decode JSON, MessagePack and built-in values into types, from any number of threads.

msgspec builds a description of a type when the type is first used, and keeps the description with
the type. The process crashes if a thread finds a description that another thread has not finished.
Therefore only this module makes msgspec build descriptions, and only in one thread at a time.
"""

import functools
import threading
from typing import Any, TypeVar, overload

import msgspec

T = TypeVar("T")

_DESCRIBING = threading.Lock()


@overload
def json(kind: type[T]) -> msgspec.json.Decoder[T]: ...
@overload
def json(kind: Any) -> msgspec.json.Decoder[Any]: ...
def json(kind: Any) -> msgspec.json.Decoder[Any]:
    """Return the decoder that reads JSON into a type."""
    return _json(kind)


@functools.cache
def _json(kind: Any) -> msgspec.json.Decoder[Any]:
    with _DESCRIBING:
        return msgspec.json.Decoder(kind)


def decode(data: bytes, kind: type[T]) -> T:
    """Decode JSON from others into a type.

    Raises:
        msgspec.DecodeError: the data is not UTF-8 or not JSON, is nested too deeply, or does not
            match the type.
    """
    try:
        return json(kind).decode(data)
    except (UnicodeError, RecursionError) as error:
        raise msgspec.DecodeError(f"{error}") from error


@overload
def msgpack(kind: type[T]) -> msgspec.msgpack.Decoder[T]: ...
@overload
def msgpack(kind: Any) -> msgspec.msgpack.Decoder[Any]: ...
def msgpack(kind: Any) -> msgspec.msgpack.Decoder[Any]:
    """Return the decoder that reads MessagePack into a type."""
    return _msgpack(kind)


@functools.cache
def _msgpack(kind: Any) -> msgspec.msgpack.Decoder[Any]:
    with _DESCRIBING:
        return msgspec.msgpack.Decoder(kind)


def convert(value: object, kind: type[T]) -> T:
    """Convert a value of built-in types, such as those of JSON, into a type.

    Raises:
        msgspec.ValidationError: the value does not match the type.
    """
    json(kind)  # Makes msgspec describe the type
    return msgspec.convert(value, kind)
