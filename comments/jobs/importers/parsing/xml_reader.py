"""Read the requested records from an XML file as a stream, in bounded memory.

The file may be compressed with gzip. This module owns the protection against hostile XML. A file
with a DOCTYPE is refused, so there are no entities to expand or fetch. Depth, text and tokens are
limited, and elements that were not requested are dropped. The declared encoding is checked first
(`xml_encoding`). Namespaces are resolved from the file's declarations (`xml_namespaces`): elements
with the same name in different namespaces are different elements.

Parsing is strict, because misreading half of a discussion is worse than refusing the file with a
line number. Only faults whose meaning is plain are corrected (`xml_repairs`), and each correction
is reported.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from xml.parsers import expat

import msgspec

from comments import errors
from comments.jobs.importers import import_source
from comments.jobs.importers.parsing import (
    html_references,
    source_files,
    xml_encoding,
    xml_namespaces,
    xml_repairs,
)

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
# Advice for errors whose text does not say how to correct them.
_ADVICE = {
    expat.errors.codes[expat.errors.XML_ERROR_SYNTAX]: "the file is not XML",
    expat.errors.codes[expat.errors.XML_ERROR_TAG_MISMATCH]: (
        "close each element before the one around it, and put HTML into a CDATA section"
    ),
    expat.errors.codes[expat.errors.XML_ERROR_DUPLICATE_ATTRIBUTE]: "remove one of them",
    expat.errors.codes[expat.errors.XML_ERROR_BAD_CHAR_REF]: "remove the reference",
}
# Errors at the end of a file that is incomplete.
_CUT_OFF = {
    expat.errors.codes[expat.errors.XML_ERROR_NO_ELEMENTS],
    expat.errors.codes[expat.errors.XML_ERROR_UNCLOSED_TOKEN],
    expat.errors.codes[expat.errors.XML_ERROR_UNCLOSED_CDATA_SECTION],
    expat.errors.codes[expat.errors.XML_ERROR_PARTIAL_CHAR],
}
AFTER = "text after the end of the document, ignored"


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
    `prefixes` are the usual prefixes of namespaces, for files that do not declare them.
    """

    title: str
    root: str
    name: Callable[[str], str]
    records: Mapping[str, frozenset[str]]
    prefixes: Mapping[str, str] = dataclasses.field(default_factory=dict)


