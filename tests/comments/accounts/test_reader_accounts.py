"""A token for a site's own account needs the site's key, the right audience and a valid time."""

import base64
import hashlib
import hmac
import json
import threading
from datetime import timedelta
from typing import Any

import itsdangerous
import jwt
import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from comments import config
from comments.accounts import accounts, reader_accounts, site_keys
from comments.sites import site_settings
from comments.store import connection, reads
from comments.store.models import comment_rows
from comments.web.api.callers import api_tokens
from comments.web.http import problems
from tests.support.people import account_holders, api_requests, site_tokens
from tests.support.people.account_holders import SECRET, here
from tests.support.threads import sample_threads

SESSION = "/api/v1/sites/demo/session"


@pytest.fixture
def shared(store: connection.Store, client: FlaskClient) -> str:
    return site_tokens.share()


def enter(client: FlaskClient, token: str, site: str = "demo", **headers: str) -> TestResponse:
    path = f"/api/v1/sites/{site}/session"
    return client.post(path, json={"token": token}, headers=headers)


def entered(client: FlaskClient, key: str, **more: Any) -> dict:
    response = enter(client, site_tokens.token(key, **more))
    assert response.status_code == 200, response.text
    return api_requests.answer(response)


def author_of(store: connection.Store, posted: dict) -> str:
    with store.context():
        row = reads.get(comment_rows.comment_key(posted["comment"]["id"]))
    return str(row.author_id)


def test_a_reader_posts_edits_votes_and_retracts_as_one_author(
    client: FlaskClient, store: connection.Store, shared: str
) -> None:
    ann, bob = entered(client, shared), entered(client, shared, sub="43", name="Bob")
    assert (ann["name"], bob["name"]) == ("Ann", "Bob")
    posted = api_requests.answer(
        client.post(
            api_requests.THREAD,
            json={"name": "Somebody", "body": "Hi"},
            headers=api_requests.bearer(ann),
        )
    )
    # The comment shows the account's name, not the name in the request.
    assert posted["comment"]["author"]["name"] == "Ann"
    assert author_of(store, posted).startswith("a:")
    one = api_requests.ONE + posted["comment"]["id"]
    assert (
        client.patch(one, json={"body": "x"}, headers=api_requests.bearer(bob)).status_code == 403
    )
    assert (
        client.patch(one, json={"body": "x"}, headers=api_requests.bearer(posted)).status_code
        == 200
    )
    vote = api_requests.answer(
        client.put(f"{one}/vote", json={"value": 1}, headers=api_requests.bearer(bob))
    )
    mine = client.get("/api/v1/sites/demo/votes?thread=t", headers=api_requests.bearer(vote)).json
    assert mine is not None
    assert list(mine["votes"].values()) == [1]
    # On a later visit with a different name, the reader is still the same author.
    again = entered(client, shared, name="Ann B")
    assert client.delete(one, headers=api_requests.bearer(again)).status_code == 200


def test_keys_of_both_kinds_sign_and_a_removed_one_does_not(
    client: FlaskClient, store: connection.Store, shared: str
) -> None:
    private = site_tokens.pair()
    assert enter(client, site_tokens.token(private, "EdDSA")).status_code == 200
    assert enter(client, site_tokens.token(shared)).status_code == 200
    for key in site_keys.every("demo"):
        site_keys.remove("demo", key.id)
    assert enter(client, site_tokens.token(private, "EdDSA")).status_code == 401
    assert enter(client, site_tokens.token(shared)).status_code == 401


def _unsigned(header: dict, claims: dict) -> str:
    parts = (json.dumps(each).encode() for each in (header, claims))
    return ".".join(base64.urlsafe_b64encode(each).decode().rstrip("=") for each in parts) + "."


HOUR = 3600
# Times are offsets because test ids must be the same in every process.
WRONG_CLAIMS: list[dict[str, Any]] = [
    {"exp": None},
    {"exp": timedelta(minutes=-2)},
    {"exp": timedelta(hours=26)},
    {"exp": "9999999999"},
    {"exp": True},
    {"aud": None},
    {"aud": "flatthread:blog"},
    {"aud": "flatthread:"},
    {"aud": "demo"},
    {"aud": ["flatthread:blog", "x"]},
    {"aud": [["flatthread:demo"]]},
    {"sub": None},
    {"sub": ""},
    {"sub": 42},
    {"name": None},
    {"name": 7},
    {"nbf": timedelta(hours=1)},
    {"iat": timedelta(hours=1)},
]


