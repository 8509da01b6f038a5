"""Texts that nobody but this service reads or makes: mail addresses at rest, and links in mail.

Owns their form. A seal is Fernet (AES-128-CBC and HMAC-SHA256, with the time it was made) under a
key of its purpose alone, made of the service's secret: what was sealed for one purpose opens for no
other.

Seals are stored, and links wait in mailboxes: a change of a purpose's name makes them unreadable,
and so does a change of the secret, unless the old one is kept (`secret_rotation`).
"""

import base64
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from comments import errors
from comments.domain.crypto import keyed_hashes, secret_rotation

if TYPE_CHECKING:
    from cryptography import fernet


def seal(text: str, purpose: str, secret: str, *, now: datetime) -> str:
    """Seal a text for a purpose: ASCII that may stand in an address of a page."""
    return _fernet(purpose, secret).encrypt_at_time(text.encode(), int(now.timestamp())).decode()


def unseal(
    sealed: str, purpose: str, secret: str, *, now: datetime, term: timedelta | None = None
) -> str:
    """The text of a seal.

    Raises:
        errors.BadLink: it was not sealed here for this purpose, or longer ago than the term.
    """
    for each in secret_rotation.accepted(secret):
        found = _opened(sealed, purpose, each)
        if found is not None:
            break
    else:
        raise errors.BadLink
    text, made = found
    if term is not None and now.timestamp() - made > term.total_seconds():
        raise errors.BadLink("has expired: ask for a new one", code="link-expired")
    return text


def renewed(sealed: str, purpose: str, secret: str) -> str:
    """Return a text, sealed under the current secret; "" if it is, or if nobody can open it.

    It keeps the time at which it was sealed first.
    """
    current, *before = secret_rotation.accepted(secret)
    if not sealed or _opened(sealed, purpose, current) is not None:
        return ""
    found = next(filter(None, (_opened(sealed, purpose, each) for each in before)), None)
    if found is None:
        return ""
    text, made = found
    return _fernet(purpose, current).encrypt_at_time(text.encode(), made).decode()


def _opened(sealed: str, purpose: str, secret: str) -> tuple[str, int] | None:
    """The text of a seal and the second since 1970 it was made in; None if it is no such seal."""
    from cryptography.fernet import InvalidToken  # noqa: PLC0415 - see `_fernet`

    opener = _fernet(purpose, secret)
    try:
        text = opener.decrypt(sealed.encode("ascii")).decode()
        return text, opener.extract_timestamp(sealed.encode("ascii"))
    except (InvalidToken, UnicodeError):
        return None


def _fernet(purpose: str, secret: str) -> "fernet.Fernet":
    # Imported where it is needed: few requests are about mail, and a cold start pays for all.
    from cryptography.fernet import Fernet  # noqa: PLC0415

    return Fernet(base64.urlsafe_b64encode(_key(purpose, secret)))


def _key(purpose: str, secret: str) -> bytes:
    return keyed_hashes.keyed(secret, "sealed", purpose)
