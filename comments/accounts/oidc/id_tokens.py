"""Check the ID tokens that providers sign.

This module implements OpenID Connect Core 1.0, section 3.1.3.7. joserfc checks the signature, and
Authlib checks the claims; both libraries are imported only when a person signs in.

Invariants:

1. The algorithm is one of `ALGORITHMS`, no matter what the token's header or the provider's
   document says, and the key is a public key from the provider's key set. Neither the algorithm
   "none" nor a shared secret is ever accepted.
2. A token must be from this issuer, for this service's client, for this sign-in (`nonce`), and not
   expired (`exp`). A token that lacks a required claim is refused.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from comments import errors

ALGORITHMS = ["RS256", "PS256", "ES256"]
_LEEWAY = timedelta(minutes=1)  # allowed difference between the provider's clock and this one
_LONGEST = 16_000
_KINDS = {"RSA", "EC"}  # never a shared secret


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


class Signed(NamedTuple):
    """A token whose signature is valid; its claims are not checked yet."""

    header: dict[str, object]
    claims: dict[str, object]


def opened(token: object, keys: Mapping[str, object]) -> Signed:
    """Check a token's signature with the provider's keys.

    Raises:
        NotBelieved: the text is not a token, or none of the keys signed it with an allowed
            algorithm.
    """
    from joserfc import errors as jose  # noqa: PLC0415 - see the module
    from joserfc import jwk, jwt  # noqa: PLC0415 - see the module

    if not isinstance(token, str) or len(token) > _LONGEST:
        raise NotBelieved(reason="the response has no ID token")
    try:
        found = jwk.KeySet([jwk.import_key(each) for each in _usable(keys)])
        decoded = jwt.decode(token, found, algorithms=ALGORITHMS)
    # Malformed keys, and tokens with values of the wrong type, raise built-in exceptions.
    except (jose.JoseError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise NotBelieved(reason="no key of the provider signed the ID token") from error
    return Signed(dict(decoded.header), dict(decoded.claims))


def checked(signed: Signed, expected: Expected, *, now: datetime) -> Mapping[str, object]:
    """Check a token's claims and return them.

    Raises:
        NotBelieved: a claim is missing or wrong.
    """
    from authlib.common.errors import AuthlibBaseError  # noqa: PLC0415 - see the module
    from authlib.oidc.core import CodeIDToken  # noqa: PLC0415 - see the module
    from joserfc import errors as jose  # noqa: PLC0415 - see the module

    options = {
        "iss": {"essential": True, "value": expected.issuer},
        "aud": {"essential": True, "value": expected.client},
        "sub": {"essential": True},
        "exp": {"essential": True},
        "nonce": {"essential": True, "value": expected.nonce},
    }
    about = {
        "nonce": expected.nonce,
        "client_id": expected.client,
        "access_token": expected.access_token,
    }
    claims = CodeIDToken(signed.claims, signed.header, options, about)
    try:
        claims.validate(now=int(now.timestamp()), leeway=int(_LEEWAY.total_seconds()))
    except (AuthlibBaseError, jose.JoseError, ValueError, TypeError, AttributeError) as error:
        raise NotBelieved(reason="a claim of the ID token is wrong") from error
    return dict(claims)


def _usable(keys: Mapping[str, object]) -> list[dict[str, str | list[str]]]:
    """Return the keys in a key set that can verify signatures.

    A key set may also contain keys of other types and keys for other uses.
    """
    given = keys.get("keys")
    return [
        each
        for each in (given if isinstance(given, list) else ())
        if isinstance(each, dict) and each.get("kty") in _KINDS and each.get("use", "sig") == "sig"
    ]
