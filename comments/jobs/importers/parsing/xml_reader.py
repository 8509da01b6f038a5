"""Read the requested records from an XML file as a stream, in bounded memory.

This module owns the protection against hostile XML. A file with a DOCTYPE is refused, so there are
no entities to expand or fetch. Depth, text and tokens are limited, and elements that were not
requested are dropped. The declared encoding is checked first (`xml_encoding`). Namespaces are
resolved from the file's declarations: an unbound prefix is an error, and elements with the same
name in different namespaces are different elements.

Parsing is strict. Parsers that repair XML guess differently, and misreading half of a discussion is
worse than refusing the file with a line number.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from xml.parsers import expat

import msgspec

from comments import errors
from comments.jobs.importers.parsing import xml_encoding

# The maximum number of nested elements. Exports nest about six.
MAX_DEPTH = 100
# The maximum number of characters in one field. Other code checks the limits for stored comments.
MAX_TEXT = 1_000_000
# The maximum bytes in one tag, comment or processing instruction, which the parser buffers as a
# whole.
MAX_TOKEN = 1 << 20
_CHUNK = 1 << 16
_MOST_NAMES = 1_000  # Maximum number of element names whose short names are kept.
# Errors with several possible causes, one of which is a wrong encoding.
_NOT_THE_ENCODING = {
    expat.errors.codes[expat.errors.XML_ERROR_INVALID_TOKEN],
    expat.errors.codes[expat.errors.XML_ERROR_PARTIAL_CHAR],
    expat.errors.codes[expat.errors.XML_ERROR_INCORRECT_ENCODING],
    expat.errors.codes[expat.errors.XML_ERROR_UNKNOWN_ENCODING],
}
# Advice for errors that are common in exports.
_ADVICE = {
    expat.errors.codes[expat.errors.XML_ERROR_UNBOUND_PREFIX]: (
        '; add xmlns:PREFIX="..." to the first element (docs/importing.md has one for atom:)'
    )
}


class Element(msgspec.Struct, frozen=True):
    """A record in the file.

    `serial` is the record's number; `inside` is the serial of the enclosing record.

    The keys of `fields` are paths within the record: `author/name` is element text, `parent@id`
    an attribute.
    """

    name: str
    line: int
    serial: int
    inside: int
    fields: Mapping[str, str]

    def text(self, path: str) -> str:
        """Return a field without surrounding white space; "" if the record has no such field."""
        return self.fields.get(path, "").strip()


@dataclasses.dataclass(frozen=True, slots=True)
class Shape:
    """The records and fields to read from a format.

    `name` converts a qualified name ("namespace local") to the short name, or to "" for elements to
    be ignored. `records` maps paths of short names, starting at the root, to the requested fields.
    """

    title: str
    root: str
    name: Callable[[str], str]
    records: Mapping[str, frozenset[str]]


def read(path: Path, shape: Shape) -> Iterator[Element]:
    """Yield each record in a file when the record ends.

    Raises:
        errors.BadImport: the file cannot be read, is not well-formed, has a different format or a
            DOCTYPE, or exceeds a limit; the error names the line.
    """
    builder = _Builder(str(path), shape)
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                yield from builder.feed(chunk)
    except OSError as error:
        raise errors.BadImport(str(path), None, error.strerror or str(error)) from error
    yield from builder.feed(b"", is_last=True)


@dataclasses.dataclass(slots=True)
class _Record:
    """A record whose end has not been read yet."""

    path: str
    depth: int
    line: int
    serial: int
    inside: int
    fields: dict[str, str] = dataclasses.field(default_factory=dict)


class _Builder:
    """Converts the parser's events to records."""

    def __init__(self, file: str, shape: Shape) -> None:
        self._file = file
        self._shape = shape
        self._encoding = ""
        self._short = functools.lru_cache(_MOST_NAMES)(shape.name)
        self._paths: list[str] = []  # Of the open elements, as short names from the root.
        self._open: list[_Record] = []
        self._field: str | None = None
        self._field_depth = 0
        self._text: list[str] = []
        self._text_size = 0
        self._fed = 0
        self._serial = 0
        self._done: list[Element] = []
        self._parser = self._new_parser()

    def _new_parser(self) -> expat.XMLParserType:
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.XmlDeclHandler = self._declaration
        parser.StartDoctypeDeclHandler = self._doctype
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        return parser

    def feed(self, chunk: bytes, *, is_last: bool = False) -> Iterator[Element]:
        """Parse the next bytes; return the records that end in them."""
        try:
            self._parser.Parse(chunk, is_last)
        except expat.ExpatError as error:
            reason = f"invalid XML: {expat.ErrorString(error.code)}{self._advice(error.code)}"
            raise errors.BadImport(self._file, error.lineno, reason) from error
        self._fed += len(chunk)
        if self._fed - max(self._parser.CurrentByteIndex, 0) > MAX_TOKEN + _CHUNK:
            raise self._bad(f"a tag or comment is longer than {MAX_TOKEN:,} bytes")
        done, self._done = self._done, []
        return iter(done)

    def _bad(self, message: str) -> errors.BadImport:
        return errors.BadImport(self._file, self._parser.CurrentLineNumber, message)

    def _advice(self, code: int) -> str:
        if code in _NOT_THE_ENCODING:
            return f"; {xml_encoding.advice(self._encoding)}"
        return _ADVICE.get(code, "")

    def _declaration(self, _version: str, encoding: str | None, _standalone: int) -> None:
        """Check the declared encoding.

        The parser calls this method before it looks up the encoding itself.
        """
        self._encoding = encoding or ""
        refusal = xml_encoding.refusal(self._encoding) if encoding else None
        if refusal is not None:
            raise self._bad(refusal)

    def _doctype(self, *_: object) -> None:
        raise self._bad("a DOCTYPE is not allowed: it can define entities, and exports have none")

    def _start(self, qualified: str, attributes: dict[str, str]) -> None:
        name = self._short(qualified)
        if not self._paths and name != self._shape.root:
            raise self._bad(f"the file is not {self._shape.title}")
        if len(self._paths) == MAX_DEPTH:
            raise self._bad(f"elements are nested more than {MAX_DEPTH} levels deep")
        path = f"{self._paths[-1]}/{name}" if self._paths else name
        self._paths.append(path)
        if path in self._shape.records:
            self._open_record(path)
        if self._open:
            self._read_tag(path, attributes)

    def _open_record(self, path: str) -> None:
        self._serial += 1
        inside = self._open[-1].serial if self._open else 0
        line = self._parser.CurrentLineNumber
        self._open.append(_Record(path, len(self._paths), line, self._serial, inside))

    def _read_tag(self, path: str, attributes: dict[str, str]) -> None:
        """Store the requested attributes, and start a field if this element is requested."""
        record = self._open[-1]
        wanted = self._shape.records[record.path]
        inside = path[len(record.path) + 1 :]
        for qualified, value in attributes.items():
            attribute = f"{inside}@{self._short(qualified)}"
            if attribute in wanted:
                record.fields.setdefault(attribute, value)
        if inside in wanted and self._field is None:
            self._field, self._field_depth = inside, len(self._paths)

    def _characters(self, text: str) -> None:
        if self._field is None:
            return
        self._text_size += len(text)
        if self._text_size > MAX_TEXT:
            name = self._paths[-1].rpartition("/")[2]
            raise self._bad(f"<{name}> is longer than {MAX_TEXT:,} characters")
        self._text.append(text)

    def _end(self, _: str) -> None:
        depth = len(self._paths)
        if self._field is not None and depth == self._field_depth:
            self._open[-1].fields.setdefault(self._field, "".join(self._text))
            self._field, self._text, self._text_size = None, [], 0
        if self._open and depth == self._open[-1].depth:
            record = self._open.pop()
            self._done.append(
                Element(record.path, record.line, record.serial, record.inside, record.fields)
            )
        self._paths.pop()