def read(path: Path, shape: Shape) -> Iterator[Element | import_source.Corrected]:
    """Yield each record in a file when the record ends, and the corrections of the file."""
    repairs = xml_repairs.XmlRepairs(str(path), shape.root)
    builder = _Builder(str(path), shape)
    with source_files.opened(path) as file:
        is_last = False
        while not is_last:
            chunk = file.read(_CHUNK)
            is_last = not chunk
            data = repairs.feed(chunk, is_last=is_last)
            yield from repairs.corrections()
            builder.first_line, builder.is_utf_8 = repairs.first_line, repairs.is_utf_8
            yield from builder.feed(data, is_last=is_last)


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
        self.first_line = 1
        self.is_utf_8 = False  # Whether all bytes are known to be valid.
        self._file = file
        self._shape = shape
        self._encoding = ""
        self._namespaces = xml_namespaces.Namespaces(shape.prefixes)
        self._short = functools.lru_cache(_MOST_NAMES)(shape.name)
        self._paths: list[str] = []  # Of the open elements, as short names from the root.
        self._open: list[_Record] = []
        self._field: str | None = None
        self._field_depth = 0
        self._text: list[str] = []
        self._text_size = 0
        self._fed = 0
        self._serial = 0
        self._done: list[Element | import_source.Corrected] = []
        self._is_closed = False  # Whether the root element has ended.
        self._is_over = False  # Whether something else follows it.
        self._after = b""  # The last bytes of what follows.
        self._parser = self._new_parser()

    def _new_parser(self) -> expat.XMLParserType:
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.XmlDeclHandler = self._declaration
        parser.StartDoctypeDeclHandler = self._doctype
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        return parser

    def feed(
        self, chunk: bytes, *, is_last: bool = False
    ) -> Iterator[Element | import_source.Corrected]:
        """Parse the next bytes; return the records that end in them."""
        if self._is_over:
            self._check_after(chunk)
            return iter(())
        try:
            self._parser.Parse(chunk, is_last)
        except expat.ExpatError as error:
            if not self._is_closed:
                raise self._malformed(error, is_last=is_last) from error
            self._is_over = True
            self._done.append(import_source.Corrected(self._line, AFTER))
            self._check_after(chunk[max(self._parser.ErrorByteIndex - self._fed, 0) :])
        self._fed += len(chunk)
        if self._fed - max(self._parser.CurrentByteIndex, 0) > MAX_TOKEN + _CHUNK and (
            not self._is_over
        ):
            raise self._bad(f"a tag or comment is longer than {MAX_TOKEN:,} bytes")
        done, self._done = self._done, []
        return iter(done)

    def _check_after(self, chunk: bytes) -> None:
        """Refuse a second document after the first, because its comments would be lost."""
        opening = b"<" + self._shape.root.encode()
        self._after += chunk.replace(b"\0", b"")  # UTF-16
        if opening in self._after:
            raise self._bad(
                "a second document begins after the end of the first. Save each document in a "
                "file, and import the files one by one"
            )
        self._after = self._after[-len(opening) :]

    @property
    def _line(self) -> int:
        return self._parser.CurrentLineNumber + self.first_line - 1

    def _bad(self, message: str) -> errors.BadImport:
        return errors.BadImport(self._file, self._line, message)

    def _malformed(self, error: expat.ExpatError, *, is_last: bool) -> errors.BadImport:
        reason = f"invalid XML: {expat.ErrorString(error.code)}"
        if is_last and error.code in _CUT_OFF:
            reason += "; the file ends too early. Download or export it again"
        elif error.code in _NOT_THE_ENCODING and self.is_utf_8:
            reason += "; write < in a text as &lt;, and put quotes around the values of attributes"
        elif error.code in _NOT_THE_ENCODING:
            reason += f"; {xml_encoding.advice(self._encoding)}"
        elif error.code in _ADVICE:
            reason += f"; {_ADVICE[error.code]}"
        return errors.BadImport(self._file, error.lineno + self.first_line - 1, reason)

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

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._namespaces.enter(attributes)
        name = self._short(self._qualified(tag))
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

    def _qualified(self, name: str, *, is_attribute: bool = False) -> str:
        """Return a name with its namespace, or "" if the file does not declare its prefix."""
        found, fault = self._namespaces.qualified(name, is_attribute=is_attribute)
        if fault:
            self._done.append(import_source.Corrected(self._line, fault))
        return found

    def _open_record(self, path: str) -> None:
        self._serial += 1
        inside = self._open[-1].serial if self._open else 0
        self._open.append(_Record(path, len(self._paths), self._line, self._serial, inside))

    def _read_tag(self, path: str, attributes: dict[str, str]) -> None:
        """Store the requested attributes, and start a field if this element is requested."""
        record = self._open[-1]
        wanted = self._shape.records[record.path]
        inside = path[len(record.path) + 1 :]
        for name, value in attributes.items():
            attribute = f"{inside}@{self._short(self._qualified(name, is_attribute=True))}"
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
            text, corrected = html_references.repaired("".join(self._text))
            self._done.extend(import_source.Corrected(self._line, each) for each in corrected)
            self._open[-1].fields.setdefault(self._field, text)
            self._field, self._text, self._text_size = None, [], 0
        if self._open and depth == self._open[-1].depth:
            record = self._open.pop()
            self._done.append(
                Element(record.path, record.line, record.serial, record.inside, record.fields)
            )
        self._paths.pop()
        self._namespaces.leave()
        self._is_closed = not self._paths
