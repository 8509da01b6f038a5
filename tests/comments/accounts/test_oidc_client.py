"""Only a valid ID token from the right provider identifies a user."""

from typing import Any

import jwt
import msgspec
import pytest

from comments import errors
from comments.accounts import accounts, identities
from comments.accounts.oidc import id_tokens, oidc_client, providers
from comments.domain import records
from comments.events import message_sender, safe_http
from comments.store import connection
from tests.support import loopback_servers
from tests.support.people import account_holders, provider_login
from tests.support.people.account_holders import SECRET, here
from tests.support.people.provider_login import EC, OTHER_RSA, RSA, Impostor, Traveller

pytestmark = pytest.mark.settings(provider_login.SETTINGS)

CHALLENGE = provider_login.challenge_of()


def _is_refused(traveller: Traveller) -> bool:
    response = traveller.window(CHALLENGE)
    assert response.status_code == 403, response.text
    assert "provider-not-believed" in response.text
    return 'id="code"' not in response.text


def test_a_valid_id_token_identifies_a_user(traveller: Traveller) -> None:
    response = traveller.window(CHALLENGE)
    assert response.status_code == 200
    assert provider_login.code_of(response)


NOBODY: dict[str, Any] = {
    "none": None,
    "an empty one": "",
    "a blank one": "  ",
    "a number": 42,
    "a list": ["ann"],
    "an endless one": "a" * 1_001,
    "half a pair": "a\ud800",
}


@pytest.mark.parametrize("sub", NOBODY.values(), ids=NOBODY)
def test_a_token_without_a_valid_subject_is_refused(
    traveller: Traveller, provider: Impostor, sub: object
) -> None:
    """B9: if the subject were optional, all users without a subject would share one account."""
    provider.sub = sub
    assert _is_refused(traveller)


