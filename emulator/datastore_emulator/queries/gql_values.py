"""GQL values: convert literals and bindings to the messages of the API.

A binding that a query names must exist. A positional binding that no query names is refused, but a
named one is not, as in Google's service.
"""

from __future__ import annotations

import base64
import datetime as dt
import re
from collections.abc import Callable

from datastore_emulator import errors, protobufs
from datastore_emulator.queries.gql_tokens import (
    BINDING,
    DOUBLE,
    INTEGER,
    NAME,
    STRING,
    Token,
    Tokens,
)

_INT64 = range(-(1 << 63), 1 << 63)
_INT32 = range(1 << 31)
_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_RESERVED = re.compile(r"__.*__", re.DOTALL)
_BLOB = re.compile(r"(?:[A-Za-z0-9_-]{4})*(?:[A-Za-z0-9_-]{2,3})?")
_TWO = "[0-9]{2}"
_DATETIME = re.compile(
    rf"([0-9]{{4}}-{_TWO}-{_TWO})[Tt]((?:[01][0-9]|2[0-3]):{_TWO}:{_TWO})(?:\.([0-9]{{1,6}}))?"
    r"([Zz]|(?![+-]00:00)[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
)
_PARTITION = {"PROJECT": "project_id", "DATABASE": "database_id", "NAMESPACE": "namespace_id"}


