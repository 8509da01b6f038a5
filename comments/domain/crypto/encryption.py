"""Encryption of texts: mail addresses at rest, and links in mail.

This module owns the format of encrypted texts: Fernet (AES-128-CBC and HMAC-SHA256, with the time
of encryption). The key is derived from the service's secret for one purpose. A text that was
encrypted for one purpose cannot be decrypted for any other purpose.

Renaming a purpose makes stored texts and the links in delivered mail unreadable. A new secret has
the same effect unless the old secret is kept (`secret_rotation`).
"""

import base64
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from comments import errors
from comments.domain.crypto import keyed_hashes, secret_rotation

if TYPE_CHECKING:
    from cryptography import fernet


def seal(text: str, purpose: str, secret: str, *, now: datetime) -> str:
    """Encrypt a text for a purpose. The result is ASCII and safe in URLs."""
    return _fernet(purpose, secret).encrypt_at_time(text.encode(), int(now.timestamp())).decode()


def unseal(
    sealed: str, purpose: str, secret: str, *, now: datetime, term: timedelta | None = None
) -> str:
    """Decrypt a text.

    Raises:
        errors.BadLink: the text was not encrypted by this service for this purpose, or is older
            than `term`.
    """
    for key in secret_rotation.accepted_secrets(secret):
        opened = _open(sealed, purpose, key)
        if opened is not None:
            break
    else:
        raise errors.BadLink
    text, made = opened
    if term is not None and now.timestamp() - made > term.total_seconds():
        raise errors.BadLink("link-expired")
    return text


def reseal(sealed: str, purpose: str, secret: str) -> str:
    """Re-encrypt a text with the current secret; return "" if that is unnecessary or impossible.

    The result keeps the time of the original encryption.
    """
    current, *before = secret_rotation.accepted_secrets(secret)
    if not sealed or _open(sealed, purpose, current) is not None:
        return ""
    opened = next(filter(None, (_open(sealed, purpose, key) for key in before)), None)
    if opened is None:
        return ""
    text, made = opened
    return _fernet(purpose, current).encrypt_at_time(text.encode(), made).decode()


def _open(sealed: str, purpose: str, secret: str) -> tuple[str, int] | None:
    """Return the text and its time in seconds since 1970; None if the text cannot be decrypted."""
    from cryptography.fernet import InvalidToken  # noqa: PLC0415 - see `_fernet`

    opener = _fernet(purpose, secret)
    try:
        text = opener.decrypt(sealed.encode("ascii")).decode()
        return text, opener.extract_timestamp(sealed.encode("ascii"))
    except (InvalidToken, UnicodeError):
        return None


def _fernet(purpose: str, secret: str) -> "fernet.Fernet":
    # This import is local because few requests need the library and its import would slow every
    # cold start.
    from cryptography.fernet import Fernet  # noqa: PLC0415

    return Fernet(base64.urlsafe_b64encode(keyed_hashes.keyed_digest(secret, "sealed", purpose)))
