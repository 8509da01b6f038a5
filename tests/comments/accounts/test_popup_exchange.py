"""The pop-up code exchange issues one code to one page of one site."""

import concurrent.futures
import re
from datetime import timedelta
from typing import Any

import flask
import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from comments import errors
from comments.accounts import accounts, identities, reader_accounts
from comments.accounts.links import typed_codes, window_codes
from comments.accounts.oidc import oidc_client, popup_exchange, providers
from comments.domain import records
from comments.sites import site_settings
from comments.store import connection, reads
from tests.support.people import account_holders, api_requests, provider_login
from tests.support.people.account_holders import SECRET, here
from tests.support.people.provider_login import ORIGIN, VERIFIER, Impostor, Traveller
from tests.support.threads import sample_threads

pytestmark = pytest.mark.settings(provider_login.SETTINGS)

CHALLENGE = provider_login.challenge_of()
PERSON = oidc_client.ProviderUser(identities.of_provider("oidc/https://acme.example", "ann"), "Ann")


def redeem(client: FlaskClient, code: str, *, site: str = "demo", **more: str) -> TestResponse:
    sent = {"verifier": VERIFIER, "code": code, "name": "Ann"} | more
    return client.post(f"/api/v1/sites/{site}/sign-in/provider", json=sent)


def enter(code: str, verifier: str = VERIFIER, name: str = "Ann", **more: Any) -> accounts.Account:
    at = more.pop("now", here())
    return popup_exchange.redeem(
        verifier, code, name, more.pop("site", "demo"), secret=SECRET, now=at
    )


def issue(verifier: str = VERIFIER, person: oidc_client.ProviderUser = PERSON) -> str:
    challenge = provider_login.challenge_of(verifier)
    return popup_exchange.issue(person, "demo", challenge, secret=SECRET, now=here())


def test_a_reader_signs_in_posts_and_returns_as_the_same_author(
    traveller: Traveller, provider: Impostor, app: flask.Flask, store: connection.Store
) -> None:
    code = provider_login.code_of(traveller.window(CHALLENGE))
    # The page belongs to a different site, so it sends no cookie and has only the verifier.
    page = app.test_client()
    entered = redeem(page, code.upper().replace(" ", "-"), name="Ann")
    assert entered.status_code == 200, entered.text
    ann = api_requests.answer(entered)
    assert ann["name"] == "Ann"
    assert "Set-Cookie" not in entered.headers
    posted = api_requests.answer(page.post(api_requests.THREAD, json={"name": "x", "body": "Hi"},
                                    headers=api_requests.bearer(ann)))  # fmt: skip
    assert posted["comment"]["author"]["name"] == "Ann"
    # The reader signs in on a second device without a name, and the account keeps its name.
    other = provider_login.code_of(
        Traveller(app, provider).window(provider_login.challenge_of("w" * 43))
    )
    again = api_requests.answer(redeem(app.test_client(), other, verifier="w" * 43, name=""))
    assert (again["name"], again["account"]) == ("Ann", ann["account"])
    one = api_requests.ONE + posted["comment"]["id"]
    assert page.delete(one, headers=api_requests.bearer(again)).status_code == 200


def test_no_token_is_in_a_url_a_page_or_a_log(
    traveller: Traveller, provider: Impostor, app: flask.Flask, caplog: pytest.LogCaptureFixture
) -> None:
    """B11: pages contain only a code; without the verifier, which is sent once, it is useless."""
    way = traveller.way("/sign-in/sites/demo", provider="acme", origin=ORIGIN, challenge=CHALLENGE)
    back = traveller.back(way)
    code = provider_login.code_of(back)
    entered = api_requests.answer(redeem(app.test_client(), code))
    for text in (way, back.text, str(back.headers), caplog.text):
        assert entered["token"] not in text
        assert VERIFIER not in text
    assert back.headers.get("Location") is None
    assert code not in way + caplog.text
    stored = "".join(
        str(each)
        for kind in ("Ticket", "Account", "Identity")
        for each in reads.fetch(reads.Query(kind))
    )
    for secret in (code, code.replace(" ", ""), VERIFIER, CHALLENGE, entered["token"], "'ann'"):
        assert secret not in stored


