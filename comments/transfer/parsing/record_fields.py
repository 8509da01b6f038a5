"""Read the fields of one JSON or CSV record, and correct faults whose meaning is certain.

Systems that support several databases write the same field as a number, as a string or as null.
Each method therefore accepts every form that has only one meaning, and raises `errors.BadImport`
for any other value. Corrections and left-out data are collected in `remarks`, which the reader of
the format yields before the record.
"""

import json
import re
from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

from comments import errors
from comments.transfer import import_source
from comments.transfer.parsing import stray_bytes

NO_ZONE = "times without a time zone, read as UTC"
SECONDS = "times in seconds instead of milliseconds"
MILLISECONDS = "times in milliseconds instead of seconds"
HALVES = "halves of characters (lone surrogates), replaced by U+FFFD"
NO_SCHEME = "websites without http:// or https://, completed with http://"
WHOLE = "whole numbers with a decimal point, such as 12.0"
ADDRESSES = "IP addresses"
NEGATIVE = "negative numbers of votes, read as 0"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Numbers from this value on are milliseconds. If they were seconds, they would be after the year
# 5138; if smaller numbers were milliseconds, they would be before March 1973.
_MILLISECONDS = 100_000_000_000
_NUMBER = re.compile(r"-?[0-9]{1,18}(\.[0-9]{1,18})?")
_SURROGATES = re.compile("[\ud800-\udfff]")
_TRUE, _FALSE = {"true", "1", "yes"}, {"", "false", "0", "no"}
# Keys of objects that wrap a text: LeanCloud's dates, and the ids and dates of MongoDB.
_WRAPPERS = ("iso", "$oid", "$date", "$numberLong", "$numberInt", "$numberDouble")
_EXACT = 1 << 53  # Whole numbers below this are exact in floating point.
_EXAMPLE = "2024-05-01T18:30:00Z"
_MAX_COUNT = 1_000_000_000  # Maximum number of votes
_SHOWN = 40  # Maximum number of characters of a value in an error message.
# Go's format for times, such as "2021-10-28 20:50:15.5 +0800 CST m=+0.1".
_GO_TIME = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8}(?:\.[0-9]{1,9})?) ([+-][0-9]{4})"
    r"( [A-Z]{1,5}| [+-][0-9]{2,4})?( m=[+-][0-9.]{1,30})?"
)
# The pattern is anchored, because searching a long text for it would take quadratic time.
_HOST = re.compile(r"\A[^\s/@:]+\.[^\s/@:.]{2,}(:[0-9]+)?(/\S*)?")


