"""Keyed digests: ids and marks that reveal nothing and that only this service can make (pure).

This module owns the encoding of several texts as one input. Each text is preceded by its length, so
no two different tuples give the same bytes. The first text names the purpose, so digests for
different purposes never coincide. Comment ids are such digests, so the encoding must never change.
"""

import base64
import hmac

from comments.domain.crypto import secret_rotation

_BYTES = 16  # 128 bits


def keyed_digest(secret: str, *parts: str) -> bytes:
    """Return the keyed digest of several texts."""
    return hmac.digest(secret.encode(), join(parts), "sha256")


def every(secret: str, *parts: str) -> tuple[bytes, ...]:
    """Return the keyed digests for all accepted secrets, starting with the current secret."""
    return tuple(keyed_digest(key, *parts) for key in secret_rotation.accepted_secrets(secret))


def is_one(given: str, secret: str, *parts: str) -> bool:
    """Return whether a text is the encoding of one of these digests.

    The comparison takes constant time.
    """
    made = [text(digest) for digest in every(secret, *parts)]
    return any(hmac.compare_digest(digest.encode(), given.encode()) for digest in made)


def join(parts: tuple[str, ...]) -> bytes:
    """Encode several texts as bytes; no two tuples give the same bytes."""
    return b"".join(b"%d:%s" % (len(part), part) for part in map(str.encode, parts))


def text(digest: bytes) -> str:
    """Encode the first 128 bits of a digest, or of random bytes, as 26 letters and digits."""
    return base64.b32encode(digest[:_BYTES]).decode().rstrip("=").lower()
