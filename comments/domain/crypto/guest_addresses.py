"""Mail addresses that people give with a comment, as they are stored: sealed.

Nobody is sent mail at such an address. It is kept for a term (`retention`) for Akismet, where a
site asks that, and for its owner, who may ask what is held (`personal_data`). Anyone who reads the
data files without the service's secret learns no address.

    stored    a seal (`sealed`); "" for none; what holds an "@" was stored by an older release
"""

from datetime import datetime

from comments import errors
from comments.domain.crypto import encryption

_PURPOSE = "guest address"


def sealed_address(address: str, secret: str, *, now: datetime) -> str:
    """An address as it is stored."""
    return encryption.seal(address, _PURPOSE, secret, now=now) if address else ""


def address(stored: str, secret: str, *, now: datetime) -> str:
    """The address that is stored; "" for none, and where the secret is not the one of then."""
    if not stored or is_clear(stored):
        return stored
    try:
        return encryption.unseal(stored, _PURPOSE, secret, now=now)
    except errors.BadLink:
        return ""


def is_clear(stored: str) -> bool:
    """Whether an older release stored the address as it was given. A seal holds no "@"."""
    return "@" in stored
