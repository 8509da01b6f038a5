"""Read the requested records from an XML file as a stream, in bounded memory.

The file may be compressed with gzip. This module owns the protection against hostile XML. A file
with a DOCTYPE is refused, so there are no entities to expand or fetch. Depth, text and tokens are
limited, and elements that were not requested are dropped. Elements with the same name in different
namespaces are different elements. A file does not have to declare the usual prefixes of its format.

Parsing is strict, because misreading half of a discussion is worse than refusing the file with a
line number. A fault is corrected only if its meaning is certain (`xml_repairs`), and each
correction is reported.
"""

import codecs
import dataclasses
import functools
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from xml.parsers import expat

import msgspec

from comments import errors
from comments.transfer import import_source
from comments.transfer.parsing import html_references, source_files, stray_bytes, xml_repairs

# The maximum number of nested elements. Real exports nest about six elements.
MAX_DEPTH = 100
# The maximum number of characters in one field. Other code checks the limits for stored comments.
MAX_TEXT = 1_000_000
# The maximum number of bytes in one tag, comment or processing instruction; the parser buffers each
# of them as a whole.
MAX_TOKEN = 1 << 20
_CHUNK = 1 << 16
_MOST_NAMES = 1_000  # Maximum number of element names whose short names are cached.
_XMLNS = "xmlns"
# Advice for errors whose message does not say what to do.
_ADVICE = {
    expat.errors.XML_ERROR_SYNTAX: "the file is not XML",
    expat.errors.XML_ERROR_TAG_MISMATCH: (
        "close each element before the one around it, and put HTML into a CDATA section"
    ),
    expat.errors.XML_ERROR_DUPLICATE_ATTRIBUTE: "remove one of them",
    expat.errors.XML_ERROR_INVALID_TOKEN: (
        "write < in a text as &lt;, and put quotes around the values of attributes"
    ),
}
_CUT_OFF = "the file ends too early. Download or export it again"
# Errors at the end of an incomplete file.
_OF_CUT_OFF = {
    expat.errors.XML_ERROR_NO_ELEMENTS,
    expat.errors.XML_ERROR_UNCLOSED_TOKEN,
    expat.errors.XML_ERROR_UNCLOSED_CDATA_SECTION,
}
_DECLARATION = re.compile(r"<\?xml\s")
_ENCODING = re.compile(rb"""<\?xml\s[^<>]{0,200}?encoding\s{0,9}=\s{0,9}["']([^"'<>]{1,99})""")
_UTF_8 = "utf-8-sig"
_UTF_16 = {b"<\0": "utf-16-le", b"\0<": "utf-16-be", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
# Encodings in which ASCII bytes do not always stand for ASCII characters.
_ESCAPES = {"utf-7", "hz", "unicode-escape", "raw-unicode-escape", "punycode", "idna"}
_SHOWN = 40  # Maximum number of characters of a name in an error message.
_ADVICE_ON_ENCODING = (
    'convert the file to UTF-8 and set encoding="UTF-8" in its first line '
    '(see "Encodings" in docs/importing.md)'
)
BEFORE = "text before the XML declaration, ignored"
AFTER = "text after the end of the document, ignored"


class Element(msgspec.Struct):
    """A record in the file.

    `serial` is the record's number; `inside` is the serial of the enclosing record. `depth` is the
    number of open elements, including this one.

    The keys of `fields` are paths within the record: `author/name` is the text of an element, and
    `parent@id` is an attribute.
    """

    name: str
    line: int
    serial: int
    inside: int
    depth: int
    fields: dict[str, str]

    def text(self, path: str) -> str:
        """Return a field without surrounding white space; "" if the record has no such field."""
        return self.fields.get(path, "").strip()


@dataclasses.dataclass(frozen=True, slots=True)
class Shape:
    """The records and fields to read from files of a format.

    `name` converts a qualified name ("namespace local") to its short name, or to "" if the element
    is to be ignored. `records` maps paths of short names, starting at the root, to the requested
    fields. `prefixes` are the usual prefixes of namespaces, for files that do not declare them.
    """

    title: str
    root: str
    name: Callable[[str], str]
    records: Mapping[str, frozenset[str]]
    prefixes: Mapping[str, str] = dataclasses.field(default_factory=dict)


def read(path: Path, shape: Shape) -> Iterator[Element | import_source.Corrected]:
    """Yield each record when it ends, and the corrections made to the file."""
    encoding = _encoding(path, shape.root)
    with source_files.open_text(path, encoding) as file:
        head = file.read(_CHUNK)
        start = _start(head, shape.root)
        before = head[:start]
        line = 1 + before.count("\n")
        builder = _Builder(str(path), shape, line)
        if before.replace("\ufeff", "").strip():
            yield import_source.Corrected(1, BEFORE)
        chunk = head[start:]
        while chunk:
            # Stray bytes at the end of a chunk may continue in the next chunk.
            while stray_bytes.FOUND.match(chunk[-1]) and (more := file.read(1)):
                chunk += more
            if encoding != _UTF_8:
                _check(path, encoding, line, chunk)
            yield from builder.feed(chunk)
            line += chunk.count("\n")
            chunk = file.read(_CHUNK)
        yield from builder.feed("", is_last=True)


def _encoding(path: Path, root: str) -> str:
    """Return the encoding of a file: from its byte order mark, otherwise from its declaration."""
    with source_files.open_file(path) as file:
        head = file.read(_CHUNK)
    is_wide = head.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE))
    if head[:2] in _UTF_16 and not is_wide:
        return _UTF_16[head[:2]]
    if head.startswith(codecs.BOM_UTF8):
        return _UTF_8
    before = head.partition(f"<{root}".encode())[0]  # Later text may quote another declaration
    declared = _ENCODING.search(before)
    name = _UTF_8 if declared is None else declared[1].decode("latin-1")
    name = "utf-32" if is_wide else name
    try:
        codec = codecs.lookup(name).name
        is_plain = codec not in _ESCAPES and b"<?xml".decode(name) == "<?xml"
    except (LookupError, ValueError):
        codec, is_plain = "", False
    if not is_plain:
        reason = f'the encoding "{name[:_SHOWN]}" is not supported: {_ADVICE_ON_ENCODING}'
        raise errors.BadImport(str(path), 1, reason)
    return _UTF_8 if codec == "utf-8" else codec


