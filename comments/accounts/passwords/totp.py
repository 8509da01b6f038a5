"""Check authenticator codes: six digits for each half minute (RFC 6238, SHA-1).

To accept each code only once, this module must know the half minute of the code. Libraries report
only whether a code is valid, so this module uses no library.
"""

import base64
import hmac
import re
import secrets
from datetime import datetime
from urllib.parse import quote, urlencode

from comments import errors

STEP = 30  # In seconds
_DIGITS = 6
_SECRET_TEXT = re.compile("[A-Z2-7]{32}")
_SECRET = 20  # In bytes: the length of SHA-1 (RFC 4226, section 4).
# The number of steps by which the authenticator's clock may be off.
_LEEWAY = (0, -1, 1)


def secret() -> str:
    """Make a secret in the format that authenticators accept."""
    return base64.b32encode(secrets.token_bytes(_SECRET)).decode()


def check_secret(key: str) -> str:
    """Check a secret that a form submitted.

    Raises:
        errors.BadInput: the text does not have the format of a secret.
    """
    if not _SECRET_TEXT.fullmatch(key):
        raise errors.BadInput("key", "bad-totp-secret")
    return key


def code(key: str, step: int) -> str:
    """Return the code for a step. Steps are numbered from the beginning of 1970."""
    digest = hmac.digest(base64.b32decode(key), step.to_bytes(8), "sha1")
    offset = digest[-1] & 0xF
    number = int.from_bytes(digest[offset : offset + 4]) & 0x7FFF_FFFF
    return f"{number % 10**_DIGITS:0{_DIGITS}d}"


def step_of(key: str, given: str, *, now: datetime, after: int) -> int | None:
    """Return the step of a currently valid code whose step is later than `after`, or None."""
    current = int(now.timestamp()) // STEP
    plain = given.replace(" ", "").encode()
    for step in (current + drift for drift in _LEEWAY):
        if step > after and hmac.compare_digest(code(key, step).encode(), plain):
            return step
    return None


def check_first_code(key: str, given: str, *, now: datetime) -> int:
    """Check the first code of a new authenticator and return its step.

    Raises:
        errors.BadInput: the code is wrong.
    """
    step = step_of(check_secret(key), given, now=now, after=0)
    if step is None:
        raise errors.BadInput("code", "wrong-totp-code")
    return step


def address(key: str, *, service: str, login: str) -> str:
    """Return the `otpauth` address (a link or QR code) that gives an authenticator its secret."""
    query = urlencode({"secret": key, "issuer": service}, quote_via=quote)
    return f"otpauth://totp/{quote(service)}:{quote(login)}?{query}"