def test_a_window_opens_only_for_exact_registered_origins(
    traveller: Traveller, provider: Impostor, store: connection.Store
) -> None:
    """B12: none of the refused origins equals the site's origin, though many resemble it."""
    for origin in (
        "https://evil.example", "//evil.example", "/\\evil.example", "https:evil.example", "null",
        "http://localhost:8080@evil.example", "http://localhost:8080.evil.example", "*", "",
        "http://localhost", "http://localhost:8081", "https://localhost:8080", f"{ORIGIN}/",
        "HTTP://LOCALHOST:8080", f"{ORIGIN} ", "javascript:alert(1)", f"{ORIGIN},https://e.example",
    ):  # fmt: skip
        query = {"origin": origin, "challenge": CHALLENGE}
        shown = traveller.client.get("/sign-in/sites/demo", query_string=query)
        sent = traveller.send("/sign-in/sites/demo", provider="acme", **query)
        for refused in (shown, sent):
            assert refused.status_code == 403, origin
            assert "origin-not-allowed" in refused.text
            assert "http-equiv" not in refused.text
    # An origin that the site removes during a login gets no code either.
    way = traveller.way("/sign-in/sites/demo", provider="acme", origin=ORIGIN, challenge=CHALLENGE)
    site_settings.change("demo", origins=["https://new.example"])
    back = traveller.back(way)
    assert back.status_code == 403
    assert 'id="code"' not in back.text


@pytest.mark.parametrize("challenge", ["", "c" * 42, "c" * 44, "c" * 42 + "=", "c" * 42 + "é"])
def test_an_invalid_challenge_is_refused_by_its_field(traveller: Traveller, challenge: str) -> None:
    query = {"origin": ORIGIN, "challenge": challenge}
    assert traveller.client.get("/sign-in/sites/demo", query_string=query).status_code == 400
    sent = traveller.send("/sign-in/sites/demo", provider="acme", **query)
    assert sent.status_code == 400
    assert "challenge" in sent.text


def test_the_code_is_sent_only_to_the_page_that_opened_the_window(traveller: Traveller) -> None:
    back = traveller.window(CHALLENGE)
    assert f'data-origin="{ORIGIN}"' in back.text
    # Only this page needs its opener and keeps it.
    assert back.headers["Cross-Origin-Opener-Policy"] == "unsafe-none"
    assert traveller.client.get("/sign-in").headers["Cross-Origin-Opener-Policy"] == "same-origin"
    desk = traveller.client.get("/admin/sign-in")
    assert desk.headers["Cross-Origin-Opener-Policy"] == "same-origin"


def test_code_and_verifier_are_valid_together_once_and_on_their_site(
    client: FlaskClient, store: connection.Store
) -> None:
    site_settings.add(
        "blog", ["https://blog.example"], scheme=sample_threads.SETTINGS.scheme, now=here()
    )
    code = issue()
    for wrong in (
        {"verifier": "w" * 43}, {"verifier": CHALLENGE}, {"site": "blog"}, {"verifier": "é" * 43},
    ):  # fmt: skip
        api_requests.refused(redeem(client, code, **wrong), 401)
    assert redeem(client, code).status_code == 200
    api_requests.refused(redeem(client, code), 401)
    # The service issues only one code for each challenge.
    with pytest.raises(errors.Conflict):
        issue()


def test_a_code_expires(store: connection.Store, site: records.Site) -> None:
    code = issue()
    with pytest.raises(reader_accounts.Refused):
        enter(code, now=here() + window_codes.TERM + timedelta(seconds=1))
    assert enter(code).name == "Ann"


def test_concurrent_guesses_are_counted_one_by_one(
    open_store: connection.Store, site: records.Site
) -> None:
    with open_store.context():
        code = issue()

    def guess(number: int) -> str:
        with open_store.context():
            try:
                enter(f"aaaa aa{number:02}".replace("0", "a").replace("1", "b"))
            except reader_accounts.Refused as refused:
                return refused.code
        return "in"

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        said = list(pool.map(guess, range(3 * typed_codes.TRIES)))
    assert said.count("wrong-code") == typed_codes.TRIES
    assert set(said) == {"wrong-code", "too-many-guesses"}
    with open_store.context(), pytest.raises(reader_accounts.Refused):
        enter(code)


def test_one_of_many_concurrent_uses_of_a_code_succeeds(
    open_store: connection.Store, site: records.Site
) -> None:
    with open_store.context():
        code = issue()

    def use(_: int) -> bool:
        with open_store.context():
            try:
                return bool(enter(code))
            except reader_accounts.Refused:
                return False

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(use, range(16))) == 1


def test_a_missing_name_is_requested_before_the_code_is_used(
    client: FlaskClient, store: connection.Store
) -> None:
    nameless = oidc_client.ProviderUser(PERSON.identity, "")
    code = issue(person=nameless)
    for name in ("", "   ", "a" * 81, "admin"):
        refused = redeem(client, code, name=name)
        assert refused.status_code == 400
        assert refused.json is not None
        assert refused.json["field"] == "name"
    assert api_requests.answer(redeem(client, code, name="Bea"))["name"] == "Bea"
    # If the reader does not choose a name, the account gets the provider's name for the reader.
    code = issue("w" * 43, oidc_client.ProviderUser(identities.of_provider("oidc/x", "c"), "Cat"))
    assert api_requests.answer(redeem(client, code, verifier="w" * 43, name=""))["name"] == "Cat"


