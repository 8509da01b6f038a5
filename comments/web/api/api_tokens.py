"""Tokens of the API: with which whoever posted, or signed in, may change what is his.

    guest's   = URLSafeTimedSerializer(secret, salt "flatthread guest 1")
                ({"s": site, "g": guest id})
    account's = "a." + URLSafeTimedSerializer(secret, salt "flatthread account 1")
                ({"s": site, "a": account id, "e": the account's epoch})

One is bound to one site and good for `guest_token_seconds` seconds. It travels in `Authorization:
Bearer` only: a cookie would be sent by pages that are not the widget, a query would end up in logs.
Tokens are signed by HMAC with SHA-256. They are bytes that clients hold, so a change of salt or
shape signs everybody out. Each salt is its purpose's alone: a token made for anything else under
the same secret is not a session. Whether an account is still there, and its epoch still that one,
`comment_calls` asks the store.
"""

import hashlib
import re
from datetime import datetime, timedelta
from typing import NamedTuple, TypeVar

import itsdangerous
import msgspec

from comments.domain.crypto import secret_rotation
from comments.web.http import problems

T = TypeVar("T")

_SALT = "flatthread guest 1"
_ACCOUNT_SALT = "flatthread account 1"
_ACCOUNT = "a."
# Far above a token of ours; what is longer is not worth a signature check.
_LONGEST = 1_000
_BEARER = re.compile(r"[Bb][Ee][Aa][Rr][Ee][Rr] +([A-Za-z0-9._~+/=-]+)")


class Guest(msgspec.Struct, frozen=True):
    """Whoever holds the token: `id` is the author id of his comments on `site`."""

    site: str = msgspec.field(name="s")
    id: str = msgspec.field(name="g")


class Member(msgspec.Struct, frozen=True):
    """Whoever holds an account's token, on one site."""

    site: str = msgspec.field(name="s")
    account: str = msgspec.field(name="a")
    epoch: str = msgspec.field(name="e")


def sign_member(member: Member, *, secret: str) -> str:
    """A token for somebody with an account, dated now."""
    claims = msgspec.to_builtins(member)
    return _ACCOUNT + str(_serializer(secret, _ACCOUNT_SALT).dumps(claims))


def sign(guest: Guest, *, secret: str) -> str:
    """A token for this guest, dated now."""
    return _serializer(secret, _SALT).dumps({"s": guest.site, "g": guest.id})


class Issued(NamedTuple):
    """A token, and when it ends: in whole seconds, as its signature is dated."""

    token: str
    expires: datetime


def issue(whose: Guest | Member, *, secret: str, term: int, now: datetime) -> Issued:
    """A token for a guest or for somebody with an account, and its end."""
    expires = now.replace(microsecond=0) + timedelta(seconds=term)
    if isinstance(whose, Guest):
        return Issued(sign(whose, secret=secret), expires)
    return Issued(sign_member(whose, secret=secret), expires)


def read(authorization: str, *, secret: str, term: int) -> Guest | Member:
    """Whom an Authorization header names.

    Raises:
        errors.Unauthenticated: the header is not a Bearer token, or the token is damaged, forged,
            made for another purpose, or older than `term` seconds.
    """
    match = _BEARER.fullmatch(authorization)
    if match is None or len(authorization) > _LONGEST:
        raise problems.Unauthenticated("Authorization is not a Bearer token")
    if match[1].startswith(_ACCOUNT):
        text = match[1].removeprefix(_ACCOUNT)
        return _claims(text, Member, _serializer(secret, _ACCOUNT_SALT), term)
    guest = _claims(match[1], Guest, _serializer(secret, _SALT), term)
    if not guest.id:
        raise problems.Unauthenticated("the token names nobody")
    return guest


def _claims(
    text: str, shape: type[T], serializer: itsdangerous.URLSafeTimedSerializer, term: int
) -> T:
    try:
        return msgspec.convert(serializer.loads(text, max_age=term), shape)
    except itsdangerous.SignatureExpired as error:
        raise problems.Unauthenticated("the token has expired", code="token-expired") from error
    except (itsdangerous.BadData, msgspec.ValidationError) as error:
        raise problems.Unauthenticated("the token is not one of ours") from error


def _serializer(secret: str, salt: str) -> itsdangerous.URLSafeTimedSerializer:
    return itsdangerous.URLSafeTimedSerializer(
        list(secret_rotation.accepted(secret)[::-1]),  # oldest first, as the library wants them
        salt=salt,
        signer_kwargs={"digest_method": hashlib.sha256},
        # Tokens of older releases, which are good for a day: the library's default is SHA-1.
        fallback_signers=[{}],
    )
