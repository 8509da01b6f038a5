"""Correct common faults of XML exports before the parser reads them, as a stream of bytes.

- Text or blank lines before the XML declaration are dropped: warnings of PHP, a second byte order
  mark.
- Other names of UTF-8 (`utf8`) are replaced.
- Stray bytes of a single-byte encoding are read as Windows-1252 (`stray_bytes`).
- Control characters, which XML does not allow, are removed.
- `]]>` in a text is kept as text, although the exporter did not escape it.
- A bare `&` is kept as text, and entities of HTML (`&nbsp;`) become their characters. References
  that XML does not allow (`&#8;`) are kept as text too; `xml_reader` corrects them in fields.

Only files in UTF-8 are corrected, apart from what is before the XML declaration.

Invariants:

1. The parser reads from a corrected well-formed file (without a DOCTYPE) what it would read from
   the file itself.
2. Lines keep their numbers, counted from `first_line`.
3. The corrections do not depend on how the file is divided into chunks. At most `_LOOKAHEAD` bytes
   and a chunk are kept.
"""

import codecs
import html.entities
import re
import sys
from collections.abc import Iterator

from comments import errors
from comments.jobs.importers import import_source
from comments.jobs.importers.parsing import stray_bytes, xml_encoding

# The first bytes of a file, in which the XML declaration is searched.
_HEAD = 1 << 16
# The maximum number of bytes after `]]>` in which the end of the text is searched.
_LOOKAHEAD = 1 << 20
# The bytes that are kept before a CDATA section, to know the element that contains it.
_KEPT = 512
_OPEN, _CLOSE, _COMMENT_END = b"<![CDATA[", b"]]>", b"-->"
_LONGEST_REFERENCE = 40  # Bytes of `&name;`.