def test_an_account_with_a_role_keeps_its_name_and_gets_only_a_readers_token(
    client: FlaskClient, store: connection.Store
) -> None:
    newcomer = accounts.NewAccount(
        accounts.new_id(), "The owner", (PERSON.identity,), grants=(account_holders.OWNER,)
    )
    accounts.add(newcomer, secret=SECRET, now=here())
    entered = api_requests.answer(redeem(client, issue(), name="Somebody"))
    assert entered["name"] == "The owner"
    answer = client.get("/admin", headers=api_requests.bearer(entered))
    assert answer.status_code == 303


def test_different_subjects_and_issuers_are_different_accounts(
    store: connection.Store, site: records.Site
) -> None:
    """B9: a subject identifies a user only within its own provider."""
    made = set()
    for number, (issuer, sub) in enumerate(
        [("https://a.example", "1"), ("https://a.example", "2"), ("https://b.example", "1"),
         ("https://a.example", "1 "), ("https://a.example:1", "1")]
    ):  # fmt: skip
        person = oidc_client.ProviderUser(
            identities.of_provider(identities.at_issuer(issuer), sub), "Ann"
        )
        verifier = f"{number}" * 43
        made.add(enter(issue(verifier, person), verifier).id)
    assert len(made) == 5


def test_a_site_offers_only_its_own_providers(
    client: FlaskClient, traveller: Traveller, store: connection.Store
) -> None:
    offered = api_requests.answer(client.get("/api/v1/sites/demo/sign-in"))
    assert offered == {
        "mail": False,
        "providers": [{"name": "acme", "title": "Acme"}],
        "url": f"{provider_login.PUBLIC}/sign-in/sites/demo",
    }
    site_settings.add("blog", [ORIGIN], scheme=sample_threads.SETTINGS.scheme, now=here())
    blog = api_requests.answer(client.get("/api/v1/sites/blog/sign-in"))
    assert (blog["providers"], blog["url"]) == ([], "")
    query = {"origin": ORIGIN, "challenge": CHALLENGE}
    page = traveller.client.get("/sign-in/sites/blog", query_string=query)
    assert "Sign-in is not available right now." in page.text
    assert traveller.send("/sign-in/sites/blog", provider="acme", **query).status_code == 404
    way = traveller.way("/sign-in/sites/demo", provider="acme", **query)
    providers.withdraw("acme", ("demo",), at_desk=False)
    assert traveller.back(way).status_code == 404
    assert api_requests.refused(client.get("/api/v1/sites/nothing/sign-in"), 404)


def test_a_page_tells_whether_its_site_has_a_provider(
    client: FlaskClient, traveller: Traveller, store: connection.Store
) -> None:
    def may_enter(site: str) -> bool:
        answer = client.get(f"/api/v1/sites/{site}/comments?thread=page")
        options = api_requests.answer(answer)["options"]
        assert options["sign_in"] is site_settings.get(site).has_providers
        return bool(options["sign_in"])

    site_settings.add("blog", [ORIGIN], scheme=sample_threads.SETTINGS.scheme, now=here())
    assert (may_enter("demo"), may_enter("blog")) == (True, False)
    other = providers.Registration("other", "Other", "https://other.example", "client", "secret")
    providers.add(providers.make(other, SECRET, now=here()))
    assert not may_enter("blog")
    providers.offer("other", ("demo", "blog"), at_desk=False)
    assert (may_enter("demo"), may_enter("blog")) == (True, True)
    providers.withdraw("acme", ("demo",), at_desk=False)
    assert (may_enter("demo"), may_enter("blog")) == (True, True)
    providers.withdraw("other", ("demo",), at_desk=False)
    assert (may_enter("demo"), may_enter("blog")) == (False, True)
    providers.remove("other")
    assert (may_enter("demo"), may_enter("blog")) == (False, False)


def test_errors_of_a_window_are_html_pages(traveller: Traveller) -> None:
    for query in ({}, {"origin": ORIGIN}, {"origin": ORIGIN, "challenge": CHALLENGE, "next": "x"}):
        refused = traveller.client.get("/sign-in/sites/demo", query_string=query)
        assert refused.status_code == 400
        assert re.match(r"text/html", refused.headers["Content-Type"])
    query = {"origin": ORIGIN, "challenge": CHALLENGE}
    missing = traveller.client.get("/sign-in/sites/nothing", query_string=query)
    assert missing.status_code == 404