def test_other_allowed_algorithms_are_accepted_and_new_keys_fetched(
    traveller: Traveller, provider: Impostor, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert traveller.window(CHALLENGE).status_code == 200
    provider.keys = [
        {"kty": "AKP", "kid": "later"},
        provider_login.jwk(RSA, "one"),
        provider_login.jwk(EC, "two"),
    ]
    provider.sign = lambda said: jwt.encode(said, EC, "ES256", headers={"kid": "two"})
    monkeypatch.setattr(oidc_client, "AGAIN", -1.0)
    assert traveller.window(provider_login.challenge_of("w" * 43)).status_code == 200


def test_a_forged_token_does_not_fetch_the_keys_each_time(
    traveller: Traveller, provider: Impostor
) -> None:
    provider.sign = lambda said: jwt.encode(said, OTHER_RSA, "RS256", headers={"kid": "two"})
    for _ in range(3):
        assert _is_refused(traveller)
    assert provider.asked.count("/keys") == 1


def test_an_email_address_is_neither_requested_nor_used_even_if_verified(
    traveller: Traveller, provider: Impostor, store: connection.Store
) -> None:
    """B8, B9: claiming an address at a provider gives no access to the address owner's account."""
    owner = account_holders.account("owner", account_holders.OWNER, mail="ann@example.org")
    made = set()
    for number, said in enumerate(({}, {"email_verified": False}, {"email_verified": True})):
        provider.sub = f"sub {number}"
        provider.claims = {"email": "ann@example.org", **said}
        verifier = f"{number}" * 43
        code = provider_login.code_of(traveller.window(provider_login.challenge_of(verifier)))
        answer = traveller.client.post(
            "/api/v1/sites/demo/sign-in/provider",
            json={"verifier": verifier, "code": code, "name": "Ann"},
        )
        assert answer.status_code == 200, answer.text
        found = accounts.by_identity(
            identities.of_provider(identities.at_issuer(provider.issuer), provider.sub), SECRET
        )
        assert found is not None
        assert (found.address, found.grants) == ("", ())
        made.add(found.id)
    # The two subjects get separate accounts, and neither is the account that owns the address.
    assert len(made) == 3
    assert owner.id not in made
    assert accounts.by_identity(identities.of_address("ann@example.org"), SECRET) == owner


def test_an_answer_without_a_valid_code_of_this_provider_is_refused(
    traveller: Traveller, provider: Impostor, store: connection.Store
) -> None:
    """B13: the code is foreign, a different provider answered (RFC 9207), or the user declined."""
    way = {"provider": "acme", "origin": provider_login.ORIGIN, "challenge": CHALLENGE}
    for changed, code in (
        ({"iss": "https://elsewhere.example"}, "provider-not-believed"),
        ({"error": "access_denied", "code": ""}, "provider-declined"),
        ({"code": ""}, "provider-not-believed"),
        ({"code": "a code of another site's"}, "provider-not-believed"),
        ({"code": "c" * 5_000}, "provider-not-believed"),
    ):
        response = traveller.back(traveller.way("/sign-in/sites/demo", **way), **changed)
        assert response.status_code == 403, response.text
        assert code in response.text
    provider.document = {"authorization_response_iss_parameter_supported": True}
    oidc_client.COPIES.forget(store)
    response = traveller.back(traveller.way("/sign-in/sites/demo", **way))
    assert "provider-not-believed" in response.text
    response = traveller.back(traveller.way("/sign-in/sites/demo", **way), iss=provider.issuer)
    assert response.status_code == 200, response.text


def test_a_code_of_another_login_is_refused(traveller: Traveller, provider: Impostor) -> None:
    """The verifier or the nonce exposes a code that an attacker injects into a victim's answer."""
    way = {"provider": "acme", "origin": provider_login.ORIGIN, "challenge": CHALLENGE}
    attackers = provider.authorize(traveller.way("/sign-in/sites/demo", **way))
    response = traveller.back(traveller.way("/sign-in/sites/demo", **way), code=attackers)
    assert response.status_code == 403
    assert "provider-not-believed" in response.text


WRONG_DOCUMENTS: dict[str, tuple[dict[str, Any], int]] = {
    "calls itself otherwise": ({"issuer": "https://accounts.google.com"}, 403),
    "leads inside": ({"authorization_endpoint": "http://127.0.0.1:1/authorize"}, 403),
    "leads to a script": ({"authorization_endpoint": "javascript:alert(1)"}, 403),
    "has its keys inside": ({"jwks_uri": "http://169.254.169.254/keys"}, 403),
    "has no keys": ({"jwks_uri": None}, 502),
    "is of other types": ({"token_endpoint": 7}, 502),
}


@pytest.mark.parametrize("case", WRONG_DOCUMENTS.values(), ids=WRONG_DOCUMENTS)
def test_a_provider_with_an_invalid_document_is_not_used(
    traveller: Traveller, provider: Impostor, case: tuple[dict[str, Any], int]
) -> None:
    provider.document, status = case
    response = traveller.send(
        "/sign-in/sites/demo", provider="acme", origin=provider_login.ORIGIN, challenge=CHALLENGE
    )
    assert response.status_code == status, response.text
    assert "http-equiv" not in response.text


@pytest.mark.parametrize(
    "answer",
    [
        (500, b""), (200, b"no JSON"), (200, b"[" * 3_000), (200, b"x" * 100_000), (302, b""),
        (200, b"[]"), (200, b'{"id_token": "\xff"}'),
    ],
    ids=["fault", "words", "deep", "long", "redirect", "list", "bytes"],
)  # fmt: skip
def test_an_invalid_answer_of_the_token_endpoint_is_the_providers_error(
    traveller: Traveller, provider: Impostor, answer: tuple[int, bytes]
) -> None:
    provider.token_answer = answer
    response = traveller.window(CHALLENGE)
    assert response.status_code == 502, response.text


def test_a_name_comes_from_the_token_if_it_is_acceptable(
    provider: Impostor, store: connection.Store
) -> None:
    peer = oidc_client.OidcClient(
        _registered(),
        f"{provider_login.PUBLIC}/sign-in/return",
        message_sender.OUTBOUND.of(store, loopback_servers.client),
    )

    def name() -> str:
        asked = oidc_client.Secrets("s" * 43, "n" * 43, "v" * 43)
        code = provider.authorize(peer.login_address(asked))
        return peer.identify({"code": code}, asked, secret=SECRET, now=here()).name

    provider.claims = {"name": "Ann"}
    assert name() == "Ann"
    provider.claims = {"name": "admin", "nickname": "a" * 81, "preferred_username": "ann"}
    assert name() == "ann"
    provider.claims = {}
    assert name() == ""
    provider.userinfo = {"sub": "ann", "name": "Ann B"}
    assert name() == "Ann B"
    provider.userinfo = {"sub": "bob", "name": "Bob"}
    assert name() == ""


def _registered() -> providers.Provider:
    return providers.every()[0]


def test_requests_to_a_provider_use_the_safe_http_client(
    store: connection.Store, site: records.Site, provider: Impostor
) -> None:
    """C14: in production, the service sends no requests to its own machine."""
    peer = oidc_client.OidcClient(
        _registered(), f"{provider_login.PUBLIC}/sign-in/return", safe_http.HttpClient()
    )
    with pytest.raises(id_tokens.NotBelieved):
        peer.check()
    away = safe_http.HttpClient(resolver=lambda _: [])
    named = msgspec.structs.replace(_registered(), issuer="https://provider.example")
    secure = oidc_client.OidcClient(named, "x", away)
    with pytest.raises(errors.Unreachable):
        secure.check()
