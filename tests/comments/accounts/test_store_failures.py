"""Sign-in survives the failure of any single store call.

As in tests/system/test_store_failures.py, each action runs with a fault before or after its n-th
store call is applied, for each n until the action makes fewer than n calls. The action succeeds or
answers 503 with Retry-After; after a retry, its effect has happened exactly once.
"""

import itertools
from collections.abc import Callable, Iterator

import flask
import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from comments import errors
from comments.accounts import accounts, identities, security_log
from comments.accounts.links import address_links
from comments.accounts.oidc import oidc_client, popup_exchange
from comments.store import connection, reads
from comments.transfer import personal_data
from datastore_emulator import faults, inprocess
from tests.support import prepared_stores
from tests.support.people import account_holders, api_requests, provider_login, site_tokens
from tests.support.people.account_holders import PASSWORD, here
from tests.support.threads import sample_threads

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick_passwords")]

OWN = {"Sec-Fetch-Site": "same-origin"}
FAULTS = list(itertools.product(("UNAVAILABLE", "PERMISSION_DENIED"), ("before", "after")))
GOOD = {200, 201, 202, 303}


@pytest.fixture
def engine() -> Iterator[inprocess.Engine]:
    """Use optimistic mode; in other modes, a lost BeginTransaction answer leaves locks for 2 s."""
    with prepared_stores.opened(None, "optimistic") as engine:
        yield engine


def _each(
    engine: inprocess.Engine, make: Callable[[int], Callable[[], TestResponse]]
) -> Iterator[tuple[int, Callable[[], TestResponse]]]:
    """For each failure, yield the response's status and a function that repeats the request."""
    number = 0
    for status, when in FAULTS:
        for call in itertools.count(1):
            number += 1
            act = make(number)
            fault = {"call": call, "when": when, "status": status}
            plan = faults.Plan.parse({"rules": [fault]})
            engine.install_faults(plan)
            try:
                response = act()
            finally:
                engine.install_faults(None)
            if not plan.log:
                break
            assert response.status_code in GOOD | {503}, (fault, response.text)
            if response.status_code == 503:
                assert int(response.headers["Retry-After"]) > 0
            yield response.status_code, act


def _seen(engine: inprocess.Engine, make: Callable[[int], Callable[[], TestResponse]]) -> set[int]:
    """Return the response statuses while store calls fail; check that each repeat succeeds."""
    seen = set()
    for status, act in _each(engine, make):
        seen.add(status)
        assert act().status_code in GOOD
    return seen


def _cause() -> security_log.Cause:
    return account_holders.cause(here())


def _network(number: int) -> dict[str, str]:
    return {"REMOTE_ADDR": f"198.51.{number // 200}.{number % 200 + 1}"}


@pytest.mark.usefixtures("site")
def test_a_sign_in_succeeds_or_can_be_repeated(
    app: flask.Flask, engine: inprocess.Engine, open_store: connection.Store
) -> None:
    def make(number: int) -> Callable[[], TestResponse]:
        with open_store.context():
            account_holders.account(f"n{number}", account_holders.OWNER)
        client = app.test_client()
        form = {"login": f"n{number}", "password": PASSWORD}
        return lambda: client.post(
            "/admin/sign-in", data=form, headers=OWN, environ_overrides=_network(number)
        )

    assert _seen(engine, make) == {303, 503}


@pytest.mark.usefixtures("site")
def test_an_invitation_creates_one_account_whichever_call_fails(
    app: flask.Flask, engine: inprocess.Engine, open_store: connection.Store
) -> None:
    def make(number: int) -> Callable[[], TestResponse]:
        with open_store.context():
            token = account_holders.invite(account_holders.moderator(), now=here())
        form = {"token": token, "name": "Ann", "login": f"n{number}", "password": PASSWORD}
        client = app.test_client()
        return lambda: client.post("/admin/welcome", data=form, headers=OWN)

    seen = set()
    for status, act in _each(engine, make):
        seen.add(status)
        # Either the repeat accepts the invitation, or the first attempt already used it.
        assert act().status_code in {303, 400}
    assert seen == {303, 503}
    with open_store.context():
        found = [each.login for each in accounts.staff()]
        assert len(found) == len(set(found))
        for number in range(1, len(found) + 1):
            assert account_holders.sign_in(f"n{number}", now=here())


