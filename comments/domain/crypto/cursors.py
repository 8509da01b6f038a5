"""Cursors as clients hold them: a position in one listing, signed.

Owns their form. A cursor is bound to its listing by the label it is signed with, so one of another
thread, order or parent is refused like a forged one. What a position is belongs to the listing.
"""

import base64
import functools
import hashlib
from collections.abc import Sequence

import msgspec
from itsdangerous import BadSignature, URLSafeSerializer
from itsdangerous.signer import SigningAlgorithm

from comments import errors
from comments.domain.crypto import secret_rotation

_SIGNATURE = 20  # bytes


def label(*parts: str) -> str:
    """The label of a listing: what tells it from every other."""
    return "\0".join(parts)


def seal(position: Sequence[str], listing: str, secret: str) -> str:
    """Write a position of a listing, as `URLSafeSerializer` reads it.

    Its own way takes many times as long, for it tries to compress a few letters, too, and most
    pages that are made have a cursor.
    """
    made = _coded(msgspec.json.encode(position))
    key = hashlib.blake2b(f"{_salt(listing)}signer{secret}".encode()).digest()
    return (made + b"." + _coded(_signature(key, made))).decode()


def unseal(cursor: str, listing: str, secret: str) -> list[str]:
    """Read a position of a listing back.

    Raises:
        errors.BadCursor: it is of another listing, or none of ours.
    """
    try:
        position: list[str] = _reader(secret_rotation.accepted(secret)).loads(
            cursor, salt=_salt(listing)
        )
    except (BadSignature, UnicodeError) as error:
        raise errors.BadCursor from error
    return position


class _Keyed(SigningAlgorithm):
    """Keyed BLAKE2b (RFC 7693), which needs no HMAC around it.

    OpenSSL's hashes take several times as long where, as between two pages that are made, they are
    in none of the processor's caches.
    """

    def get_signature(self, key: bytes, value: bytes) -> bytes:
        return _signature(key, value)


def _signature(key: bytes, value: bytes) -> bytes:
    return hashlib.blake2b(value, key=key, digest_size=_SIGNATURE).digest()


@functools.lru_cache(maxsize=4)
def _reader(accepted: tuple[str, ...]) -> URLSafeSerializer:
    # The fallback reads what pages that are open since before an update hold: HMAC with SHA-1.
    return URLSafeSerializer(
        list(accepted[::-1]),  # oldest first, as the library wants them
        signer_kwargs={"digest_method": hashlib.blake2b, "algorithm": _Keyed()},
        fallback_signers=[{}],
    )


def _coded(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def _salt(listing: str) -> str:
    return f"cursor\0{listing}"