@pytest.mark.parametrize("claims", WRONG_CLAIMS, ids=str)
def test_a_token_for_another_audience_or_time_is_refused(
    client: FlaskClient, store: connection.Store, shared: str, claims: dict
) -> None:
    claims = {
        name: int((here() + value).timestamp()) if isinstance(value, timedelta) else value
        for name, value in claims.items()
    }
    if isinstance(claims.get("sub"), int):
        token = jwt.api_jws.encode(
            json.dumps(site_tokens.claims() | claims).encode(), shared, algorithm="HS256"
        )
    else:
        token = site_tokens.token(shared, **claims)
    api_requests.refused(enter(client, token), 401)
    assert api_requests.stored(store, "Account") == 0


@pytest.mark.parametrize("claims", [b'{"sub": "\xff"}', b'{"sub": ' + b"[" * 2_500])
def test_claims_that_cannot_be_read_are_refused(
    client: FlaskClient, shared: str, claims: bytes
) -> None:
    api_requests.refused(enter(client, jwt.api_jws.encode(claims, shared, algorithm="HS256")), 401)


@pytest.mark.parametrize(
    ("claims", "field"),
    [({"sub": " "}, "sub"), ({"sub": "x" * 1_001}, "sub"), ({"name": ""}, "name"),
     ({"name": "Moderator"}, "name"), ({"name": "x" * 200}, "name"), ({"name": "\u202e"}, "name")],
)  # fmt: skip
def test_an_invalid_name_is_refused_by_its_field(
    client: FlaskClient, store: connection.Store, shared: str, claims: dict, field: str
) -> None:
    api_requests.refused(enter(client, site_tokens.token(shared, **claims)), 400, field)
    assert api_requests.stored(store, "Account") == 0


@pytest.mark.filterwarnings("ignore::jwt.warnings.InsecureKeyLengthWarning")
def test_a_token_not_signed_by_a_key_of_the_site_is_refused(
    client: FlaskClient, store: connection.Store, shared: str
) -> None:
    private, claims = site_tokens.pair(), site_tokens.claims()
    pem = site_tokens.pem_of(private)
    site_settings.add(
        "blog", ["https://blog.example"], scheme=sample_threads.SETTINGS.scheme, now=here()
    )
    blogs = site_tokens.share("blog")
    good = site_tokens.token(shared)
    header, body, signature = good.split(".")
    # PyJWT refuses to sign with a public key, so the test signs this forgery itself.
    swapped = jwt.utils.base64url_encode(b'{"alg":"HS256"}').decode() + "." + body
    mac = hmac.digest(pem.encode(), swapped.encode(), hashlib.sha256)
    forged = [
        site_tokens.token("another secret of thirty-two bytes"),
        site_tokens.token(blogs),
        site_tokens.token(site_tokens.Private.generate(), "EdDSA"),
        site_tokens.token(shared, "HS512"),
        f"{swapped}.{jwt.utils.base64url_encode(mac).decode()}",
        _unsigned({"alg": "none", "typ": "JWT"}, claims),
        _unsigned({"alg": "None"}, claims),
        _unsigned({}, claims),
        f"{header}.{body}.",
        f"{header}.{body}",
        f"{header}.{body}.{signature[:-4]}AAAA",
        good + "x",
        jwt.encode(claims, shared, algorithm="HS256", headers={"crit": ["x"], "x": 1}),
        "a.b.c", "...", "x" * 4_000, "\u00e9.b.c",
        # The service signed these tokens for other purposes.
        api_tokens.sign(api_tokens.Guest("demo", "g:ann"), secret=SECRET),
        str(itsdangerous.URLSafeSerializer(SECRET, salt="flatthread unsubscribe 1").dumps(["a"])),
    ]  # fmt: skip
    for token in forged:
        api_requests.refused(enter(client, token), 401)
    # A different site refuses this site's token.
    assert enter(client, good, site="blog").status_code == 401
    assert enter(client, "x" * 4_001).status_code == 400
    assert api_requests.stored(store, "Account") == 0
    assert enter(client, good).status_code == 200


def test_a_sites_token_is_not_an_api_token(client: FlaskClient, shared: str) -> None:
    header = {"Authorization": f"Bearer {site_tokens.token(shared)}"}
    refused = client.post(api_requests.THREAD, json={"name": "Ann", "body": "b"}, headers=header)
    api_requests.refused(refused, 401)


