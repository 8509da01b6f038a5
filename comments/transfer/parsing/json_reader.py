"""Read a list of objects in a JSON document as a stream, in bounded memory.

For files with one JSON object on each line, use `json_lines`.

The standard library's scanner decodes each value, from a buffer that grows until the value is
complete. We use no library for JSON streams, because the ones that we know report errors without a
line number, replace lone surrogates, and need memory that grows with the square of the nesting
depth.
"""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

from comments import errors
from comments.transfer.parsing import source_files, stray_bytes
from comments.transfer.parsing.record_fields import Fields

# The maximum number of characters of one object in the list. Longer objects are not comments. Each
# object has to fit into memory, where a decoded value may take thirty times its length.
MAX_VALUE = 1 << 20
_CHUNK = 1 << 16
_BLANKS = re.compile(r"[ \t\n\r]*")
_ENDS = {"[": "]", "{": "}"}
_LITERAL = 20  # Characters; no JSON word, escape or end of a number is longer
_SHOWN = 30  # Maximum number of characters of the file in an error message.
_UNFINISHED = "Unterminated string"  # The scanner reports this error at the string's start
# Without `parse_constant`, the scanner would accept NaN and Infinity, which are not valid JSON.
# Control characters in strings are accepted, as in `json_lines`.
_SCANNER = json.JSONDecoder(parse_constant=lambda _: None, strict=False)


def items(
    path: Path, prefix: str, *, what: str, unit: str = "comment", is_required: bool = True
) -> Iterator[Fields]:
    """Yield the objects of a list in a JSON document, numbered from 1.

    `prefix` is the path of the list's items: "item" if the document itself is the list, and
    "data.Comment.item" for the list `Comment` in the object `data`. The list may be null; other
    parts of the document are skipped. In error messages, `what` names the format and `unit` names
    an object. With `is_required`, a file without such a list is refused.
    """
    *keys, _ = prefix.split(".")
    number, is_found = 0, False
    with source_files.open_text(path) as file:
        text = _Text(path, file)
        for _ in _places(text, keys):
            if text.peek() != "[":
                is_found = is_found or text.value() is None
                continue
            is_found = True
            for _ in text.parts():
                number += 1
                yield _fields(path, number, text, unit)
        if text.peek():
            raise text.bad("there is more text after the end of the JSON document")
    if is_required and not is_found:
        missing = f'has no list "{".".join(keys)}"' if keys else "is not a JSON list"
        raise errors.BadImport(str(path), None, f"the file is not {what}: it {missing}")


def _fields(path: Path, number: int, text: "_Text", unit: str) -> Fields:
    strays = text.strays
    value = text.value()
    if not isinstance(value, dict):
        raise errors.BadImport(str(path), number, "is not a JSON object", unit)
    return Fields(path, number, value, unit, has_strays=text.strays > strays)


def _places(text: "_Text", keys: Sequence[str]) -> Iterator[None]:
    """Pause at the start of each value with this path of keys. The caller then reads the value."""
    if not keys:
        yield
        return
    if text.peek() != "{":
        text.skip()
        return
    for key in text.parts():
        if key == keys[0]:
            yield from _places(text, keys[1:])
        else:
            text.skip()


class _Text:
    """A JSON document; only the part that is being read is in memory."""

    def __init__(self, path: Path, file: TextIO) -> None:
        self._path = path
        self._file = file
        self._buffer = ""
        self._at = 0  # Index of the next character in the buffer.
        self._line = 1  # Line number at which the buffer begins.
        self.strays = 0  # Number of stray bytes in the values read so far.
        self._is_at_end = False  # Whether the buffer extends to the end of the file.

    def bad(self, reason: str, at: int | None = None) -> errors.BadImport:
        """Return an error with the line of a place in the buffer, or of the current place."""
        at = self._at if at is None else at
        near = self._buffer[at : at + _SHOWN].encode("ascii", "backslashreplace").decode()
        where = f"near {near!r}" if near else "at the end of the file"
        line = self._line + self._buffer.count("\n", 0, at)
        return errors.BadImport(str(self._path), line, f"invalid JSON: {reason} {where}")

    def peek(self) -> str:
        """Skip blanks and return the next character, or "" at the end."""
        while True:
            blanks = _BLANKS.match(self._buffer, self._at)
            self._at = blanks.end() if blanks else self._at
            if self._at < len(self._buffer):
                return self._buffer[self._at]
            if self._is_at_end:
                return ""
            self._fill()

    def parts(self) -> Iterator[str]:
        """Pause at the start of each value of a list or object, and yield its key; "" in a list."""
        end = _ENDS[self._take()]
        if self.peek() == end:
            self._take()
            return
        yield self._key() if end == "}" else ""
        while self.peek() == ",":
            self._take()
            yield self._key() if end == "}" else ""
        if self.peek() != end:
            raise self.bad(f'expected "," or "{end}"')
        self._take()

    def value(self) -> object:
        """Decode the next value."""
        self.peek()
        while True:
            try:
                value, end = _SCANNER.raw_decode(self._buffer, self._at)
            except RecursionError:
                raise self.bad("values are nested too deeply") from None
            except ValueError as error:
                self._check_can_continue(error)
            else:
                # A number at the end of the buffer may continue in the rest of the file.
                if end < len(self._buffer) or self._is_at_end:
                    start, self._at = self._at, end
                    return self._repair(value, start)
            self._fill()

    def skip(self) -> None:
        """Skip the next value. The values in a list or object are decoded one at a time."""
        if self.peek() not in _ENDS:
            self.value()
            return
        for _ in self.parts():
            self.value()

    def _repair(self, value: object, start: int) -> object:
        """If the value that was just read has stray bytes, correct it and decode it again."""
        if stray_bytes.FOUND.search(self._buffer, start, self._at) is None:
            return value
        try:
            text, strays = stray_bytes.repair(self._buffer[start : self._at])
        except ValueError:
            raise self.bad(stray_bytes.REFUSAL, start) from None
        self.strays += strays
        return _SCANNER.decode(text)

    def _check_can_continue(self, error: ValueError) -> None:
        """Raise an error of the scanner, unless the value may just be incomplete in the buffer."""
        if not isinstance(error, json.JSONDecodeError):
            raise self.bad("a number has too many digits") from error
        is_early = error.pos < len(self._buffer) - _LITERAL and not error.msg.startswith(
            _UNFINISHED
        )
        if is_early or self._is_at_end:
            raise self.bad(error.msg, error.pos) from error
        if len(self._buffer) - self._at > MAX_VALUE:
            raise self.bad(f"a value is longer than {MAX_VALUE:,} characters") from error

    def _key(self) -> str:
        if self.peek() != '"':
            raise self.bad("expected a key in quotation marks")
        key = self.value()
        if self.peek() != ":":
            raise self.bad('expected ":"')
        self._take()
        return str(key)

    def _take(self) -> str:
        """Return the next character, which `peek` found, and move past it."""
        self._at += 1
        return self._buffer[self._at - 1]

    def _fill(self) -> None:
        """Read more of the file.

        Reading as much as the buffer already contains keeps repeated decoding linear.
        """
        self._line += self._buffer.count("\n", 0, self._at)
        rest = self._buffer[self._at :]
        more = self._file.read(max(_CHUNK, len(rest)))
        self._is_at_end = not more
        self._buffer, self._at = rest + more, 0
