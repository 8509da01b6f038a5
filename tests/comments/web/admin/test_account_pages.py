"""Test who can sign in to the admin console and use its account pages, and from which pages."""

import concurrent.futures
import gzip
import re

import flask
import pytest
from flask.testing import FlaskClient

from comments import errors
from comments.accounts import accounts
from comments.accounts.passwords import password_login
from comments.domain import records
from comments.domain.moderation import roles
from comments.sites import site_settings
from comments.store import connection
from comments.web.sign_in import signed_in
from datastore_emulator import inprocess
from tests.support.html import html_validator
from tests.support.people import account_holders
from tests.support.people.account_holders import OWNER, PASSWORD, SECRET, moderator
from tests.support.people.account_holders import here as now
from tests.support.people.admin_forms import OWN, browser, cookie, reset_of, send, sign_in, token_of
from tests.support.threads import sample_threads

pytestmark = pytest.mark.usefixtures("quick_passwords")

PAGES = ("/admin/sign-in", "/admin/welcome", "/admin/reset", "/admin/account", "/admin")


@pytest.fixture
def store(store: connection.Store, site: records.Site) -> connection.Store:
    return store


def test_a_session_is_a_host_only_cookie_that_no_script_reads(
    app: flask.Flask, store: connection.Store
) -> None:
    account_holders.account("ann", OWNER)
    response = sign_in(browser(app))
    assert response.headers["Location"] == "../admin"
    name, *rest = response.headers["Set-Cookie"].split("; ")
    assert name.startswith("__Host-flatthread=")
    assert {"Secure", "HttpOnly", "SameSite=Strict", "Path=/"} <= set(rest)
    assert not any(each.startswith("Domain") for each in rest)


def test_signed_in_accounts_see_only_their_own_sites(
    app: flask.Flask, store: connection.Store
) -> None:
    site_settings.add(
        "blog", ["https://blog.example"], scheme=sample_threads.SETTINGS.scheme, now=now()
    )
    account_holders.account("ann", OWNER)
    account_holders.account("bob", moderator("blog"))
    account_holders.account("cat")
    seen = {}
    for login in ("ann", "bob", "cat"):
        client = browser(app)
        sign_in(client, login)
        seen[login] = client.get("/admin").text
    assert "You own this service" in seen["ann"]
    assert "demo" in seen["ann"]
    assert "blog" in seen["ann"]
    assert "blog.example" in seen["bob"]
    assert "Moderator" in seen["bob"]
    assert "demo" not in seen["bob"]
    assert "no role on any site" in seen["cat"]


@pytest.mark.parametrize("page", PAGES)
def test_no_page_is_framed_or_cached_or_runs_inline_scripts(
    app: flask.Flask, store: connection.Store, page: str
) -> None:
    account_holders.account("ann", OWNER)
    client = browser(app)
    for _ in range(2):
        response = client.get(page)
        headers = response.headers
        rules = headers["Content-Security-Policy"].split("; ")
        assert "frame-ancestors 'none'" in rules
        assert "script-src 'self'" in rules
        assert "form-action 'self'" in rules
        assert "require-trusted-types-for 'script'" in rules
        assert "unsafe" not in headers["Content-Security-Policy"]
        assert headers["Cache-Control"] == "no-store"
        assert headers["Referrer-Policy"] == "same-origin"
        assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
        assert headers["X-Robots-Tag"] == "noindex"
        assert "Cookie" in headers["Vary"]
        assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\son\w+=|\sstyle=", response.text)
        sign_in(client)


@pytest.mark.usefixtures("store")
def test_a_page_is_compressed_and_no_two_pages_have_the_same_form_token(app: flask.Flask) -> None:
    """The length of a compressed page may not reveal a token that another page contains."""
    account_holders.account("ann", OWNER)
    client, tokens = browser(app), set()
    sign_in(client)
    for _ in range(2):
        packed = client.get("/admin", headers={"Accept-Encoding": "gzip"})
        assert {"Accept-Encoding", "Cookie"} <= set(packed.vary)
        document = gzip.decompress(packed.data).decode()
        tokens |= set(re.findall(r'name="form" value="(\w+)"', document))
    assert len(tokens) == 2


