"""Cursors as clients hold them: a position in one listing, signed.

Owns their form. A cursor is bound to its listing by the label it is signed with, so one of another
thread, order or parent is refused like a forged one. What a position is belongs to the listing.
"""

from collections.abc import Sequence

from itsdangerous import BadSignature, URLSafeSerializer

from comments import errors


def label(*parts: str) -> str:
    """The label of a listing: what tells it from every other."""
    return "\0".join(parts)


def seal(position: Sequence[str], listing: str, secret: str) -> str:
    """Write a position of a listing."""
    return str(_sealer(listing, secret).dumps(list(position)))


def unseal(cursor: str, listing: str, secret: str) -> list[str]:
    """Read a position of a listing back.

    Raises:
        errors.BadCursor: it is of another listing, or none of ours.
    """
    try:
        position: list[str] = _sealer(listing, secret).loads(cursor)
    except (BadSignature, UnicodeError) as error:
        raise errors.BadCursor from error
    return position


def _sealer(listing: str, secret: str) -> URLSafeSerializer:
    return URLSafeSerializer(secret, salt=f"cursor\0{listing}")