_DECLARATION = re.compile(rb"<\?xml\s")
_ENCODING = re.compile(rb"""<\?xml\s[^<>]{0,200}?encoding\s{0,9}=\s{0,9}["']([^"'<>]{1,99})""")
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_TAG_NAME = re.compile(rb"<([^\s<>/!?]{1,200})")
_OPENING = re.compile(rb"<!\[CDATA\[|<!--")
_UNESCAPED = re.compile(
    rb"\]\]>|&#(?:x([0-9A-Fa-f]{1,6})|([0-9]{1,7}));"
    rb"|&(?!(?:amp|lt|gt|quot|apos);)(?:([A-Za-z][A-Za-z0-9]{1,31});)?"
)
_ALLOWED = re.compile("[\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

BEFORE = "text before the XML declaration, ignored"
BLANK = "blanks or byte order marks before the XML declaration, ignored"
NAMED = "a nonstandard name of UTF-8 in the XML declaration, read as UTF-8"
CONTROL = "control characters, which XML does not allow, removed"
BRACKETS = '"]]>" that was not escaped, read as text'
ENTITIES = "HTML entities that XML does not define (such as &nbsp;), read as characters"
AMPERSANDS = '"&" that was not escaped, read as text'


class XmlRepairs:
    """The corrections of one file, whose root element is called `root`."""

    def __init__(self, file: str, root: str) -> None:
        self.first_line = 1
        self._file = file
        self._root = b"<" + root.encode()
        self._head: bytes | None = b""
        self.is_utf_8 = True
        self._corrected: list[import_source.Corrected] = []
        self._text = _TextRepairs(file, self._corrected)
        self._sections = _SectionRepairs(self._corrected)

    def feed(self, chunk: bytes, *, is_last: bool = False) -> bytes:
        """Return the corrected next bytes; some bytes are kept until a later call."""
        if self._head is not None:
            self._head += chunk
            if len(self._head) < _HEAD and not is_last:
                return b""
            chunk, self._head = self._begun(self._head), None
        if not self.is_utf_8:
            return chunk
        return self._sections.feed(self._text.feed(chunk, is_last=is_last), is_last=is_last)

    def corrections(self) -> Iterator[import_source.Corrected]:
        """Return the corrections since the last call."""
        found = list(self._corrected)
        self._corrected.clear()
        return iter(found)

    def _begun(self, head: bytes) -> bytes:
        """Drop what is before the document, and find its encoding."""
        if head.startswith(_UTF_16) or b"\0" in head[:4]:
            self.is_utf_8 = False
            return head
        start = self._start(head)
        before, kept = head[:start], head[start:]
        blank = before.removeprefix(codecs.BOM_UTF8)
        if blank:
            is_blank = not blank.replace(codecs.BOM_UTF8, b"").strip()
            if not is_blank or _DECLARATION.match(kept) or codecs.BOM_UTF8 in blank:
                self._corrected.append(import_source.Corrected(1, BLANK if is_blank else BEFORE))
        self.first_line += before.count(b"\n")
        self._text.line = self._sections.line = self.first_line
        kept = self._with_standard_name(kept)
        # The parser checks a byte order mark against the declared encoding.
        return before + kept if before == codecs.BOM_UTF8 else kept

    def _with_standard_name(self, data: bytes) -> bytes:
        """Find the declared encoding; replace other names of UTF-8, which the parser ignores."""
        declared = _ENCODING.match(data)
        if declared is None:
            return data
        name = declared[1].decode("latin-1")
        self.is_utf_8 = xml_encoding.is_utf_8(name)
        if not self.is_utf_8 or name.lower() == "utf-8":
            return data
        self._corrected.append(import_source.Corrected(self.first_line, NAMED))
        return data[: declared.start(1)] + b"UTF-8" + data[declared.end(1) :]

    def _start(self, head: bytes) -> int:
        declaration, root = _DECLARATION.search(head), head.find(self._root)
        if declaration is not None and (root < 0 or declaration.start() < root):
            return declaration.start()
        return max(head.find(b"<"), 0)


class _TextRepairs:
    """Corrects bytes that are not UTF-8, and removes control characters."""

    def __init__(self, file: str, corrected: list[import_source.Corrected]) -> None:
        self.line = 1
        self._file = file
        self._corrected = corrected
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._strays = ""

    def feed(self, chunk: bytes, *, is_last: bool) -> bytes:
        text = self._strays + self._decoder.decode(chunk, is_last)
        # Stray bytes at the end may continue in the next chunk.
        ended = len(text) if is_last else _end_without_strays(text)
        text, self._strays = text[:ended], text[ended:]
        try:
            data = text.encode()
        except UnicodeEncodeError:
            data = self._repaired(text).encode()
        found = _CONTROL.search(data)
        if found is not None:
            self._note(CONTROL, (each.start() for each in _CONTROL.finditer(data)), data)
        self.line += data.count(b"\n")
        return _CONTROL.sub(b"", data) if found is not None else data

    def _repaired(self, text: str) -> str:
        for match in stray_bytes.FOUND.finditer(text):
            line = self.line + text.count("\n", 0, match.start())
            try:
                stray_bytes.repaired(match[0])
            except ValueError as error:
                raise errors.BadImport(self._file, line, stray_bytes.REFUSAL) from error
            self._corrected.append(import_source.Corrected(line, stray_bytes.CORRECTION))
        return stray_bytes.repaired(text)[0]

    def _note(self, what: str, places: Iterator[int], data: bytes) -> None:
        line, seen = self.line, 0
        for place in places:
            line, seen = line + data.count(b"\n", seen, place), place
            self._corrected.append(import_source.Corrected(line, what))


def _end_without_strays(text: str) -> int:
    end = len(text)
    while end and stray_bytes.FOUND.match(text[end - 1]):
        end -= 1
    return end


class _SectionRepairs:
    """Escapes `]]>` and `&` in texts, as far as the exporter did not.

    In a CDATA section of an element, `]]>` ends the section if the end of the element or another
    section follows. Otherwise, it is text if another `]]>` comes before the end of the element,
    because `]]>` is not allowed outside of sections.
    """

    def __init__(self, corrected: list[import_source.Corrected]) -> None:
        self.line = 1
        self._corrected = corrected
        self._data = b""
        self._out: list[bytes] = []
        self._is_inside = False
        self._is_comment = False
        self._continues = False  # Whether the last section may continue with another one.
        self._end_tag = b""  # The end of the element that contains the section: `</name`.

    def feed(self, chunk: bytes, *, is_last: bool) -> bytes:
        self._data += chunk
        while self._step(is_last=is_last):
            pass
        out, self._out = b"".join(self._out), []
        return out

    def _step(self, *, is_last: bool) -> bool:
        """Pass on the data up to the next token; return whether there may be another one."""
        if self._is_inside:
            return self._inside(is_last=is_last)
        if self._is_comment:
            return self._comment(is_last=is_last)
        return self._outside(is_last=is_last)

    def _outside(self, *, is_last: bool) -> bool:
        opening = _OPENING.search(self._data)
        if opening is None:
            end = len(self._data) if is_last else self._whole_tokens()
            self._continues = self._continues and not self._data[:end].strip()
            self._pass(self._escaped(end), end)
            return False
        start = opening.start()
        if opening[0] == _OPEN and not (self._continues and not self._data[:start].strip()):
            tag = self._data.rfind(b"<", max(start - _KEPT, 0), start)
            name = _TAG_NAME.match(self._data, tag) if tag >= 0 else None
            self._end_tag = b"</" + name[1] if name is not None else b""
        self._is_inside = opening[0] == _OPEN
        self._is_comment = not self._is_inside
        self._continues = False
        self._pass(self._escaped(start) + opening[0], opening.end())
        return True

    def _comment(self, *, is_last: bool) -> bool:
        end = self._data.find(_COMMENT_END)
        self._is_comment = end < 0
        if end < 0:
            end = len(self._data) if is_last else max(len(self._data) - len(_COMMENT_END) + 1, 0)
        self._pass(self._data[:end], end)
        return not self._is_comment

    def _whole_tokens(self) -> int:
        """Return the end of data that is neither part of a token nor near the next section."""
        end = max(len(self._data) - _KEPT - len(_OPEN), 0)
        reference = self._data.rfind(b"&", max(end - _LONGEST_REFERENCE, 0), end)
        end = reference if reference >= 0 else end
        for _ in range(len(_CLOSE) - 1):
            end -= self._data.endswith(b"]", 0, end)
        return end

    def _inside(self, *, is_last: bool) -> bool:
        closing = self._data.find(_CLOSE)
        if closing < 0:
            end = len(self._data) if is_last else max(len(self._data) - len(_CLOSE) + 1, 0)
            self._pass(self._data[:end], end)
            return False
        is_end = self._is_end(closing + len(_CLOSE), is_last=is_last)
        if is_end is None:
            self._pass(self._data[:closing], closing)
            return False
        if not is_end:
            self._note(BRACKETS, closing)
            self._pass(self._data[:closing] + b"]]]]><![CDATA[>", closing + len(_CLOSE))
            return True
        self._pass(self._data[: closing + len(_CLOSE)], closing + len(_CLOSE))
        self._is_inside, self._continues = False, True
        return True

    def _is_end(self, place: int, *, is_last: bool) -> bool | None:
        """Return whether the `]]>` before a place ends its section; None if that is not known."""
        if not self._end_tag:
            return True
        rest = self._data[place : place + _LOOKAHEAD]
        text = rest.lstrip()
        if text.startswith((_OPEN, self._end_tag)):
            return True
        found = {token: rest.find(token) for token in (_CLOSE, _OPEN, self._end_tag)}
        first = min((at for at in found.values() if at >= 0), default=-1)
        if first < 0:
            is_known = is_last or len(rest) == _LOOKAHEAD
            return True if is_known else None
        if first != found[_CLOSE]:
            return True
        between = rest[:first]
        # The `]]>` that follows is in a comment, a processing instruction or an attribute.
        is_markup = b"<!--" in between or b"<?" in between
        return is_markup or between.rfind(b"<") > between.rfind(b">")

    def _escaped(self, end: int) -> bytes:
        """Escape the text before a place, which is outside of sections."""
        data = self._data[:end]
        return _UNESCAPED.sub(self._as_text, data) if b"&" in data or _CLOSE in data else data

    def _as_text(self, match: re.Match[bytes]) -> bytes:
        if match[0] == _CLOSE:
            self._note(BRACKETS, match.start())
            return b"]]&gt;"
        if match[1] or match[2]:
            code = int(match[1], 16) if match[1] else int(match[2])
            is_allowed = code <= sys.maxunicode and _ALLOWED.match(chr(code))
            return match[0] if is_allowed else b"&amp;" + match[0][1:]
        point = html.entities.name2codepoint.get(match[3].decode()) if match[3] else None
        self._note(AMPERSANDS if point is None else ENTITIES, match.start())
        return b"&amp;" + match[0][1:] if point is None else f"&#{point};".encode()

    def _note(self, what: str, place: int) -> None:
        line = self.line + self._data.count(b"\n", 0, place)
        self._corrected.append(import_source.Corrected(line, what))

    def _pass(self, data: bytes, consumed: int) -> None:
        self._out.append(data)
        self.line += self._data.count(b"\n", 0, consumed)
        self._data = self._data[consumed:]