@pytest.mark.usefixtures("site")
def test_a_confirmed_address_leads_to_its_account_whichever_call_fails(
    app: flask.Flask, engine: inprocess.Engine, open_store: connection.Store
) -> None:
    def make(number: int) -> Callable[[], TestResponse]:
        mail, client, cause = f"n{number}@example.org", app.test_client(), _cause()
        with open_store.context():
            person = account_holders.account(
                f"n{number}", account_holders.OWNER, mail=f"old-{mail}"
            )
            session = account_holders.session(person.id)
            token = address_links.link_key(person, f"new-{mail}", cause)
        client.set_cookie("__Host-flatthread", session.token, secure=True)
        return lambda: client.post(
            "/admin/address", data={"token": token}, headers=OWN, base_url="https://localhost"
        )

    seen = set()
    for status, act in _each(engine, make):
        seen.add(status)
        # Either the repeat confirms the address, or the first attempt did, which ended the session.
        assert act().status_code in {303, 400, 403}
    assert seen == {303, 503}
    with open_store.context():
        for person in accounts.staff():
            address = accounts.address_of(person, _cause().secret, now=here())
            assert address == f"new-{person.login}@example.org"
            assert accounts.by_text(address, _cause().secret) == person
            with pytest.raises(errors.NotFound):
                accounts.by_text(f"old-{person.login}@example.org", _cause().secret)


def test_a_sites_reader_gets_one_account_whichever_call_fails(
    client: FlaskClient, engine: inprocess.Engine, open_store: connection.Store
) -> None:
    with open_store.context():
        shared = site_tokens.share()

    def make(number: int) -> Callable[[], TestResponse]:
        sent = {"token": site_tokens.token(shared, sub=str(number))}
        return lambda: client.post("/api/v1/sites/demo/session", json=sent)

    assert _seen(engine, make) == {200, 503}
    with open_store.context():
        leading = {row.key.path[-1].name for row in reads.fetch(reads.Query("Identity"))}
    assert api_requests.stored(open_store, "Account") == len(leading)


def test_a_popup_code_creates_one_account_whichever_call_fails(
    client: FlaskClient, engine: inprocess.Engine, open_store: connection.Store
) -> None:
    def make(number: int) -> Callable[[], TestResponse]:
        verifier = f"{number:043}"
        person = oidc_client.ProviderUser(identities.of_provider("oidc/x", f"{number}"), "Ann")
        with open_store.context():
            code = popup_exchange.issue(
                person,
                "demo",
                provider_login.challenge_of(verifier),
                secret=account_holders.SECRET,
                now=here(),
            )
        sent = {"verifier": verifier, "code": code}
        return lambda: client.post("/api/v1/sites/demo/sign-in/provider", json=sent)

    seen = set()
    for status, act in _each(engine, make):
        seen.add(status)
        # Either the repeat signs in, or the first attempt used up the code and the reader starts
        # again.
        assert act().status_code in {200, 401}
    assert seen == {200, 503}
    with open_store.context():
        leading = {row.key.path[-1].name for row in reads.fetch(reads.Query("Identity"))}
    assert api_requests.stored(open_store, "Account") == len(leading)


def test_a_failed_erasure_is_continued(
    client: FlaskClient, engine: inprocess.Engine, open_store: connection.Store
) -> None:
    authors = []

    def make(number: int) -> Callable[[], TestResponse]:
        posted = api_requests.post(client, f"Name {number}", f"Text {number}")
        with open_store.context():
            authors.append(personal_data.author_of(posted["comment"]["id"]))
        header = api_requests.bearer(posted)
        return lambda: client.delete("/api/v1/sites/demo/author", headers=header)

    assert _seen(engine, make) == {200, 503}
    with open_store.context():
        for author in authors[:-1]:
            told = personal_data.export(
                author, secret=sample_threads.SETTINGS.secret, now=sample_threads.START
            )
            assert told.comments == []