def test_an_account_belongs_to_one_site_and_one_subject(
    client: FlaskClient, store: connection.Store, shared: str
) -> None:
    site_settings.add(
        "blog", ["https://blog.example"], scheme=sample_threads.SETTINGS.scheme, now=here()
    )
    blogs = site_tokens.share("blog")
    entered(client, shared)
    entered(client, shared)
    entered(client, shared, sub="43")
    assert enter(client, site_tokens.token(blogs, aud="flatthread:blog"), "blog").status_code == 200
    assert api_requests.stored(store, "Account") == 3
    assert accounts.staff() == []


def test_a_guest_or_reader_with_somebodys_address_takes_nothing_over(
    client: FlaskClient, store: connection.Store, shared: str
) -> None:
    owner = account_holders.account("ann", account_holders.OWNER, mail="ann@example.org")
    guest = api_requests.post(
        client, "Ann", email="ann@example.org", website="https://evil.example"
    )
    reader = entered(client, shared, email="ann@example.org", email_verified=True)
    posted = api_requests.answer(
        client.post(
            api_requests.THREAD,
            json={"name": "x", "body": "b", "email": "ann@example.org"},
            headers=api_requests.bearer(reader),
        )
    )
    ids = {author_of(store, guest), author_of(store, posted), owner.author}
    assert len(ids) == 3
    assert accounts.by_text("ann@example.org", SECRET) == owner


def test_an_unchanged_visit_writes_nothing_and_concurrent_first_visits_create_one_account(
    open_store: connection.Store, client: FlaskClient
) -> None:
    with open_store.context():
        shared = site_tokens.share()
    token, start, found = site_tokens.token(shared), threading.Barrier(8), []

    def visit() -> None:
        with open_store.context():
            start.wait()
            reader = reader_accounts.of_site(token, "demo", secret=SECRET, now=here())
            found.append(reader_accounts.sign_in(reader, secret=SECRET, now=here()))

    threads = [threading.Thread(target=visit) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({each.id for each in found}) == 1
    assert api_requests.stored(open_store, "Account") == 1


def test_a_token_is_invalid_after_its_epoch_or_term_and_on_other_sites(
    client: FlaskClient, store: connection.Store, settings: config.Settings, shared: str
) -> None:
    ann = entered(client, shared)
    site_settings.add(
        "blog", ["https://blog.example"], scheme=sample_threads.SETTINGS.scheme, now=here()
    )
    comment = {"name": "Ann", "body": "b"}
    elsewhere = "/api/v1/sites/blog/comments?thread=t"
    api_requests.refused(
        client.post(elsewhere, json=comment, headers=api_requests.bearer(ann)), 401
    )
    found = api_tokens.read(f"Bearer {ann['token']}", secret=SECRET, term=60)
    assert isinstance(found, api_tokens.Member)
    with pytest.raises(problems.Unauthenticated, match="token-expired"):
        api_tokens.read(f"Bearer {ann['token']}", secret=SECRET, term=-1)
    accounts.end_sessions(found.account, account_holders.cause())
    refused = client.post(api_requests.THREAD, json=comment, headers=api_requests.bearer(ann))
    assert api_requests.refused(refused, 401) == "token-expired"
    ann = entered(client, shared)
    accounts.remove(found.account)
    api_requests.refused(
        client.post(api_requests.THREAD, json=comment, headers=api_requests.bearer(ann)), 401
    )


def test_pages_of_other_sites_sign_nobody_in(client: FlaskClient, shared: str) -> None:
    refused = enter(client, site_tokens.token(shared), Origin="https://evil.example")
    assert api_requests.refused(refused, 403) == "origin-not-allowed"


def test_a_stored_token_is_readable() -> None:
    """A change to this golden value would sign all readers out."""
    token = (
        "a.eyJzIjoiZGVtbyIsImEiOiJhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYSIsImUiOiIw"
        "MGZmIn0.awsL6A.tBlduLYyIbYM0B49u_AkBkRkgE5vSDSY_4LmwvmdR9E"
    )
    member = api_tokens.Member("demo", "a" * 26, "00ff")
    century = 100 * 365 * 24 * HOUR
    assert api_tokens.read(f"Bearer {token}", secret=SECRET, term=century) == member


def test_exp_has_a_minute_of_leeway(store: connection.Store, shared: str) -> None:
    now = here()
    token = site_tokens.token(shared, exp=int(now.timestamp()) - 30)
    assert reader_accounts.of_site(token, "demo", secret=SECRET, now=now).name == "Ann"
    with pytest.raises(reader_accounts.Refused):
        reader_accounts.of_site(token, "demo", secret=SECRET, now=now + timedelta(minutes=2))
