"""Correct common faults in the text of XML exports, as a stream, before the parser reads it.

- Stray bytes of a single-byte encoding are read as Windows-1252 (`stray_bytes`).
- Control characters, which XML does not allow, are removed.
- `]]>` in a text is kept as text, although the exporter did not escape it.
- A bare `&` is kept as text, and entities of HTML (`&nbsp;`) become their characters. References
  that XML does not allow (`&#8;`) are also kept as text; `xml_reader` corrects them in fields.

A library that recovers from errors, such as libxml2, would instead drop what it cannot read. For a
section with a control character, it would drop the whole text.

If a file is already well-formed and has no DOCTYPE, the corrections do not change what the parser
reads. Line numbers do not change.
"""

import html.entities
import re
import sys
from collections.abc import Callable

from comments import errors
from comments.transfer import import_source
from comments.transfer.parsing import stray_bytes

# The maximum number of characters in a CDATA section, which may contain pasted images, and in a
# comment.
MOST, _MOST_OF_COMMENT = 16_000_000, 2_000_000
_AHEAD = 1 << 16  # Number of characters after a `]]>` that are searched for another `]]>`.
_OPENING = re.compile(r"<!\[CDATA\[|<!--")
_MARKUP = re.compile(r"<!\[CDATA\[|<!--|<\?")
_CLOSING = re.compile(r"</([^\s<>]{1,200})")
_PARTIAL = re.compile(r"(?:<[^<>&]{0,10}|&[A-Za-z0-9#]{0,40}|\]{1,2})\Z")
_LONGEST_PARTIAL = 50  # Maximum number of characters.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]")
_UNESCAPED = re.compile(
    r"\]\]>|&#(?:x([0-9A-Fa-f]{1,6})|([0-9]{1,7}));"
    r"|&(?!(?:amp|lt|gt|quot|apos);)(?:([A-Za-z][A-Za-z0-9]{1,31});)?"
)
_ALLOWED = re.compile("[\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

CONTROL = "control characters, which XML does not allow, removed"
BRACKETS = '"]]>" that was not escaped, read as text'
ENTITIES = "HTML entities that XML does not define (such as &nbsp;), read as characters"
AMPERSANDS = '"&" that was not escaped, read as text'

# Returns the replacement for a match, and the name of the correction; "" if there is none.
_Replace = Callable[[re.Match[str]], tuple[str, str]]


class XmlRepairs:
    """The corrections of one file, whose text begins on `line`.

    Each correction is passed to `note`.
    """

    def __init__(
        self, file: str, line: int, note: Callable[[import_source.Corrected], None]
    ) -> None:
        self._file = file
        self._line = line  # Line of the text that is passed on next
        self._fed = line  # Line of the text that is fed next
        self._tell = note
        self._rest = ""

    def feed(self, text: str, *, is_last: bool = False) -> str:
        """Return the corrected text; its end may be held back until a later call.

        Raises:
            errors.BadImport: the text has several stray bytes in a row, or an endless section.
        """
        data, out, at = self._rest + self._plain(text), [], 0
        while (opening := _OPENING.search(data, at)) is not None:
            start, end = opening.start(), _end(data, opening, is_last=is_last)
            if end is None:
                break
            out += [self._text(data[at:start]), self._section(data[start:end])]
            at = end
        whole = len(data) if is_last else _whole(data, at)
        out.append(self._text(data[at:whole]))
        self._rest = data[whole:]
        is_comment = self._rest.startswith("<!--")
        most = _MOST_OF_COMMENT if is_comment else MOST
        if len(self._rest) > most:
            what = "comment" if is_comment else "CDATA section"
            message = f"a {what} is longer than {most:,} characters"
            raise errors.BadImport(self._file, self._line, message)
        return "".join(out)

    def _plain(self, text: str) -> str:
        """Return text without stray bytes and control characters."""
        for pattern, replace in ((stray_bytes.FOUND, self._decode), (_CONTROL, _remove)):
            text = self._replace(pattern, replace, text, self._fed)
        self._fed += text.count("\n")
        return text

    def _section(self, text: str) -> str:
        body, line = text.removesuffix("]]>"), self._line
        self._line += text.count("\n")
        if "]]>" not in body or text.startswith("<!--"):
            return text
        line += body.count("\n", 0, body.index("]]>"))
        self._tell(import_source.Corrected(line, BRACKETS))
        return body.replace("]]>", "]]]]><![CDATA[>") + "]]>"

    def _text(self, text: str) -> str:
        line = self._line
        self._line += text.count("\n")
        if "&" in text or "]]>" in text:
            return self._replace(_UNESCAPED, _escape, text, line)
        return text

    def _replace(self, pattern: re.Pattern[str], replace: _Replace, text: str, line: int) -> str:
        """Replace each match in a text that begins on this line, and note the corrections."""
        place = 0

        def replacement(match: re.Match[str]) -> str:
            nonlocal line, place
            new_text, what = replace(match)
            if what:
                line, place = line + text.count("\n", place, match.start()), match.start()
                self._tell(import_source.Corrected(line, what))
            return new_text

        return pattern.sub(replacement, text) if pattern.search(text) else text

    def _decode(self, match: re.Match[str]) -> tuple[str, str]:
        try:
            return stray_bytes.repair(match[0])[0], stray_bytes.CORRECTION
        except ValueError as error:
            line = self._fed + match.string.count("\n", 0, match.start())
            raise errors.BadImport(self._file, line, stray_bytes.REFUSAL) from error


def _remove(_: re.Match[str]) -> tuple[str, str]:
    return "", CONTROL


def _escape(match: re.Match[str]) -> tuple[str, str]:
    if match[0] == "]]>":
        return "]]&gt;", BRACKETS
    if match[1] or match[2]:
        code = int(match[1], 16) if match[1] else int(match[2])
        is_allowed = code <= sys.maxunicode and _ALLOWED.match(chr(code))
        return (match[0] if is_allowed else f"&amp;{match[0][1:]}"), ""
    point = html.entities.name2codepoint.get(match[3]) if match[3] else None
    if point is None:
        return f"&amp;{match[0][1:]}", AMPERSANDS
    return f"&#{point};", ENTITIES


def _end(data: str, opening: re.Match[str], *, is_last: bool) -> int | None:
    """Return the end of a section or comment; None if the end is not known yet.

    If a `]]>` is followed by another one, the first does not end the section, because `]]>` is not
    allowed outside of sections. There are two exceptions: the first `]]>` ends the section if the
    second one belongs to other markup, or to a later element of the same name.
    """
    is_comment = opening[0] == "<!--"
    end = data.find("-->" if is_comment else "]]>", opening.end())
    while end >= 0 and not is_comment:
        at = end + len("]]>")
        end = data.find("]]>", at, at + _AHEAD)
        if end < 0 and not is_last and len(data) < at + _AHEAD:
            return at if _OPENING.search(data, at) else None
        between = data[at:end]
        closing = _CLOSING.match(between.lstrip())
        is_later = closing is not None and f"<{closing[1]}" in between
        is_markup = _MARKUP.search(between) or between.rfind("<") > between.rfind(">")
        if end < 0 or is_later or is_markup:
            return at
    return end + len("-->") if end >= 0 else None


def _whole(data: str, at: int) -> int:
    """Return the end of the text that precedes an open section or an incomplete token."""
    opening = _OPENING.search(data, at)
    if opening is None:
        opening = _PARTIAL.search(data, max(at, len(data) - _LONGEST_PARTIAL))
    return len(data) if opening is None else opening.start()