@pytest.mark.usefixtures("store")
class TestForgery:
    """Tests with changes that a foreign page makes a browser send."""

    FOREIGN = (
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
        {"Sec-Fetch-Site": "cross-site", "Origin": "http://localhost"},
        {"Origin": "null"},
        {"Origin": "http://localhost.evil.example"},
        {"Origin": "http://evil.example/localhost"},
        {"Origin": "http://localhost:81"},
        {"Referer": "http://localhost/admin"},
        {},
    )

    @pytest.mark.parametrize("headers", FOREIGN)
    def test_a_foreign_page_changes_nothing(self, app: flask.Flask, headers: dict) -> None:
        ann = account_holders.account("ann", OWNER)
        client = browser(app)
        sign_in(client)
        form = token_of(client)
        invitation, reset = account_holders.invite(OWNER, now=now()), reset_of(ann)
        for path, sent in (
            ("/admin/sign-in", {"login": "ann", "password": PASSWORD}),
            ("/admin/sign-out", {"form": form}),
            ("/admin/sign-out/everywhere", {"form": form}),
            ("/admin/welcome", {"token": invitation, "name": "E", "login": "e",
                                "password": PASSWORD}),
            ("/admin/welcome/accept", {"token": invitation}),
            ("/admin/reset", {"token": reset, "password": "another password"}),
            ("/admin/account/password", {"form": form, "current": PASSWORD,
                                         "password": "another password"}),
        ):  # fmt: skip
            response = send(client, path, headers, **sent)
            assert response.status_code == 403, path
            assert "cross-site" in response.text
            assert "Set-Cookie" not in response.headers
        assert client.get("/admin").status_code == 200
        assert accounts.staff() == [accounts.by_text("ann", SECRET)] == [ann]

    @pytest.mark.parametrize(
        "headers", [OWN, {"Origin": "http://localhost"}, {"Origin": "https://localhost"}]
    )
    def test_our_own_page_may_change(self, app: flask.Flask, headers: dict) -> None:
        account_holders.account("ann", OWNER)
        client = browser(app)
        sign_in(client)
        response = send(client, "/admin/sign-out", headers, form=token_of(client))
        assert response.status_code == 303

    def test_a_form_without_the_sessions_own_token_changes_nothing(self, app: flask.Flask) -> None:
        account_holders.account("ann", OWNER)
        account_holders.account("bob", OWNER)
        client, other = browser(app), browser(app)
        sign_in(client)
        sign_in(other, "bob")
        old = token_of(client)
        for form in (
            {"x": "y"},
            {"form": ""},
            {"form": "a" * 26},
            {"form": token_of(other)},
        ):
            response = send(client, "/admin/sign-out", **form)
            assert response.status_code == 403
            assert "stale-form" in response.text
        sign_in(client)
        assert send(client, "/admin/sign-out", form=old).status_code == 403
        assert client.get("/admin").status_code == 200


@pytest.mark.parametrize(
    ("grants", "allowed"),
    [
        ([], set()),
        ([moderator("blog")], set()),
        ([moderator("demo")], {"moderator"}),
        ([roles.Grant(roles.Role.OWNER, "blog"), moderator("demo")], {"moderator"}),
        ([roles.Grant(roles.Role.OWNER, "demo")], {"moderator", "owner"}),
        ([moderator("*")], {"moderator"}),
        ([OWNER], {"moderator", "owner"}),
    ],
)
def test_a_role_is_required_on_its_own_site(
    app: flask.Flask, store: connection.Store, grants: list[roles.Grant], allowed: set[str]
) -> None:
    found = account_holders.account("ann", *grants)
    sent = {"Cookie": f"{signed_in.COOKIE}={account_holders.session(found.id).token}"}
    for role in roles.GRANTED:
        with app.test_request_context("/admin", headers=sent):
            if role.value in allowed:
                assert signed_in.require(role, "demo") == found
            else:
                with pytest.raises(errors.Forbidden) as refused:
                    signed_in.require(role, "demo")
                assert refused.value.code == "not-allowed"
                assert refused.value.params == {"role": role, "site": "demo"}
        with app.test_request_context("/admin"), pytest.raises(signed_in.NotSignedIn):
            signed_in.require(role, "demo")


@pytest.mark.parametrize("path", ["/admin", "/admin/account"])
def test_visitors_who_are_not_signed_in_are_redirected_to_sign_in(
    client: FlaskClient, path: str
) -> None:
    response = client.get(path)
    assert response.status_code == 303
    assert response.headers["Location"].endswith("admin/sign-in")
    # The browser sends no cookie when a link in mail is followed, so the page reloads itself once.
    again = client.get(path, headers={"Sec-Fetch-Site": "cross-site"})
    assert again.status_code == 200
    assert 'http-equiv="refresh"' in again.text


def test_wrong_credentials_are_indistinguishable_and_too_many_attempts_get_a_retry_time(
    app: flask.Flask, store: connection.Store
) -> None:
    account_holders.account("ann", OWNER)
    pages = {
        send(browser(app), "/admin/sign-in", login="somebody", password=PASSWORD).text,
        send(browser(app), "/admin/sign-in", login="ann", password="another one").text.replace(
            'value="ann"', 'value="somebody"'
        ),
    }
    assert len(pages) == 1
    assert "Name, password or code is wrong." in pages.pop()
    for _ in range(password_login.PER_NAME.most):
        response = send(browser(app), "/admin/sign-in", login="ann", password="another one")
    assert response.status_code == 429
    assert 0 < int(response.headers["Retry-After"]) <= 900
    assert PASSWORD not in response.text