class Values:
    """The values in one query.

    Args:
        given: The query and its bindings.
        partition: The partition of keys that name no partition.
        tokens: The tokens of the query.
    """

    def __init__(
        self, given: protobufs.GqlQuery, partition: protobufs.PartitionId, tokens: Tokens
    ) -> None:
        _check_parameters(given)
        self._given = given
        self._partition = partition
        self._tokens = tokens
        self._used: set[int] = set()
        self._functions: dict[str, Callable[[protobufs.Value], None]] = {
            "ARRAY": self._fill_array,
            "BLOB": self._fill_blob,
            "DATETIME": self._fill_datetime,
            "KEY": self._fill_key,
        }

    def check_positions(self) -> None:
        """Refuse positional bindings that the query does not use."""
        for number in range(1, len(self._given.positional_bindings) + 1):
            if number not in self._used:
                raise errors.InvalidArgument(f"GQL does not use the positional binding @{number}.")

    def is_next(self) -> bool:
        """Return whether a value comes next."""
        literals = (STRING, INTEGER, DOUBLE, BINDING, "TRUE", "FALSE", "NULL")
        return self._tokens.next.type in literals or self._tokens.is_call()

    def value(self) -> protobufs.Value:
        """Take a value."""
        if not self.is_next():
            self._tokens.fail("a value")
        token = self._tokens.require(self._tokens.next.type)
        if token.type == BINDING:
            return self._bound_value(token)
        value = protobufs.Value()
        self.check_literal(token)
        if token.type == NAME:
            self._fill_function(value, token)
        else:
            self._fill_literal(value, token)
        return value

    def position(self, what: str) -> int | bytes:
        """Take a count, or the cursor that is bound at this position."""
        token = self._tokens.require(INTEGER, BINDING)
        number = None
        if token.type == INTEGER:
            self.check_literal(token)
            number = self._integer(token)
        else:
            parameter = self._parameter(token)
            if parameter.WhichOneof("parameter_type") == "cursor":
                return parameter.cursor
            if parameter.value.WhichOneof("value_type") == "integer_value":
                number = parameter.value.integer_value
        if number is None or number not in _INT32:
            self._tokens.refuse(token, f"the {what} is not a cursor or an integer from 0 to 2^31-1")
        return number

    def count(self) -> int:
        """Take an integer literal."""
        token = self._tokens.require(INTEGER)
        self.check_literal(token)
        return self._integer(token)

    def check_literal(self, token: Token) -> None:
        """Refuse a literal if the query must not contain literals."""
        if not self._given.allow_literals:
            self._tokens.refuse(token, f"the literal {token.text} is not allowed: bind the value")

    def _bound_value(self, token: Token) -> protobufs.Value:
        parameter = self._parameter(token)
        if parameter.WhichOneof("parameter_type") == "cursor":
            self._tokens.refuse(token, f"{token.text} is bound to a cursor, not to a value")
        return parameter.value

    def _parameter(self, token: Token) -> protobufs.GqlQueryParameter:
        name = token.text[1:]
        if name[0] in "0123456789":
            number = self._integer(token, name)
            if not 1 <= number <= len(self._given.positional_bindings):
                self._tokens.refuse(token, f"the positional binding {token.text} is missing")
            self._used.add(number)
            bound: protobufs.GqlQueryParameter = self._given.positional_bindings[number - 1]
            return bound
        if name not in self._given.named_bindings:
            self._tokens.refuse(token, f"the named binding {token.text} is missing")
        return self._given.named_bindings[name]

    def _integer(self, token: Token, text: str = "") -> int:
        # 20 digits exceed 64 bits, and Python refuses to convert thousands of digits.
        digits = (text or token.text).lstrip("+-").lstrip("0")
        number = int(digits[:20] or 0) * (-1 if token.text[0] == "-" else 1)
        if number not in _INT64:
            self._tokens.refuse(token, "the integer does not fit into 64 bits")
        return number

    def _fill_literal(self, value: protobufs.Value, token: Token) -> None:
        if token.type == STRING:
            value.string_value = token.text
        elif token.type == INTEGER:
            value.integer_value = self._integer(token)
        elif token.type == DOUBLE:
            value.double_value = float(token.text)
        elif token.type == "NULL":
            value.null_value = 0
        else:
            value.boolean_value = token.type == "TRUE"

    def _fill_function(self, value: protobufs.Value, token: Token) -> None:
        fill = self._functions.get(token.text.upper())
        if fill is None:
            self._tokens.refuse(token, f"{token.text} is not one of {', '.join(self._functions)}")
        self._tokens.open()
        fill(value)
        self._tokens.close()

    def _fill_array(self, value: protobufs.Value) -> None:
        value.array_value.SetInParent()
        if self._tokens.next.type == ")":
            return
        value.array_value.values.append(self.value())
        while self._tokens.take(","):
            value.array_value.values.append(self.value())

    def _fill_blob(self, value: protobufs.Value) -> None:
        token = self._tokens.require(STRING)
        if not _BLOB.fullmatch(token.text):
            self._tokens.refuse(token, "the blob is not base64 of A-Z a-z 0-9 - _ without padding")
        padding = "=" * (-len(token.text) % 4)
        value.blob_value = base64.urlsafe_b64decode(token.text + padding)

    def _fill_datetime(self, value: protobufs.Value) -> None:
        token = self._tokens.require(STRING)
        match = _DATETIME.fullmatch(token.text)
        if match is None:
            self._tokens.refuse(token, "the time is not written like 2013-09-29T09:30:20.5-08:00")
        day, time, fraction, zone = match.groups(default="")
        text = f"{day}T{time}.{fraction:0<6}{zone.upper()}"
        try:
            moment = dt.datetime.fromisoformat(text).astimezone(dt.UTC)
        except (ValueError, OverflowError):
            self._tokens.refuse(token, "the time does not exist")
        value.timestamp_value.FromDatetime(moment)

    def _fill_key(self, value: protobufs.Value) -> None:
        key = value.key_value
        key.partition_id.CopyFrom(self._partition)
        for dimension, field in _PARTITION.items():
            if self._tokens.is_call() and self._tokens.next.text.upper() == dimension:
                setattr(key.partition_id, field, self._dimension())
        self._add_element(key)
        while self._tokens.take(","):
            self._add_element(key)

    def _dimension(self) -> str:
        self._tokens.require(NAME)
        self._tokens.open()
        text = self._tokens.require(STRING).text
        self._tokens.close()
        self._tokens.require(",")
        return text

    def _add_element(self, key: protobufs.Key) -> None:
        element = key.path.add(kind=self._tokens.require(NAME).text)
        self._tokens.require(",")
        token = self._tokens.require(INTEGER, STRING)
        if token.type == STRING:
            element.name = token.text
        else:
            element.id = self._integer(token)
        if not (element.name or element.id):
            self._tokens.refuse(token, "a key has no id 0 and no empty name")


def _check_parameters(given: protobufs.GqlQuery) -> None:
    for name, parameter in given.named_bindings.items():
        if not _NAME.fullmatch(name) or _RESERVED.fullmatch(name):
            raise errors.InvalidArgument(f'A binding cannot have the name "{name}".')
        _check_parameter(parameter)
    for parameter in given.positional_bindings:
        _check_parameter(parameter)


def _check_parameter(parameter: protobufs.GqlQueryParameter) -> None:
    if parameter.WhichOneof("parameter_type") is None:
        raise errors.InvalidArgument("A binding has neither a value nor a cursor.")
