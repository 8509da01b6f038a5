"""A guest's capability: the signed token with which whoever posted may change what he posted.

    token = URLSafeTimedSerializer(secret, salt "flatthread guest 1")({"s": site, "g": guest id})

It is bound to one site and good for `guest_term` seconds. It travels in `Authorization: Bearer`
only: a cookie would be sent by pages that are not the widget, a query would end up in logs.
Tokens are bytes that clients hold, so a change of salt or shape signs every guest out. The salt
is this purpose's alone: a token made for anything else under the same secret is not a session.
"""

import re
from datetime import datetime, timedelta

import itsdangerous
import msgspec

from comments.web import errors

_SALT = "flatthread guest 1"
# Far above a token of ours; what is longer is not worth a signature check.
_LONGEST = 1_000
_BEARER = re.compile(r"[Bb][Ee][Aa][Rr][Ee][Rr] +([A-Za-z0-9._~+/=-]+)")


class Guest(msgspec.Struct, frozen=True):
    """Whoever holds the token: `id` is the author id of his comments on `site`."""

    site: str = msgspec.field(name="s")
    id: str = msgspec.field(name="g")


def sign(guest: Guest, *, secret: str) -> str:
    """A token for this guest, dated now."""
    return _serializer(secret).dumps({"s": guest.site, "g": guest.id})


def expiry(now: datetime, term: int) -> datetime:
    """When a token signed now ends, in whole seconds as the signature dates it."""
    return now.replace(microsecond=0) + timedelta(seconds=term)


def read(authorization: str, *, secret: str, term: int) -> Guest:
    """The guest that an Authorization header names.

    Raises:
        errors.Unauthenticated: the header is not a Bearer token, or the token is damaged, forged,
            made for another purpose, or older than `term` seconds.
    """
    match = _BEARER.fullmatch(authorization)
    if match is None or len(authorization) > _LONGEST:
        raise errors.Unauthenticated("Authorization is not a Bearer token")
    try:
        claims = _serializer(secret).loads(match[1], max_age=term)
        guest = msgspec.convert(claims, Guest)
    except itsdangerous.SignatureExpired as error:
        raise errors.Unauthenticated("the token has expired", code="token-expired") from error
    except (itsdangerous.BadData, msgspec.ValidationError) as error:
        raise errors.Unauthenticated("the token is not one of ours") from error
    if not guest.id:
        raise errors.Unauthenticated("the token names nobody")
    return guest


def _serializer(secret: str) -> itsdangerous.URLSafeTimedSerializer:
    return itsdangerous.URLSafeTimedSerializer(secret, salt=_SALT)
