"""Encode mail as bytes: ASCII headers, one text part and one HTML part (pure).

This module does not use `email.message`, which decodes encoded words in its input before it encodes
the values. A name could therefore add headers. Python releases also differ in which values they
refuse, and they refuse a value only when the message is serialized. This module therefore composes
the bytes itself.

A header is printable ASCII. The only line breaks in a header are those that this module inserts,
each followed by a space. This module encodes text that people wrote as encoded words (RFC 2047,
UTF-8, base64), unless the text is ASCII without `=?`. Both parts are quoted-printable. A boundary
contains a bare `=`, so no line within a part can look like a boundary.
"""

import base64
import binascii
import dataclasses
import re
from collections.abc import Sequence

from comments import errors

_LONGEST_LINE = 998  # Maximum number of characters in a line (RFC 5322).
_PLAIN = re.compile(r"[!-~]([ -~]{0,58}[!-~])?")
_ATOMS = re.compile(r"[A-Za-z0-9-]{1,63}")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_VALUE = re.compile(r"[!-~][ -~]*(\r\n [!-~][ -~]*)*")
_PIECE = 39  # Bytes of UTF-8 per encoded word, so that header lines stay below 76 characters.


@dataclasses.dataclass(frozen=True, slots=True)
class MailMessage:
    """A message from one plain address to another."""

    sender: str
    recipient: str
    raw: bytes


def text(value: str) -> str:
    """Return a text as the value of an unstructured header. Control characters become spaces."""
    value = _CONTROL.sub(" ", value).strip()
    return value if _PLAIN.fullmatch(value) and "=?" not in value else _encode(value)


def mailbox(name: str, address: str) -> str:
    """Return the value for an address header with a display name."""
    # This function encodes every name that is not an atom, because such a name would need quotes.
    return f"{name if _ATOMS.fullmatch(name) else _encode(name)} <{address}>"


def compose(headers: Sequence[tuple[str, str]], *, plain: str, rich: str, boundary: str) -> bytes:
    """Return a message with a text part and an HTML part.

    Args:
        headers: names and ASCII values; `text` makes such values.
        plain: the message as plain text.
        rich: the same message as HTML.
        boundary: the letters and digits of the boundary.

    Raises:
        errors.BadInput: a value is empty, is not ASCII, or has a line that is too long.
    """
    mark = f"=-{boundary}"
    own = [
        ("MIME-Version", "1.0"),
        ("Content-Type", f'multipart/alternative;\r\n boundary="{mark}"'),
    ]
    head = [_header(name, value) for name, value in (*headers, *own)]
    parts = [_part(kind, body) for kind, body in (("plain", plain), ("html", rich))]
    body = "".join(f"\r\n--{mark}\r\n{part}" for part in parts)
    return f"{''.join(head)}{body}\r\n--{mark}--\r\n".encode("ascii")


def _header(name: str, value: str) -> str:
    made = f"{name}: {value}"
    if not _VALUE.fullmatch(value) or max(map(len, made.split("\r\n"))) > _LONGEST_LINE:
        raise errors.BadInput(name, "bad-header")
    return f"{made}\r\n"


def _part(kind: str, body: str) -> str:
    lines = body.replace("\r\n", "\n").replace("\r", "\n")
    encoded = binascii.b2a_qp(lines.encode(errors="replace"), istext=True).decode()
    return (
        f'Content-Type: text/{kind}; charset="utf-8"\r\n'
        "Content-Transfer-Encoding: quoted-printable\r\n\r\n"
    ) + encoded.replace("\n", "\r\n")


def _encode(value: str) -> str:
    """Return a text as encoded words, each on its own line, without splitting a character."""
    pieces = [b""]
    for character in _CONTROL.sub(" ", value):
        encoded = character.encode(errors="replace")
        if len(pieces[-1]) + len(encoded) > _PIECE:
            pieces.append(b"")
        pieces[-1] += encoded
    return "\r\n ".join(f"=?utf-8?b?{base64.b64encode(piece).decode()}?=" for piece in pieces)
