"""ID tokens: what a provider has to have signed before anybody is believed to be somebody.

Owns the check (OpenID Connect Core 1.0, section 3.1.3.7). joserfc checks the signature, Authlib the
claims; both are imported where somebody signs in.

What must stay true:

- An algorithm is one of `ALGORITHMS`, whatever the token's header or the provider's document says,
  and a key is a public one of the provider's set: neither "none" nor a shared secret is ever taken.
- A token is issued by this issuer, for our client, for this very sign-in (`nonce`), with an end
  (`exp`) that is ahead. What is left out is not given.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from comments import errors

ALGORITHMS = ["RS256", "PS256", "ES256"]
_LEEWAY = timedelta(minutes=1)  # a provider's clock may differ from ours
_LONGEST = 16_000
_KINDS = {"RSA", "EC"}  # never a shared secret


class NotBelieved(errors.Forbidden):
    """What came back is not this provider's word on who somebody is."""

    code = "provider-not-believed"


class Expected(NamedTuple):
    """What a token must say. `access_token` is what it came with."""

    issuer: str
    client: str
    nonce: str
    access_token: object


class Signed(NamedTuple):
    """A token that a key of the provider's signed; its claims are not checked yet."""

    header: dict[str, object]
    claims: dict[str, object]


def opened(token: object, keys: Mapping[str, object]) -> Signed:
    """A token that one of these keys signed.

    Raises:
        NotBelieved: it is none, or none of them did by an algorithm that is allowed.
    """
    from joserfc import errors as jose  # noqa: PLC0415 - see the module
    from joserfc import jwk, jwt  # noqa: PLC0415 - see the module

    if not isinstance(token, str) or len(token) > _LONGEST:
        raise NotBelieved(reason="the answer has no ID token")
    try:
        found = jwk.KeySet([jwk.import_key(each) for each in _usable(keys)])
        decoded = jwt.decode(token, found, algorithms=ALGORITHMS)
    # The last ones are what bytes and numbers of another type than they must be come to.
    except (jose.JoseError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise NotBelieved(reason="no key of the provider signed the ID token") from error
    return Signed(dict(decoded.header), dict(decoded.claims))


def checked(signed: Signed, expected: Expected, *, now: datetime) -> Mapping[str, object]:
    """The claims of a token that is good.

    Raises:
        NotBelieved: it is not.
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
    """The keys of a set that can check a signature: it may hold kinds that nobody knows yet."""
    given = keys.get("keys")
    return [
        each
        for each in (given if isinstance(given, list) else ())
        if isinstance(each, dict) and each.get("kty") in _KINDS and each.get("use", "sig") == "sig"
    ]
