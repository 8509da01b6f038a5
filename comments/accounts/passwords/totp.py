"""Codes of an authenticator: six digits of the current half minute (RFC 6238, SHA-1).

Twenty lines rather than a library: which half minute a code is of has to be known, so that no code
is good twice, and the libraries only say whether it is right.
"""

import base64
import hmac
import re
import secrets
from datetime import datetime
from urllib.parse import quote, urlencode

from comments import errors

STEP = 30  # seconds
_DIGITS = 6
_SECRET_TEXT = re.compile("[A-Z2-7]{32}")
_SECRET = 20  # bytes, the length of SHA-1 (RFC 4226, section 4)
# A clock may be half a minute off, either way.
_LEEWAY = (0, -1, 1)


def secret() -> str:
    """A new secret, as authenticators read it."""
    return base64.b32encode(secrets.token_bytes(_SECRET)).decode()


def checked(key: str) -> str:
    """A secret that was shown on a page and came back.

    Raises:
        errors.BadInput: it is none that `secret` made.
    """
    if not _SECRET_TEXT.fullmatch(key):
        raise errors.BadInput("key", "bad-totp-secret")
    return key


def code(key: str, step: int) -> str:
    """The code of a step; steps count from 1970."""
    digest = hmac.digest(base64.b32decode(key), step.to_bytes(8), "sha1")
    offset = digest[-1] & 0xF
    number = int.from_bytes(digest[offset : offset + 4]) & 0x7FFF_FFFF
    return f"{number % 10**_DIGITS:0{_DIGITS}d}"


def step_of(key: str, given: str, *, now: datetime, after: int) -> int | None:
    """The step that a code is of, if it is right now and later than the last one that was used."""
    current = int(now.timestamp()) // STEP
    plain = given.replace(" ", "").encode()
    for step in (current + each for each in _LEEWAY):
        if step > after and hmac.compare_digest(code(key, step).encode(), plain):
            return step
    return None


def shown(key: str, given: str, *, now: datetime) -> int:
    """The step of the code that an authenticator shows which was just given its secret.

    Raises:
        errors.BadInput: it shows another one.
    """
    step = step_of(checked(key), given, now=now, after=0)
    if step is None:
        raise errors.BadInput("code", "wrong-totp-code")
    return step


def address(key: str, *, service: str, login: str) -> str:
    """What an authenticator reads, from a link or a picture."""
    query = urlencode({"secret": key, "issuer": service}, quote_via=quote)
    return f"otpauth://totp/{quote(service)}:{quote(login)}?{query}"
