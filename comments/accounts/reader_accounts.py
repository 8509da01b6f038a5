"""Sign in readers whom a site or a provider identifies.

Owns the check of a site's signed tokens (JWT, RFC 7519) and the readers' accounts. The claims of a
token are:

    {"aud": "flatthread:{site}", "sub": "42", "name": "Ann", "exp": 1767323045}

The token is signed with a key of that site (`site_keys`). `sub` is the site's id for the reader and
must never be reused for another person; `name` is the display name and may change; `exp` is at most
`LONGEST` in the future. Other claims are ignored, so a token cannot grant anything else.

The account of a site's reader is found only by the site and `sub`: neither a name nor a mail
address, verified or not, leads to an account. Such an account has no role and no password, so it
gives no access to the admin console.
"""

from datetime import datetime, timedelta
from typing import Annotated

import msgspec

from comments import errors
from comments.accounts import accounts, identities, site_keys
from comments.domain import decoders
from comments.domain.text import cleaning
from comments.store import ownership, reads, transactions
from comments.store.models import account_rows

_OWNER = "accounts"
AUDIENCE = "flatthread:"
LONGEST = timedelta(hours=24)
_LEEWAY = timedelta(minutes=1)  # Allowed difference between the site's clock and this machine's
_LONGEST_TOKEN = 4_000


class Refused(errors.CodedError):
    """A token or code does not prove the reader's identity."""

    code = "bad-assertion"


class _Claims(msgspec.Struct, frozen=True):
    """The token claims that this module reads.

    Dates are numbers, possibly with a fraction (RFC 7519, section 2).
    """

    aud: str | list[str]
    sub: Annotated[str, msgspec.Meta(min_length=1)]
    name: str
    exp: float
    nbf: float = 0.0
    iat: float = 0.0


class Reader(msgspec.Struct, frozen=True):
    """A person whom a site or provider identified: the identity, and the display name."""

    identity: identities.Identity
    name: str


def of_site(token: str, site: str, *, secret: str, now: datetime) -> Reader:
    """Check a site's token and return the reader whom the token identifies.

    Raises:
        Refused: the token is not signed by a key of this site, is for a different audience, or is
            not valid at this time.
        errors.BadInput: `sub` or `name` is not valid.
    """
    claims = _check_claims(_verify(token, site, secret, now), site, now)
    identity = identities.of_provider(f"site/{site}", claims.sub)
    return Reader(identity, cleaning.clean_name(claims.name))


def sign_in(reader: Reader, *, secret: str, now: datetime) -> accounts.Account:
    """Return a reader's account, creating it at the first sign-in and updating its name."""
    made = accounts.new_id()

    def body() -> accounts.Account:
        led = accounts.identity_row(reader.identity, secret)
        row = None if led is None else reads.get(account_rows.account_key(led.account))
        if row is None:
            newcomer = accounts.NewAccount(id=made, name=reader.name, identities=(reader.identity,))
            row, joined = accounts.unchecked_creation_writes(newcomer, secret=secret, now=now)
            transactions.apply(joined)
        elif row.name != reader.name and not row.grants:
            row.name = reader.name
            transactions.apply(ownership.Writes(_OWNER, put=(row,)))
        return accounts.record(row)

    accounts.rekey(reader.identity, secret)
    known = accounts.by_identity(reader.identity, secret)
    if known is not None and (known.grants or known.name == reader.name):
        return known
    return transactions.transaction(body)


def _verify(token: str, site: str, secret: str, now: datetime) -> bytes:
    """Return a token's claims as JSON if one of the site's keys signed the token."""
    import jwt  # noqa: PLC0415 - few processes need it

    if len(token) > _LONGEST_TOKEN or not token.isascii():
        raise Refused
    for key in site_keys.every(site):
        try:
            content = site_keys.verification_key(key, secret, now=now)
            # Allow only the key's own algorithm. This check excludes "none" and the use of a public
            # key as a shared secret.
            return bytes(jwt.api_jws.decode(token, content, algorithms=[key.algorithm]))
        except (jwt.PyJWTError, errors.BadLink, ValueError, RecursionError):
            continue
    raise Refused


def _check_claims(said: bytes, site: str, now: datetime) -> _Claims:
    try:
        claims = decoders.decode(said, _Claims)
    except msgspec.DecodeError as error:
        raise Refused("bad-claims", reason=str(error)) from error
    at, leeway = now.timestamp(), _LEEWAY.total_seconds()
    audience = [claims.aud] if isinstance(claims.aud, str) else claims.aud
    if f"{AUDIENCE}{site}" not in audience:
        raise Refused("wrong-audience", audience=f"{AUDIENCE}{site}")
    if not at - leeway < claims.exp <= at + LONGEST.total_seconds() + leeway:
        raise Refused("token-expired")
    if max(claims.nbf, claims.iat) > at + leeway:
        raise Refused("token-not-yet-valid")
    return claims
