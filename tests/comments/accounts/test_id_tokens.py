"""An ID token is valid only if the provider has just signed it for our service and this login."""

from collections.abc import Callable, Mapping
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization

from comments.accounts.oidc import id_tokens
from tests.support.people import provider_login
from tests.support.people.account_holders import here
from tests.support.people.provider_login import EC, OTHER_RSA, RSA

ISSUER, NONCE = "https://acme.example", "n" * 43
EXPECTED = id_tokens.Expected(ISSUER, provider_login.CLIENT, NONCE, "an-access-token")
KEYS = {"keys": [provider_login.jwk(RSA, "one")]}
MINUTE = 60
MOMENT = here()  # Import time of this module; the tests may run much later
NOW = int(MOMENT.timestamp())


def said(**changed: Any) -> dict[str, Any]:
    """Return valid claims. `changed` replaces some claims; the value None removes a claim."""
    claims = {
        "iss": ISSUER, "aud": provider_login.CLIENT, "sub": "ann", "nonce": NONCE,
        "iat": NOW, "exp": NOW + 5 * MINUTE, **changed,
    }  # fmt: skip
    return {name: value for name, value in claims.items() if value is not None}


def believed(token: object, keys: Mapping[str, object] = KEYS) -> Mapping[str, object]:
    return id_tokens.check_claims(id_tokens.verify_signature(token, keys), EXPECTED, now=MOMENT)


WRONG_CLAIMS: dict[str, dict[str, Any]] = {
    "another issuer": {"iss": "https://accounts.google.com"},
    "no issuer": {"iss": None},
    "the issuer with a slash": {"iss": f"{ISSUER}/"},
    "for another client": {"aud": "somebody-else"},
    "for nobody": {"aud": None},
    "for another client, that names us": {"aud": "somebody-else", "azp": provider_login.CLIENT},
    "for us among others": {"aud": [provider_login.CLIENT, "somebody-else"]},
    "for us, given to another": {"azp": "somebody-else"},
    "no nonce": {"nonce": None},
    "another nonce": {"nonce": "another"},
    "an empty nonce": {"nonce": ""},
    "no end": {"exp": None},
    "an end that is over": {"exp": NOW - 5 * MINUTE},
    "an end in words": {"exp": "9999999999"},
    "not yet": {"nbf": NOW + 60 * MINUTE},
    "no beginning": {"iat": None},
    "a beginning to come": {"iat": NOW + 60 * MINUTE},
    "no sub": {"sub": None},
    "another access token": {"at_hash": "AAAAAAAAAAAAAAAAAAAAAA"},
}


@pytest.mark.parametrize("claims", WRONG_CLAIMS.values(), ids=WRONG_CLAIMS)
def test_a_token_for_another_audience_or_time_is_refused(claims: dict[str, Any]) -> None:
    with pytest.raises(id_tokens.NotBelieved):
        believed(_signed(said(**claims)))


def _pem() -> bytes:
    return RSA.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def _by(key: Any, algorithm: str, **header: Any) -> Callable[[dict[str, Any]], str]:
    return lambda claims: jwt.encode(claims, key, algorithm=algorithm, headers=header or None)


_signed = _by(RSA, "RS256", kid="one")
FORGED: dict[str, Callable[[dict[str, Any]], str]] = {
    "another key": _by(OTHER_RSA, "RS256", kid="one"),
    "a key that nobody knows": _by(OTHER_RSA, "RS256", kid="two"),
    "another kind of key": _by(EC, "ES256", kid="one"),
    "no algorithm": lambda said: provider_login.unsigned({"alg": "none", "typ": "JWT"}, said),
    "no algorithm, in capitals": lambda said: provider_login.unsigned({"alg": "NONE"}, said),
    "no header": lambda said: provider_login.unsigned({}, said),
    "an algorithm that is a number": lambda said: provider_login.unsigned({"alg": 7}, said),
    "the public key as a secret": lambda said: provider_login.swapped(said, _pem()),
    "the client's secret": _by(provider_login.CLIENT_SECRET, "HS256", kid="one"),
    "a key of its own": lambda said: jwt.encode(
        said, OTHER_RSA, algorithm="RS256", headers={"jwk": provider_login.jwk(OTHER_RSA, "one")}
    ),
    "a cut signature": lambda said: _signed(said)[:-8],
    "no token": lambda _: "",
    "no token at all": lambda _: "a.b",
    "five parts": lambda _: "a.b.c.d.e",
    "endless": lambda _: "a" * 20_000,
}


@pytest.mark.parametrize("sign", FORGED.values(), ids=FORGED)
def test_a_token_not_signed_by_a_key_of_the_provider_is_refused(
    sign: Callable[[dict[str, Any]], str],
) -> None:
    with pytest.raises(id_tokens.NotBelieved):
        believed(sign(said()))


@pytest.mark.parametrize("keys", [{}, {"keys": None}, {"keys": ["x", 7]}, {"keys": {"kty": "RSA"}}])
def test_without_keys_every_token_is_refused(keys: dict[str, object]) -> None:
    with pytest.raises(id_tokens.NotBelieved):
        believed(_signed(said()), keys)


def test_a_shared_secret_among_the_providers_keys_verifies_nothing() -> None:
    secret = b"thirty-two bytes that are shared"
    shared = {"kty": "oct", "kid": "one", "k": provider_login._b64(secret), "alg": "HS256"}
    for keys in ([shared], [shared, provider_login.jwk(RSA, "two")]):
        with pytest.raises(id_tokens.NotBelieved):
            believed(provider_login.swapped(said(), secret), {"keys": keys})


@pytest.mark.parametrize(("key", "algorithm"), [(RSA, "RS256"), (RSA, "PS256"), (EC, "ES256")])
def test_a_token_signed_with_an_allowed_algorithm_is_accepted(key: Any, algorithm: str) -> None:
    own = provider_login.jwk(key, "one")
    keys = [{"kty": "AKP", "kid": "later"}, {"kty": ["RSA"]}, {**own, "alg": "none"}, own]
    token = _by(key, algorithm, kid="one")(said())
    assert believed(token, {"keys": keys})["sub"] == "ann"
