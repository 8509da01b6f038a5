"""Encryption at rest of the e-mail addresses that guests enter with a comment.

The service sends no mail to these addresses. Each address is kept for a limited time (`retention`):
for Akismet, if the site uses it, and for data requests by the address's owner (`personal_data`). A
person who reads the data files without the service's secret learns no address.

    stored    encrypted (`sealed_address`), or "" for none
"""

from datetime import datetime

from comments import errors
from comments.domain.crypto import encryption

_PURPOSE = "guest address"


def sealed_address(address: str, secret: str, *, now: datetime) -> str:
    """Encrypt an address for storage."""
    return encryption.seal(address, _PURPOSE, secret, now=now) if address else ""


def address(stored: str, secret: str, *, now: datetime) -> str:
    """Return the stored address; "" if none is stored or the secret differs."""
    try:
        return encryption.unseal(stored, _PURPOSE, secret, now=now) if stored else ""
    except errors.BadLink:
        return ""
