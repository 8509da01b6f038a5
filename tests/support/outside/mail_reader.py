"""Parse mail as leniently as the worst mail programs do, independently of the code that writes it.

The parser is based only on RFC 5322, 2045 and 2047. Like the most lenient mail programs, it decodes
encoded words anywhere (inside words, in quotes, with a language, with spaces or line ends inside,
without an end), in any charset that the words name. It then decodes the result again.
"""

import base64
import binascii
import dataclasses
import quopri
import re

_WORD = re.compile(
    r"=\s*\?\s*([\w.:-]+)(?:\*[\w-]*)?\s*\?\s*([bqBQ])\s*\?(.*?)(?:\?\s*=|$)", re.DOTALL
)
_PARTS = re.compile(rb'boundary="([^"]+)"')
_ROUNDS = 4


@dataclasses.dataclass
class Read:
    """A parsed message: headers as (name, decoded value) and parts as (type, text)."""

    headers: list[tuple[str, str]]
    parts: list[tuple[str, str]]

    @property
    def names(self) -> list[str]:
        return [name.lower() for name, _ in self.headers]

    def value(self, name: str) -> str:
        (found,) = [value for each, value in self.headers if each.lower() == name.lower()]
        return found


def read(raw: bytes) -> Read:
    """Parse a message as the most lenient mail program would."""
    head, body = raw.split(b"\r\n\r\n", 1)
    headers = _headers(head)
    mark = _PARTS.search(head)
    if mark is None:
        return Read(headers, [_part(raw)])
    pieces = body.split(b"--" + mark[1])
    assert pieces[-1].strip() == b"--", "the last boundary ends the message"
    return Read(headers, [_part(piece.removeprefix(b"\r\n")) for piece in pieces[1:-1]])


def decoded(value: str) -> str:
    """Repeatedly decode everything that may be an encoded word."""
    for _ in range(_ROUNDS):
        # White space between encoded words is not part of the text.
        value = re.sub(r"(\?=)\s+(=\?)", r"\1\2", value)
        made = _WORD.sub(_read_word, value)
        if made == value:
            break
        value = made
    return value


def _headers(head: bytes) -> list[tuple[str, str]]:
    """Return all header lines, including lines that decoding creates."""
    unfolded = re.sub(r"\r\n(?=[ \t])", "", head.decode("latin-1"))
    found: list[tuple[str, str]] = []
    for line in unfolded.split("\r\n"):
        name, _, value = line.partition(":")
        value, *more = re.split(r"[\r\n]+", decoded(value.strip()))
        found.append((name, value))
        found += [(each.partition(":")[0], each.partition(":")[2]) for each in more]
    return found


def _read_word(word: re.Match[str]) -> str:
    charset, coding, text = word.groups()
    raw = text.encode("latin-1", "replace")
    if coding in "qQ":
        raw = quopri.decodestring(raw.replace(b"_", b" "))
    else:
        try:
            raw = base64.b64decode(raw + b"=" * (-len(raw) % 4))
        except binascii.Error:
            return text
    try:
        return raw.decode(charset, "replace")
    except LookupError:
        return raw.decode("latin-1")


def _part(raw: bytes) -> tuple[str, str]:
    head, body = raw.split(b"\r\n\r\n", 1)
    fields = {name.lower(): value for name, value in _headers(head)}
    assert fields["content-transfer-encoding"] in {"quoted-printable", "7bit", "base64"}
    if fields["content-transfer-encoding"] == "quoted-printable":
        body = quopri.decodestring(body)
    if fields["content-transfer-encoding"] == "base64":
        body = base64.b64decode(body)
    return fields["content-type"].partition(";")[0], body.decode()