def test_signing_out_ends_the_session_and_everywhere_ends_all(
    app: flask.Flask, store: connection.Store
) -> None:
    account_holders.account("ann", OWNER)
    one, two, three = (browser(app) for _ in range(3))
    for client in (one, two, three):
        sign_in(client)
    kept = cookie(one)
    assert send(one, "/admin/sign-out", form=token_of(one)).status_code == 303
    assert cookie(one) == ""
    one.set_cookie(signed_in.COOKIE, kept)
    assert one.get("/admin").status_code == 303
    assert two.get("/admin").status_code == 200
    assert send(two, "/admin/sign-out/everywhere", form=token_of(two)).status_code == 303
    assert three.get("/admin").status_code == 303


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"login=ann&login=bob&password=x", "application/x-www-form-urlencoded"),
        (b"login=ann&password=x&role=owner", "application/x-www-form-urlencoded"),
        (b"login=%ff&password=x", "application/x-www-form-urlencoded"),
        (b"login=a%00b&password=x", "application/x-www-form-urlencoded"),
        (b"login=ann", "application/x-www-form-urlencoded"),
        (b"login=%zz&password=x", "application/x-www-form-urlencoded"),
        (b"login=" + b"a" * 2_000 + b"&password=x", "application/x-www-form-urlencoded"),
        (b'{"login": "ann", "password": "x"}', "application/json"),
        (b"--x\r\n\r\n--x--", "multipart/form-data; boundary=x"),
        (b"a&" * 30_000, "application/x-www-form-urlencoded"),
    ],
)
def test_a_malformed_form_is_refused(client: FlaskClient, body: bytes, content_type: str) -> None:
    response = client.post("/admin/sign-in", data=body, content_type=content_type, headers=OWN)
    assert response.status_code in {400, 413, 415}
    assert "Set-Cookie" not in response.headers


def test_nobody_is_signed_in_while_the_store_does_not_answer(
    app: flask.Flask, short_deadline: connection.Store, engine: inprocess.Engine, site: records.Site
) -> None:
    client = app.test_client()
    with short_deadline.context():
        account_holders.account("ann", OWNER)
    sign_in(client)
    engine.close()
    for path in ("/admin", "/admin/account"):
        response = client.get(path)
        assert response.status_code == 503
        assert "Your sites" not in response.text
    assert send(client, "/admin/sign-in", login="ann", password=PASSWORD).status_code == 503


@pytest.mark.slow
def test_a_guest_never_gets_an_owners_response(app: flask.Flask, store: connection.Store) -> None:
    """Clients concurrently send requests to one process, each with a separate cookie or none."""
    account_holders.account("ann", OWNER)
    owner = browser(app)
    sign_in(owner)
    token = cookie(owner)

    def ask(number: int) -> tuple[bool, int]:
        client = app.test_client()
        is_owner = number % 2 == 0
        if is_owner:
            client.set_cookie(signed_in.COOKIE, token)
        response = client.get("/admin")
        assert ("Your sites" in response.text) == is_owner
        return is_owner, response.status_code

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        found = set(pool.map(ask, range(500)))
    assert found == {(True, 200), (False, 303)}


def test_every_page_is_valid_html(app: flask.Flask, store: connection.Store) -> None:
    account_holders.account("ann", OWNER)
    client, pages = browser(app), []
    for _ in range(2):
        pages += [client.get(page).text for page in PAGES if client.get(page).status_code == 200]
        sign_in(client)
    pages += [
        client.get("/admin", headers={"Sec-Fetch-Site": "cross-site"}).text,
        send(client, "/admin/reset", token="x", password=PASSWORD).text,
        send(client, "/admin/sign-out", {}).text,
        send(browser(app), "/admin/sign-in", login="eve", password=PASSWORD).text,
    ]
    assert len(pages) == 12
    assert html_validator.complaints(pages) == [[]] * len(pages)


def test_no_link_or_form_leads_to_another_site(app: flask.Flask, store: connection.Store) -> None:
    account_holders.account("ann", OWNER)
    client = browser(app)
    sign_in(client)
    for page in PAGES:
        for query in ("", "?next=//evil.example", "?redirect=https://evil.example"):
            html = client.get(page + query).text
            targets = re.findall(r'(?:href|action|src)="([^"]*)"', html)
            assert targets
            assert all(each.startswith((".", "admin", "otpauth:")) for each in targets), targets
            assert "evil.example" not in html
