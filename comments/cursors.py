"""Cursors as clients hold them: a position in one listing, signed.

Owns their form. A cursor is bound to its listing by the label it is signed with, so one of another
thread, order or parent is refused like a forged one. What a position is belongs to the listing.
"""

import functools
from collections.abc import Sequence

from itsdangerous import BadSignature, Serializer, URLSafeSerializer
from itsdangerous.encoding import base64_encode

from comments import errors


def label(*parts: str) -> str:
    """The label of a listing: what tells it from every other."""
    return "\0".join(parts)


def seal(position: Sequence[str], listing: str, secret: str) -> str:
    """Write a position of a listing."""
    return str(_sealer(secret).dumps(list(position), salt=_salt(listing)))


def unseal(cursor: str, listing: str, secret: str) -> list[str]:
    """Read a position of a listing back.

    Raises:
        errors.BadCursor: it is of another listing, or none of ours.
    """
    try:
        position: list[str] = _sealer(secret).loads(cursor, salt=_salt(listing))
    except (BadSignature, UnicodeError) as error:
        raise errors.BadCursor from error
    return position


class _Sealer(URLSafeSerializer):
    """Reads what the library writes, but does not try to compress a few letters itself.

    The try takes a quarter of a megabyte, and longer than all the rest of a cursor.
    """

    def dump_payload(self, obj: object) -> bytes:
        """Write a position."""
        return base64_encode(Serializer.dump_payload(self, obj))


@functools.lru_cache(maxsize=4)
def _sealer(secret: str) -> _Sealer:
    # Kept, because making one takes longer than to use it.
    return _Sealer(secret)


def _salt(listing: str) -> str:
    return f"cursor\0{listing}"