class Fields:
    """The fields of a record.

    `number` is the number of the record or line in the file, counted in `unit`s.

    `has_strays` means that some bytes of the record were corrected (`stray_bytes`).
    """

    def __init__(
        self,
        path: Path,
        number: int,
        values: Mapping[str, object],
        unit: str = "line",
        *,
        has_strays: bool = False,
    ) -> None:
        self.number = number
        self.remarks: list[import_source.Item] = []
        self._path = path
        self._values = values
        self._unit = unit
        if has_strays:
            self.note_correction(stray_bytes.CORRECTION)

    def __contains__(self, name: str) -> bool:
        """Return whether the record has a non-empty value in this field."""
        return self._values.get(name) not in (None, "", [], {})

    @property
    def names(self) -> AbstractSet[str]:
        return self._values.keys()

    def bad(self, message: str) -> errors.BadImport:
        """Return the error that says why this record is invalid."""
        return errors.BadImport(str(self._path), self.number, message, self._unit)

    def note_correction(self, what: str) -> None:
        """Note a correction of this record."""
        self.remarks.append(import_source.Corrected(self.number, what))

    def leave_out(self, names: Mapping[str, str], kept: Collection[str] | None = None) -> None:
        """Note the fields whose data is not imported. `names` maps fields to plural nouns.

        If `kept` lists the imported fields, all fields that are neither in `kept` nor in `names`
        are noted by their own names.
        """
        others = [] if kept is None else [name for name in self.names if name not in kept]
        for name in dict.fromkeys([*names, *others]):
            if name in self:
                what = names.get(name, f'values of "{name[:_SHOWN]}"')
                self.remarks.append(import_source.LeftOut(self.number, what))

    def inside(self, name: str) -> "Fields":
        """Return the fields of an object in this record; they share the record's remarks."""
        value = self._values.get(name)
        if value is not None and not isinstance(value, dict):
            raise self._unfit(name, "a JSON object", value)
        return self._inner(value or {})

    def items(self, name: str) -> list["Fields"]:
        """Return the objects of a list in this record; they share the record's remarks."""
        values = self._values.get(name)
        if values is None:
            return []
        if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
            raise self._unfit(name, "a list of JSON objects", values)
        return [self._inner(value) for value in values]

    def text(self, name: str) -> str:
        """Return a text; "" if the field is missing or null. A number becomes its digits."""
        value = self._plain(name)
        if value is None:
            return ""
        if isinstance(value, str):
            whole = _SURROGATES.sub("\ufffd", value)
            if whole != value:
                self.note_correction(HALVES)
            return whole
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
            self.note_correction(WHOLE)
            return str(int(value))
        raise self._unfit(name, "a text", value)

    def required_text(self, name: str) -> str:
        """Return a text without surrounding blanks. The field must not be missing or empty."""
        text = self.text(name).strip()
        if not text:
            raise self.bad(f'"{name}" is missing')
        return text

    def id(self, name: str) -> str:
        """Return a valid id. The field must not be missing."""
        text = self.required_text(name)
        return import_source.checked_id(self._path, self.number, text, self._unit)

    def parent(self, name: str) -> str | None:
        """Return the id of a parent; None for a root. None, "" and 0 stand for no parent."""
        text = self.text(name).strip()
        return None if text in {"", "0"} else text

    def is_true(self, name: str) -> bool:
        """Return a boolean, written as a boolean, as 0 or 1, or as a word such as "yes"."""
        value = self._plain(name)
        text = "" if value is None else str(value).strip().lower()
        if text in _TRUE:
            return True
        if text in _FALSE:
            return False
        raise self._unfit(name, "true or false", value)

    def count(self, name: str) -> int:
        """Return a number of votes; 0 if the field is missing or null."""
        number = self.score(name)
        if number < 0:
            self.note_correction(NEGATIVE)
        return max(number, 0)

    def score(self, name: str) -> int:
        """Return upvotes minus downvotes; 0 if the field is missing or null."""
        value = self._plain(name)
        text = "" if value is None else str(value).strip()
        if not text:
            return 0
        if isinstance(value, bool) or not _NUMBER.fullmatch(text):
            raise self._unfit(name, "a whole number", value)
        number = Decimal(text)
        if number % 1 or abs(number) > _MAX_COUNT:
            raise self._unfit(name, "a number of votes", value)
        return int(number)

    def balance(self, name: str) -> tuple[int, int]:
        """Return the sum of all votes as upvotes or downvotes; the other number is 0."""
        number = self.score(name)
        return max(number, 0), max(-number, 0)

    def size(self, name: str) -> int:
        """Return the number of different items in a list, which may be encoded as a string."""
        value = self._plain(name)
        for _ in range(2):  # Twikoo's importer encodes the list as JSON twice.
            if isinstance(value, str):
                value = self._decode_json(name, value)
        if value is None:
            return 0
        if not isinstance(value, list):
            raise self._unfit(name, "a list", value)
        return len({str(item) for item in value})

    def website(self, name: str) -> str:
        """Return a web address. If it begins with a host instead of a scheme, add a scheme."""
        text = self.text(name).strip()
        if _HOST.fullmatch(text):
            self.note_correction(NO_SCHEME)
            return f"http://{text}"
        return text

    def moment(self, name: str, *, milliseconds: bool = False) -> datetime | None:
        """Return a time; None if the field is missing or null.

        A time is an ISO date, a date in Go's format, or a number of seconds since 1970; with
        `milliseconds`, a number of milliseconds.
        """
        value = self._plain(name)
        text = "" if value is None else str(value).strip()
        if not text:
            return None
        if isinstance(value, bool):
            raise self._unfit(name, "a time", value)
        if go := _GO_TIME.fullmatch(text):
            text = go[1] + go[2]
        if _NUMBER.fullmatch(text):
            return self._since_1970(name, Decimal(text), milliseconds=milliseconds)
        try:
            moment = import_source.moment(self._path, self.number, text, self._unit)
        except errors.BadImport as error:
            raise self._unfit(name, f"a time such as {_EXAMPLE}", value) from error
        if datetime.fromisoformat(text).tzinfo is None:
            self.note_correction(NO_ZONE)
        return moment

    def required_moment(self, *names: str, milliseconds: bool = False) -> datetime:
        """Return the time in the first of these fields that contains one."""
        for name in names:
            moment = self.moment(name, milliseconds=milliseconds)
            if moment is not None:
                return moment
        raise self.bad(f'"{names[0]}" is missing')

    def _since_1970(self, name: str, number: Decimal, *, milliseconds: bool) -> datetime:
        is_large = abs(number) >= _MILLISECONDS
        if number and is_large != milliseconds:
            self.note_correction(MILLISECONDS if is_large else SECONDS)
        seconds = number / 1000 if is_large else number
        try:
            return _EPOCH + timedelta(microseconds=int(seconds * 1_000_000))
        except OverflowError as error:
            raise self._unfit(name, "a time", number) from error

    def _decode_json(self, name: str, text: str) -> object:
        """Decode JSON in a text; "" becomes None."""
        try:
            return json.loads(text) if text.strip() else None
        except (ValueError, RecursionError) as error:
            raise self._unfit(name, "a list", text) from error

    def _inner(self, values: Mapping[str, object]) -> "Fields":
        inner = Fields(self._path, self.number, values, self._unit)
        inner.remarks = self.remarks
        return inner

    def _plain(self, name: str) -> object:
        """Return a value; if a database has wrapped a date or id in an object, unwrap it."""
        value = self._values.get(name)
        for _ in range(2):  # MongoDB wraps a date twice: {"$date": {"$numberLong": "..."}}
            if isinstance(value, dict):
                inner = [value[key] for key in _WRAPPERS if key in value]
                value = inner[0] if inner else value
        return value

    def _unfit(self, name: str, expected: str, value: object) -> errors.BadImport:
        return self.bad(f'"{name}" is not {expected}: {str(value)[:_SHOWN]!r}')
