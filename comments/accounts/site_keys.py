"""The keys with which a site signs who its readers are.

Owns the kind SiteKeys, one row for each site that has keys:

    SiteKeys  key: the site's id
              keys: JSON, a list of `SiteKey`

What must stay true:

- A key is for one purpose, to say who somebody is, and of one site. It signs nothing else here.
- A shared secret (HS256) is made here, shown once, and stored sealed; of a pair (EdDSA) only the
  public half is ever here. Which of the two a key is decides how a token may be signed: what a
  token says of its algorithm never does.
"""

import secrets
from datetime import datetime

import msgspec

from comments import errors
from comments.domain.crypto import encryption
from comments.store import ownership, reads, transactions
from comments.store.models import account_rows, comment_rows

_OWNER = "accounts"
_PURPOSE = "site key"
MOST = 5  # of one site: enough to change one for another
HS256, EDDSA = "HS256", "EdDSA"
_SECRET_BYTES = 32


class SiteKey(msgspec.Struct, frozen=True):
    """A key as stored: `content` is a sealed secret, or the PEM of a public key."""

    id: str
    algorithm: str
    content: str
    created: datetime


def shared(secret: str, *, now: datetime) -> tuple[SiteKey, str]:
    """A new key that the site shares with us, and its secret, which is shown once."""
    made = secrets.token_urlsafe(_SECRET_BYTES)
    content = encryption.seal(made, _PURPOSE, secret, now=now)
    return SiteKey(secrets.token_hex(4), HS256, content, now), made


def public(pem: str, *, now: datetime) -> SiteKey:
    """The public half of a key that the site keeps.

    Raises:
        errors.BadInput: it is no public key of Ed25519.
    """
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - few processes need it
    from cryptography.hazmat.primitives.asymmetric import ed25519  # noqa: PLC0415 - same

    problem = errors.BadInput("public", "bad-public-key")
    try:
        key = serialization.load_pem_public_key(pem.encode())
    except (ValueError, UnicodeError) as error:
        raise problem from error
    if not isinstance(key, ed25519.Ed25519PublicKey):
        raise problem
    return SiteKey(secrets.token_hex(4), EDDSA, pem, now)


def opened(key: SiteKey, secret: str, *, now: datetime) -> str:
    """What a token is checked with.

    Raises:
        errors.BadLink: it was stored under another secret.
    """
    if key.algorithm == EDDSA:
        return key.content
    return encryption.unseal(key.content, _PURPOSE, secret, now=now)


def every(site: str) -> tuple[SiteKey, ...]:
    """The keys of a site, the oldest first."""
    row = reads.get(account_rows.site_keys_key(site))
    return () if row is None else msgspec.json.decode(row.keys, type=tuple[SiteKey, ...])


def add(site: str, key: SiteKey) -> None:
    """Let a site sign with one more key.

    Raises:
        errors.NotFound: there is no such site.
        errors.Conflict: it has as many as it may.
    """

    def body() -> None:
        if not site or reads.get(comment_rows.site_key(site)) is None:
            raise errors.NotFound("site", site)
        found = [each for each in every(site) if each.id != key.id]
        if len(found) >= MOST:
            raise errors.Conflict("too-many-site-keys", limit=MOST)
        _put(site, [*found, key])

    transactions.transaction(body)


def renew(site: str, secret: str) -> bool:
    """Seal the secrets of a site's keys under the current `SECRET`; whether one was not."""

    def body() -> bool:
        found = every(site)
        fresh = [_renewed(each, secret) for each in found]
        if fresh == list(found):
            return False
        _put(site, fresh)
        return True

    return transactions.transaction(body)


def _renewed(key: SiteKey, secret: str) -> SiteKey:
    content = key.algorithm == HS256 and encryption.renewed(key.content, _PURPOSE, secret)
    return msgspec.structs.replace(key, content=content) if content else key


def remove(site: str, name: str) -> None:
    """Take a key's signatures no more. Who came by it stays signed in until his token ends.

    Raises:
        errors.NotFound: there is none.
    """
    gone: list[SiteKey] = []

    def body() -> None:
        found = every(site)
        named = [each for each in found if each.id == name]
        if not named and gone:
            return  # our own commit, whose answer was lost
        if not named:
            raise errors.NotFound("key", name)
        gone[:] = named
        _put(site, [each for each in found if each.id != name])

    transactions.transaction(body)


def _put(site: str, keys: list[SiteKey]) -> None:
    row = account_rows.SiteKeys(
        key=account_rows.site_keys_key(site), keys=msgspec.json.encode(keys).decode()
    )
    transactions.apply(ownership.Writes(_OWNER, put=(row,)))
