"""Claims about providers' answers: only its own word, for us, for this sign-in, names anybody."""

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


def test_a_provider_names_somebody_by_its_own_word(traveller: Traveller) -> None:
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
def test_a_provider_that_does_not_say_who_names_nobody(
    traveller: Traveller, provider: Impostor, sub: object
) -> None:
    """B9: else all whom a provider leaves out were one."""
    provider.sub = sub
    assert _is_refused(traveller)


def test_other_algorithms_that_are_allowed_are_believed_and_new_keys_found(
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


def test_keys_are_not_asked_for_again_with_every_forgery(
    traveller: Traveller, provider: Impostor
) -> None:
    provider.sign = lambda said: jwt.encode(said, OTHER_RSA, "RS256", headers={"kid": "two"})
    for _ in range(3):
        assert _is_refused(traveller)
    assert provider.asked.count("/keys") == 1


def test_a_mail_address_is_neither_asked_for_nor_taken_verified_or_not(
    traveller: Traveller, provider: Impostor, store: connection.Store
) -> None:
    """B8, B9: who says at a provider that he has somebody's address gets nothing of it."""
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
    # Two who are told apart there are two here, and neither is who has the address.
    assert len(made) == 3
    assert owner.id not in made
    assert accounts.by_identity(identities.of_address("ann@example.org"), SECRET) == owner


def test_the_answer_of_another_provider_or_none_is_refused(
    traveller: Traveller, provider: Impostor, store: connection.Store
) -> None:
    """B13: a code of somebody else's, a mixed-up provider (RFC 9207), and somebody who says no."""
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


def test_a_code_of_another_sign_in_is_refused(traveller: Traveller, provider: Impostor) -> None:
    """Whoever puts his own code into somebody's answer fails by the verifier; by nonce, else."""
    way = {"provider": "acme", "origin": provider_login.ORIGIN, "challenge": CHALLENGE}
    his = provider.authorize(traveller.way("/sign-in/sites/demo", **way))
    response = traveller.back(traveller.way("/sign-in/sites/demo", **way), code=his)
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
def test_a_provider_whose_document_is_not_good_is_not_gone_to(
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
        (200, b"[]"),
    ],
    ids=["fault", "words", "deep", "long", "redirect", "list"],
)  # fmt: skip
def test_a_token_endpoint_that_answers_anything_else_is_an_error_of_the_providers(
    traveller: Traveller, provider: Impostor, answer: tuple[int, bytes]
) -> None:
    provider.token_answer = answer
    response = traveller.window(CHALLENGE)
    assert response.status_code == 502, response.text


def test_a_name_comes_from_the_token_or_is_asked_for_and_only_one_that_may_be_shown(
    provider: Impostor, store: connection.Store
) -> None:
    peer = oidc_client.OidcClient(
        _registered(),
        f"{provider_login.PUBLIC}/sign-in/return",
        message_sender.OUTBOUND.of(store, loopback_servers.client),
    )

    def name() -> str:
        asked = oidc_client.Secrets("s" * 43, "n" * 43, "v" * 43)
        code = provider.authorize(peer.way(asked))
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


def test_requests_to_a_provider_go_out_by_the_one_way_there_is(
    store: connection.Store, site: records.Site, provider: Impostor
) -> None:
    """C14: the service as it runs does not reach what is on its own machine."""
    peer = oidc_client.OidcClient(
        _registered(), f"{provider_login.PUBLIC}/sign-in/return", safe_http.Client()
    )
    with pytest.raises(id_tokens.NotBelieved):
        peer.check()
    away = safe_http.Client(resolver=lambda _: [])
    named = msgspec.structs.replace(_registered(), issuer="https://provider.example")
    secure = oidc_client.OidcClient(named, "x", away)
    with pytest.raises(errors.Unreachable):
        secure.check()
