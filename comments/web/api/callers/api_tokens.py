"""Issue and read API tokens, with which guests and signed-in readers change their own comments.

    guest's   = URLSafeTimedSerializer(secret, salt "flatthread guest 1")
                ({"s": site, "g": guest id})
    account's = "a." + URLSafeTimedSerializer(secret, salt "flatthread account 1")
                ({"s": site, "a": account id, "e": the account's epoch})

A token is valid for one site and for `guest_token_seconds` seconds. Clients send the token only in
the header `Authorization: Bearer`. A cookie would be sent from pages without the widget too, and a
query string would be written to logs.

Tokens are signed with HMAC-SHA-256. Clients store their tokens, so changing a salt or the format
signs everyone out. Each salt serves a single purpose, so a token that was signed with the same
secret for a different purpose is not accepted as a session. `api_callers` checks in the store that
the account still exists and has the same epoch.
"""

import functools
import hashlib
import re
from datetime import datetime, timedelta
from typing import Any, NamedTuple, TypeVar

import itsdangerous
import msgspec

from comments.domain import decoders
from comments.domain.crypto import secret_rotation
from comments.web.http import problems

T = TypeVar("T")

_SALT = "flatthread guest 1"
_ACCOUNT_SALT = "flatthread account 1"
_ACCOUNT = "a."
# Characters; real tokens are far shorter. Longer headers are refused before a signature is checked.
_LONGEST = 1_000
_BEARER = re.compile(r"[Bb][Ee][Aa][Rr][Ee][Rr] +([A-Za-z0-9._~+/=-]+)")


class Guest(msgspec.Struct, frozen=True):
    """A guest: `id` is the author id of their comments on `site`."""

    site: str = msgspec.field(name="s")
    id: str = msgspec.field(name="g")


class Member(msgspec.Struct, frozen=True):
    """An account on one site."""

    site: str = msgspec.field(name="s")
    account: str = msgspec.field(name="a")
    epoch: str = msgspec.field(name="e")


def sign(whose: Guest | Member, *, secret: str) -> str:
    prefix, salt = ("", _SALT) if isinstance(whose, Guest) else (_ACCOUNT, _ACCOUNT_SALT)
    return f"{prefix}{_serializer(secret, salt).dumps(msgspec.to_builtins(whose))}"


class Issued(NamedTuple):
    """A token and its expiry time, in whole seconds like the time in its signature."""

    token: str
    expires: datetime


def issue(whose: Guest | Member, *, secret: str, term: int, now: datetime) -> Issued:
    """Return a token, issued now, and its expiry time. `term` is the validity in seconds."""
    expires = now.replace(microsecond=0) + timedelta(seconds=term)
    return Issued(sign(whose, secret=secret), expires)


def read(authorization: str, *, secret: str, term: int) -> Guest | Member:
    """Return the guest or account that an Authorization header identifies.

    Raises:
        problems.Unauthenticated: the header is not a Bearer token, or the token is damaged, forged,
            for a different purpose, or older than `term` seconds.
    """
    match = _BEARER.fullmatch(authorization)
    if match is None or len(authorization) > _LONGEST:
        raise problems.Unauthenticated("no-bearer-token")
    if match[1].startswith(_ACCOUNT):
        text = match[1].removeprefix(_ACCOUNT)
        return _claims(text, Member, _serializer(secret, _ACCOUNT_SALT), term)
    guest = _claims(match[1], Guest, _serializer(secret, _SALT), term)
    if not guest.id:
        raise problems.Unauthenticated
    return guest


def _claims(
    text: str, shape: type[T], serializer: itsdangerous.URLSafeTimedSerializer, term: int
) -> T:
    try:
        return decoders.convert(serializer.loads(text, max_age=term), shape)
    except itsdangerous.SignatureExpired as error:
        raise problems.Unauthenticated("token-expired") from error
    except (itsdangerous.BadData, msgspec.ValidationError) as error:
        raise problems.Unauthenticated from error


class _Serializer(itsdangerous.URLSafeTimedSerializer):
    """Sign claims without compressing them.

    The library would first try to compress them, which never helps because an id is random.

    Preparing zlib would take longer than the signature.
    """

    def dump_payload(self, obj: Any) -> bytes:
        return itsdangerous.base64_encode(itsdangerous.TimedSerializer.dump_payload(self, obj))


def _serializer(secret: str, salt: str) -> _Serializer:
    # Two secrets with different previous secrets are equal when compared as strings.
    return _cached_serializer(secret_rotation.accepted_secrets(secret), salt)


@functools.lru_cache(8)
def _cached_serializer(accepted: tuple[str, ...], salt: str) -> _Serializer:
    return _Serializer(
        list(accepted[::-1]),  # The library expects the oldest secret first.
        salt=salt,
        signer_kwargs={"digest_method": hashlib.sha256},
    )
