"""Check the ID tokens that providers sign.

This module implements OpenID Connect Core 1.0, section 3.1.3.7. PyJWT checks the signature; it is
imported only when a person signs in.

Invariant: The algorithm is one of `ALGORITHMS` and the key is a public key from the provider's key
set, no matter what the token's header or the provider's document says
(test_id_tokens.py::test_a_shared_secret_among_the_providers_keys_verifies_nothing).
"""

import base64
import hashlib
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import msgspec

from comments import errors
from comments.domain import decoders

ALGORITHMS = ["RS256", "PS256", "ES256"]
_LEEWAY = timedelta(minutes=1)  # Allowed difference between the provider's clock and this machine's
_LONGEST = 16_000
_KINDS = ("RSA", "EC")  # Never an algorithm with a shared secret


class NotBelieved(errors.Forbidden):
    """A provider's response does not prove who the person is."""

    code = "provider-not-believed"


class Expected(NamedTuple):
    """The expected claims of an ID token.

    `access_token` is the access token that was issued with the ID token.
    """

    issuer: str
    client: str
    nonce: str
    access_token: object


class _Claims(msgspec.Struct, frozen=True):
    """The claims that decide whether a token is valid. Dates may have a fraction."""

    iss: str
    aud: str | list[str]
    sub: str
    nonce: str
    iat: float
    exp: float
    nbf: float = 0.0
    azp: str | None = None
    at_hash: str | None = None


def verify_signature(token: object, keys: Mapping[str, object]) -> bytes:
    """Check a token's signature with the provider's keys, and return its claims as JSON.

    Raises:
        NotBelieved: the text is not a token, or none of the keys signed it with an allowed
            algorithm.
    """
    import jwt  # noqa: PLC0415 - see the module

    if not isinstance(token, str) or len(token) > _LONGEST:
        raise NotBelieved(reason="the response has no ID token")
    for key in _usable(keys):
        try:
            return bytes(jwt.api_jws.decode(token, jwt.PyJWK(key).key, algorithms=ALGORITHMS))
        # Malformed keys, and tokens with values of the wrong type, raise built-in exceptions.
        except (
            jwt.PyJWTError, ValueError, TypeError, KeyError, AttributeError, NotImplementedError
        ):  # fmt: skip
            continue
    raise NotBelieved(reason="no key of the provider signed the ID token")


def check_claims(said: bytes, expected: Expected, *, now: datetime) -> dict[str, object]:
    """Check a token's claims and return them.

    Raises:
        NotBelieved: a claim is missing or wrong.
    """
    problem = NotBelieved(reason="a claim of the ID token is wrong")
    try:
        claims = decoders.decode(said, _Claims)
        every = decoders.decode(said, dict[str, object])
    except msgspec.DecodeError as error:
        raise problem from error
    if not _is_for_us(claims, expected) or not _is_current(claims, now):
        raise problem
    return every


def _is_for_us(claims: _Claims, expected: Expected) -> bool:
    audience = [claims.aud] if isinstance(claims.aud, str) else claims.aud
    # A token for several clients must name the one that it was issued to.
    party = claims.azp if len(audience) > 1 else claims.azp or expected.client
    digest = _digest(expected.access_token)
    return (
        claims.iss == expected.issuer
        and claims.nonce == expected.nonce
        and expected.client in audience
        and party == expected.client
        and claims.at_hash in {None, digest}
    )


def _is_current(claims: _Claims, now: datetime) -> bool:
    at, leeway = now.timestamp(), _LEEWAY.total_seconds()
    return claims.exp > at - leeway and max(claims.nbf, claims.iat) <= at + leeway


def _digest(access_token: object) -> str:
    """Return the `at_hash` of an access token; all `ALGORITHMS` use SHA-256."""
    half = hashlib.sha256(f"{access_token}".encode()).digest()[:16]
    return base64.urlsafe_b64encode(half).decode().rstrip("=")


def _usable(keys: Mapping[str, object]) -> list[dict[str, Any]]:
    """Return the keys in a key set that can verify signatures.

    A key set may also contain keys of other types and keys for other uses.
    """
    given = keys.get("keys")
    return [
        key
        for key in (given if isinstance(given, list) else ())
        if isinstance(key, dict) and key.get("kty") in _KINDS and key.get("use", "sig") == "sig"
    ]
