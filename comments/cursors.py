"""Cursors as clients hold them: a position in one listing, signed.

Owns their form. A cursor is bound to its listing by the label it is signed with, so one of another
thread, order or parent is refused like a forged one. What a position is belongs to the listing.
"""

import base64
import functools
import hashlib
import hmac
from collections.abc import Sequence

import msgspec
from itsdangerous import BadSignature, URLSafeSerializer

from comments import errors


def label(*parts: str) -> str:
    """The label of a listing: what tells it from every other."""
    return "\0".join(parts)


def seal(position: Sequence[str], listing: str, secret: str) -> str:
    """Write a position of a listing, as `URLSafeSerializer` reads it.

    Its own way takes many times as long, for it tries to compress a few letters, too, and most
    pages that are made have a cursor.
    """
    made = _coded(msgspec.json.encode(position))
    key = hashlib.sha1(f"{_salt(listing)}signer{secret}".encode()).digest()  # noqa: S324 - as there
    return (made + b"." + _coded(hmac.digest(key, made, "sha1"))).decode()


def unseal(cursor: str, listing: str, secret: str) -> list[str]:
    """Read a position of a listing back.

    Raises:
        errors.BadCursor: it is of another listing, or none of ours.
    """
    try:
        position: list[str] = _reader(secret).loads(cursor, salt=_salt(listing))
    except (BadSignature, UnicodeError) as error:
        raise errors.BadCursor from error
    return position


@functools.lru_cache(maxsize=4)
def _reader(secret: str) -> URLSafeSerializer:
    return URLSafeSerializer(secret)


def _coded(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def _salt(listing: str) -> str:
    return f"cursor\0{listing}"