def _start(head: str, root: str) -> int:
    """Return where the document begins in the first text of a file."""
    declaration, opening = _DECLARATION.search(head), head.find(f"<{root}")
    if declaration is not None and (opening < 0 or declaration.start() < opening):
        return declaration.start()
    return max(head.find("<"), 0)


def _check(path: Path, encoding: str, line: int, chunk: str) -> None:
    """Refuse bytes that are invalid in an encoding other than UTF-8."""
    stray = stray_bytes.FOUND.search(chunk)
    if stray is not None:
        line += chunk.count("\n", 0, stray.start())
        reason = f"the text is not {encoding}; {_ADVICE_ON_ENCODING}"
        raise errors.BadImport(str(path), line, reason)


class _Builder:
    """Corrects text, and converts the parser's events to records."""

    def __init__(self, file: str, shape: Shape, first_line: int) -> None:
        self._first_line = first_line
        self._file = file
        self._shape = shape
        self._scopes: list[Mapping[str, str]] = [{**shape.prefixes, "": "", "xml": "xml"}]
        self._short = functools.lru_cache(_MOST_NAMES)(shape.name)
        self._paths: list[str] = []  # Short names of the open elements, from the root
        self._open: list[Element] = []
        self._field: str | None = None
        self._field_depth = 0
        self._text: list[str] = []
        self._text_size = 0
        self._fed = 0
        self._serial = 0
        self._done: list[Element | import_source.Corrected] = []
        self._repairs = xml_repairs.XmlRepairs(file, first_line, self._done.append)
        self._is_closed = False  # Whether the root element has ended.
        self._after: str | None = None  # Text after the root element, if it is invalid.
        self._parser = self._new_parser()

    def _new_parser(self) -> expat.XMLParserType:
        parser = expat.ParserCreate("utf-8")  # Even if the file declares another encoding
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = self._doctype
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        return parser

    def feed(self, text: str, *, is_last: bool = False) -> list[Element | import_source.Corrected]:
        """Parse the next text; return the records that end in it, and its corrections."""
        data = self._repairs.feed(text, is_last=is_last)
        if self._after is not None:
            self._check_after(data)
        else:
            self._parse(data.encode(), is_last=is_last)
        done = list(self._done)
        self._done.clear()
        return done

    def _parse(self, data: bytes, *, is_last: bool) -> None:
        try:
            self._parser.Parse(data, is_last)
        except expat.ExpatError as error:
            if not self._is_closed:
                raise self._malformed_error(error, is_last=is_last) from error
            self._after = ""
            self._done.append(import_source.Corrected(self._line, AFTER))
            rest = data[max(self._parser.ErrorByteIndex - self._fed, 0) :]
            self._check_after(rest.decode(errors="replace"))
            return
        self._fed += len(data)
        if self._fed - max(self._parser.CurrentByteIndex, 0) > MAX_TOKEN + _CHUNK:
            raise self._bad(f"a tag or comment is longer than {MAX_TOKEN:,} bytes")

    def _check_after(self, text: str) -> None:
        """Refuse a second document after the first, because its comments would be lost."""
        self._after = (self._after or "") + text
        opening = f"<{self._shape.root}"
        if opening in self._after:
            raise self._bad(
                "a second document begins after the end of the first. Save each document in a "
                "file, and import the files one by one"
            )
        self._after = self._after[-len(opening) :]

    @property
    def _line(self) -> int:
        return self._parser.CurrentLineNumber + self._first_line - 1

    def _bad(self, message: str) -> errors.BadImport:
        return errors.BadImport(self._file, self._line, message)

    def _malformed_error(self, error: expat.ExpatError, *, is_last: bool) -> errors.BadImport:
        reason = expat.ErrorString(error.code)
        is_cut_off = is_last and reason in _OF_CUT_OFF
        advice = _CUT_OFF if is_cut_off else _ADVICE.get(reason, "")
        message = "; ".join(filter(None, (f"invalid XML: {reason}", advice)))
        return errors.BadImport(self._file, error.lineno + self._first_line - 1, message)

    def _doctype(self, *_: object) -> None:
        raise self._bad("a DOCTYPE is not allowed: it can define entities, and exports have none")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._scopes.append(self._scope(attributes) if attributes else self._scopes[-1])
        name = self._short(self._qualified_name(tag))
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

    def _scope(self, attributes: Mapping[str, str]) -> Mapping[str, str]:
        """Return the namespaces of all prefixes inside an element with these attributes."""
        declared = {
            name.removeprefix(_XMLNS).removeprefix(":"): value
            for name, value in attributes.items()
            if name.partition(":")[0] == _XMLNS
        }
        return {**self._scopes[-1], **declared} if declared else self._scopes[-1]

    def _qualified_name(self, name: str) -> str:
        """Return a name as "namespace local", or "" if the file does not declare its prefix.

        Names without a namespace do not change.
        """
        prefix, _, local = name.rpartition(":")
        namespace = self._scopes[-1].get(prefix)
        if namespace is None:
            return ""
        return f"{namespace} {local}" if namespace else local

    def _open_record(self, path: str) -> None:
        self._serial += 1
        inside = self._open[-1].serial if self._open else 0
        self._open.append(Element(path, self._line, self._serial, inside, len(self._paths), {}))

    def _read_tag(self, path: str, attributes: dict[str, str]) -> None:
        """Store the requested attributes, and start a field if this element is requested."""
        record = self._open[-1]
        wanted = self._shape.records[record.name]
        inside = path[len(record.name) + 1 :]
        for name, value in attributes.items():
            # An attribute without a prefix has no namespace.
            known = self._short(self._qualified_name(name) if ":" in name else name)
            attribute = f"{inside}@{known}"
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
            text, corrected = html_references.repair("".join(self._text))
            self._done.extend(import_source.Corrected(self._line, what) for what in corrected)
            self._open[-1].fields.setdefault(self._field, text)
            self._field, self._text, self._text_size = None, [], 0
        if self._open and depth == self._open[-1].depth:
            self._done.append(self._open.pop())
        self._paths.pop()
        self._scopes.pop()
        self._is_closed = not self._paths
