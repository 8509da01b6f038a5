"""Cursors: signed positions in a listing, as given to clients.

This module owns the format of cursors. A cursor is signed with its listing's label, so a cursor
from a different thread, order or parent is refused like a forged cursor. Each listing defines its
own positions.
"""

import functools
import hashlib
from collections.abc import Sequence

from itsdangerous import BadSignature, URLSafeSerializer
from itsdangerous.signer import SigningAlgorithm

from comments import errors
from comments.domain.crypto import secret_rotation

_SIGNATURE = 20  # In bytes


def label(*parts: str) -> str:
    """Return the label that distinguishes a listing from all other listings."""
    return "\0".join(parts)


def seal(position: Sequence[str], listing: str, secret: str, *, shape: int = 0) -> str:
    """Sign and encode a position in a listing. `shape` is the shape of the position's tree."""
    signer = _serializer(secret_rotation.accepted_secrets(secret))
    # The first shape is left out, so cursors made before the first change of a scheme stay valid.
    return str(signer.dumps([*position, *([shape] if shape else [])], salt=_salt(listing)))


def unseal(cursor: str, listing: str, secret: str) -> list[str]:
    """Verify and decode a position in a listing.

    Raises:
        errors.BadCursor: the cursor belongs to a different listing, or this service did not sign
            it.
    """
    try:
        position: list[str] = _serializer(secret_rotation.accepted_secrets(secret)).loads(
            cursor, salt=_salt(listing)
        )
    except (BadSignature, UnicodeError) as error:
        raise errors.BadCursor from error
    return position


def unseal_with_shape(cursor: str, listing: str, secret: str) -> tuple[list[str], int]:
    """Verify and decode a position in a tree, and the shape of that tree.

    Raises:
        errors.BadCursor: see `unseal`.
    """
    position: list[str | int] = [*unseal(cursor, listing, secret)]
    last = position[-1] if position else ""
    shape = last if isinstance(last, int) else 0
    return [part for part in position if isinstance(part, str)], shape


class Keyed(SigningAlgorithm):
    """The signing algorithm: keyed BLAKE2b (RFC 7693), which needs no HMAC around it."""

    def get_signature(self, key: bytes, value: bytes) -> bytes:
        return hashlib.blake2b(value, key=key, digest_size=_SIGNATURE).digest()


@functools.lru_cache(maxsize=4)
def _serializer(accepted: tuple[str, ...]) -> URLSafeSerializer:
    return URLSafeSerializer(
        list(accepted[::-1]),  # The library expects the oldest secret first.
        signer_kwargs={"digest_method": hashlib.blake2b, "algorithm": Keyed()},
    )


def _salt(listing: str) -> str:
    return f"cursor\0{listing}"
