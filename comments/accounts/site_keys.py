"""Manage the keys with which a site signs tokens for its readers.

Owns the kind SiteKeys, one row for each site that has keys:

    SiteKeys  key: the site's id
              keys: JSON, a list of `SiteKey`

Invariants:

1. A key belongs to one site and is valid only for tokens that identify readers.
2. A shared secret (HS256) is generated here, shown once and stored encrypted. For a key pair
   (EdDSA), only the public key is ever stored.
3. The algorithm of a token is determined by the stored key, never by the token's header.
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
MOST = 5  # keys per site; rotation needs two
HS256, EDDSA = "HS256", "EdDSA"
_SECRET_BYTES = 32


class SiteKey(msgspec.Struct, frozen=True):
    """A key as stored. `content` is an encrypted secret, or a public key in PEM form."""

    id: str
    algorithm: str
    content: str
    created: datetime


def shared(secret: str, *, now: datetime) -> tuple[SiteKey, str]:
    """Make a new shared key; return it with its secret, which is shown once."""
    made = secrets.token_urlsafe(_SECRET_BYTES)
    content = encryption.seal(made, _PURPOSE, secret, now=now)
    return SiteKey(secrets.token_hex(4), HS256, content, now), made


def public(pem: str, *, now: datetime) -> SiteKey:
    """Make a key from the public half of a key pair.

    Raises:
        errors.BadInput: the text is not a public Ed25519 key in PEM form.
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
    """Return the secret or public key that verifies a token.

    Raises:
        errors.BadLink: the key was encrypted under a different secret.
    """
    if key.algorithm == EDDSA:
        return key.content
    return encryption.unseal(key.content, _PURPOSE, secret, now=now)


def every(site: str) -> tuple[SiteKey, ...]:
    """Return a site's keys, oldest first."""
    row = reads.get(account_rows.site_keys_key(site))
    return () if row is None else msgspec.json.decode(row.keys, type=tuple[SiteKey, ...])


def add(site: str, key: SiteKey) -> None:
    """Add a key to a site.

    Raises:
        errors.NotFound: there is no such site.
        errors.Conflict: the site has `MOST` keys already.
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
    """Re-encrypt a site's secrets under the current `SECRET`. Return whether any secret changed."""

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
    """Revoke a key. Readers who signed in with it stay signed in until their token expires.

    Raises:
        errors.NotFound: the site has no such key.
    """
    gone: list[SiteKey] = []

    def body() -> None:
        found = every(site)
        named = [each for each in found if each.id == name]
        if not named and gone:
            return  # an earlier run committed, but its response was lost
        if not named:
            raise errors.NotFound("key", name)
        gone[:] = named
        _put(site, [each for each in found if each.id != name])

    transactions.transaction(body)


def _put(site: str, keys: list[SiteKey]) -> None:
    row = account_rows.SiteKeysRow(
        key=account_rows.site_keys_key(site), keys=msgspec.json.encode(keys).decode()
    )
    transactions.apply(ownership.Writes(_OWNER, put=(row,)))
