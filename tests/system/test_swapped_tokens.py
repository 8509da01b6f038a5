"""Every token and link is valid only in its own place and is refused in every other place.

`KEYS` contains every kind of token that the service accepts; the product makes all of them with one
secret. A `Door` is a header, field or parameter that accepts tokens. The doors include every route
in `every_route` that accepts a link's token; a new route of this kind needs a line in `OF_LINKS`.
"""

import dataclasses
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import flask
import msgspec
import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from comments import app as apps
from comments import config
from comments.accounts.links import email_login, invitations, one_time_links, typed_codes
from comments.domain import records
from comments.domain.crypto import encryption
from comments.limits.site_request import SiteRequest
from comments.moderation import decisions
from comments.notifications import double_opt_in, form_tokens, moderation_links
from comments.posting import admission, new_comment
from comments.sites import site_settings
from comments.store import connection, transactions
from comments.web.api.callers import api_tokens
from comments.web.sign_in import signed_in
from tests.support import datastores, store_snapshot
from tests.support.every_route import ROWS
from tests.support.outside import mail_server
from tests.support.people import (
    account_holders,
    api_requests,
    moderators,
    proof_solver,
    site_tokens,
)
from tests.support.people.account_holders import PASSWORD, SECRET
from tests.support.threads import sample_threads

OWN = {"Sec-Fetch-Site": "same-origin"}
CRON = "a secret of cron in the tests"
BOSS = "boss@demo.example"
GUARDED = "/api/v1/sites/guarded"
GUEST = api_tokens.sign(api_tokens.Guest("demo", "g:ann"), secret=SECRET)
# Comparisons ignore these kinds, because the service counts failed attempts and each test needs
# separate sessions.
COUNTED = ("RateBucket", store_snapshot.SESSIONS)


class Service:
    """A service with every door, and a client for the service."""

    def __init__(self, store: connection.Store, settings: config.Settings) -> None:
        self.app: flask.Flask = apps.create_app(settings, store)
        self.client: FlaskClient = self.app.test_client()
        now, scheme = datetime.now(UTC), sample_threads.SETTINGS.scheme
        self.site = site_settings.add("demo", ["https://demo.example"], scheme=scheme, now=now)
        site_settings.change("demo", moderators=[BOSS])
        site_settings.add("guarded", ["https://guarded.example"], scheme=scheme, now=now)
        site_settings.change("guarded", guard={"proof_of_work": 10})
        self.shared = site_tokens.share()
        self.owner = account_holders.account("owner", account_holders.OWNER)
        self.reader = account_holders.account("reader", password="")
        self.lost = account_holders.account("lost", account_holders.moderator(), password="")
        self.mine = account_holders.session(self.owner.id).token
        self.number = 0
        for row in [self.post(), self.post()]:
            path, headers = f"{api_requests.ONE}{row.id}/vote", {"Authorization": f"Bearer {GUEST}"}
            assert self.client.put(path, json={"value": 1}, headers=headers).status_code == 200
        self.sign_in()

    def post(self) -> records.Comment:
        self.number += 1
        author = records.Author("Bob", id="g:bob")
        draft = admission.Submission("t", None, author, f"number {self.number}")
        return new_comment.post(
            draft, SiteRequest(self.site, sample_threads.SETTINGS, datetime.now(UTC))
        ).comment

    def sign_in(self) -> None:
        """Request a sign-in link as a reader."""
        now, self.key = datetime.now(UTC), one_time_links.new_token()
        address = encryption.seal("ann@example.org", "sign-in link", SECRET, now=now)
        content = msgspec.json.encode({"site": "demo", "content": address}).decode()
        purpose, term = one_time_links.LinkPurpose.SIGN_IN, email_login.TERM
        transactions.transaction(
            lambda: transactions.apply(
                one_time_links.issue_writes(self.key, purpose, content, SECRET, now=now, term=term)
            )
        )
        link = msgspec.json.encode([self.key, "demo", "ann@example.org"]).decode()
        self.link = encryption.seal(link, "sign-in link", SECRET, now=now)
        self.code = email_login.code(self.link, secret=SECRET, now=now)

    def signed_in(self, token: str) -> FlaskClient:
        client = self.app.test_client()
        client.set_cookie(signed_in.COOKIE, token)
        return client

    def form_token(self) -> str:
        page = self.signed_in(self.mine).get("/admin/account").text
        found = re.search(r'name="form" value="([a-z2-7]{52})"', page)
        assert found
        return found[1]


def _warrant(service: Service) -> str:
    actor, now = records.Actor("cli", "Ada"), datetime.now(UTC)
    held = decisions.decide("demo", service.post().id, records.Verb.HOLD, actor, now=now)
    return moderation_links.link(held, BOSS, secret=SECRET, now=now)


def _request(_house: Service) -> str:
    request = double_opt_in.SubscriptionRequest(
        "ann@example.org", "demo", "", "g:ann", replies=True, id=one_time_links.new_token()
    )
    text = msgspec.json.encode(request).decode()
    return encryption.seal(text, "confirm", SECRET, now=datetime.now(UTC))


def _cursor(service: Service) -> str:
    return str(api_requests.answer(service.client.get(f"{api_requests.THREAD}&limit=1"))["cursor"])


def _votes_cursor(service: Service) -> str:
    return str(api_requests.answer(_votes(service, limit="1"))["cursor"])


def _votes(service: Service, **query: str) -> TestResponse:
    headers = {"Authorization": f"Bearer {GUEST}"}
    query = {"thread": "t", **query}
    return service.client.get("/api/v1/sites/demo/votes", query_string=query, headers=headers)


FORMS = {"confirm": "confirm", "unsubscribe": "unsubscribe", "decision": "decide"}


def _form_token(name: str, purpose: str) -> Callable[[Service], str]:
    """Return the token that a link's page posts."""
    return lambda service: form_tokens.make(
        KEYS[name](service), purpose, SECRET, now=datetime.now(UTC)
    )


KEYS: dict[str, Callable[[Service], str]] = {
    "guest": lambda _: GUEST,
    "member": lambda service: api_tokens.sign(
        api_tokens.Member("demo", service.reader.id, service.reader.epoch), secret=SECRET
    ),
    "moderator": lambda service: moderators.token(service.owner),
    "session": lambda service: account_holders.session(service.owner.id).token,
    "form": Service.form_token,
    "site's token": lambda service: site_tokens.token(service.shared),
    "sign-in key": lambda service: service.key,
    "code": lambda service: service.code,
    "sign-in link": lambda service: service.link,
    "invitation": lambda _: account_holders.invite(
        account_holders.moderator("club"), now=datetime.now(UTC)
    ),
    "reset": lambda service: invitations.issue_reset(
        service.lost, account_holders.cause(datetime.now(UTC))
    ),
    "confirm": _request,
    "unsubscribe": lambda _: double_opt_in.unsubscribe_link(
        double_opt_in.Unsubscription("a" * 26, ("replies:b",)), SECRET
    ),
    "decision": _warrant,
    **{f"{name} form": _form_token(name, purpose) for name, purpose in FORMS.items()},
    "proof": lambda service: proof_solver.solved(
        api_requests.answer(service.client.get(f"{GUARDED}/challenge"))
    ),
    "cron": lambda _: CRON,
    "cursor": _cursor,
    "cursor of votes": _votes_cursor,
}  # fmt: skip
OF_LINKS = {
    "/sign-in": "sign-in link",
    "/admin/welcome": "invitation",
    "/admin/reset": "reset",
    "/subscriptions/confirm": "confirm",
    "/subscriptions/unsubscribe": "unsubscribe",
    "/decisions": "decision",
}


@dataclasses.dataclass(frozen=True)
class Door:
    """A place where callers present tokens, and the kinds of token that are valid there."""

    name: str
    keys: tuple[str, ...]
    show: Callable[[Service, str], TestResponse]


def _bearer(path: str) -> Callable[[Service, str], TestResponse]:
    return lambda service, key: service.client.get(path, headers={"Authorization": f"Bearer {key}"})


def _entering(service: Service, key: str, code: str) -> TestResponse:
    sent = {"key": key[:100], "code": code[:40], "name": "Ann"}
    return service.client.post("/api/v1/sites/demo/sign-in/code", json=sent)


def _posting(service: Service, key: str) -> TestResponse:
    service.number += 1
    sent = {"name": "Ann", "body": f"number {service.number}", "proof": key}
    return service.client.post(f"{GUARDED}/comments?thread=t", json=sent)


DOORS = [
    Door("token", ("guest", "member"), _bearer("/api/v1/sites/demo/author")),
    Door("moderator's token", ("moderator",),
         _bearer("/api/v1/sites/demo/moderation/comments?thread=t")),
    Door("cookie", ("session",), lambda service, key: service.signed_in(key).get("/admin")),
    Door("form", ("form",), lambda service, key: service.signed_in(service.mine).post(
        "/admin/account/authenticator/remove", data={"form": key, "current": PASSWORD},
        headers=OWN)),
    Door("site's token", ("site's token",), lambda service, key: service.client.post(
        "/api/v1/sites/demo/session", json={"token": key})),
    Door("key", ("sign-in key",), lambda service, key: _entering(service, key, service.code)),
    Door("code", ("code",), lambda service, key: _entering(service, service.key, key)),
    Door("proof", ("proof",), _posting),
    Door("cron", ("cron",), _bearer("/tasks/deliver")),
    Door("cursor", ("cursor",), lambda service, key: service.client.get(
        "/api/v1/sites/demo/comments",
        query_string={"thread": "t", "limit": "1", "cursor": key})),
    Door("cursor of votes", ("cursor of votes",), lambda service, key: _votes(
        service, limit="1", cursor=key)),
]  # fmt: skip


def _of_link(method: str, rule: str) -> Door:
    """Return a link's door: a query parameter or a form field."""
    found = next(name for start, name in OF_LINKS.items() if f"{rule}/".startswith(f"{start}/"))
    found += " form" if method == "POST" and found in FORMS else ""

    def show(service: Service, key: str) -> TestResponse:
        service.number += 1
        sent = {"token": key}
        if rule in {"/admin/welcome", "/admin/reset"}:
            sent |= {"password": PASSWORD}
        if rule == "/admin/welcome":
            sent |= {"name": "New", "login": f"new{service.number}"}
        client = service.signed_in(service.mine if rule.endswith("/accept") else "")
        is_form = rule.startswith(("/admin", "/sign-in")) or method == "POST"
        return client.open(
            rule, method=method, headers=OWN, data=sent if is_form else None,
            query_string=None if is_form else sent,
        )  # fmt: skip

    return Door(f"{method} {rule}", (found,), show)


DOORS += [
    Door("one click", ("unsubscribe",), lambda service, key: service.client.post(
        "/subscriptions/unsubscribe", query_string={"token": key},
        data={"List-Unsubscribe": "One-Click"})),
]  # fmt: skip
DOORS += [
    _of_link(row.method, row.rule)
    for row in ROWS
    if row.made and any(f"{row.rule}/".startswith(f"{start}/") for start in OF_LINKS)
]


@pytest.fixture(scope="module")
def service(shared_datastore: datastores.Datastore) -> Iterator[Service]:
    with mail_server.serving() as box:
        store = shared_datastore.connect()
        with store.context():
            yield Service(store, box.settings(tasks_secret=CRON))


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.name)
@pytest.mark.usefixtures("quick_passwords")
def test_a_token_is_valid_at_its_own_doors_and_no_other(service: Service, door: Door) -> None:
    keys = {name: make(service) for name, make in KEYS.items() if name not in door.keys}
    stored = store_snapshot.everything(*COUNTED)
    # After five wrong codes, even the right code is refused, so a new login starts before that.
    is_guessed = door.name == "code"
    for number, (name, key) in enumerate(keys.items()):
        if is_guessed and number % (typed_codes.TRIES - 1) == 0:
            service.sign_in()
            stored = store_snapshot.everything("Ticket", *COUNTED)
        answer = door.show(service, key)
        assert answer.status_code in {303, 400, 401, 403, 404}, (name, answer.text)
        if answer.status_code == 303:
            assert "admin/sign-in" in answer.headers["Location"], name
        assert "Set-Cookie" not in answer.headers
    left = ("Ticket", *COUNTED) if is_guessed else COUNTED
    assert store_snapshot.everything(*left) == stored
    for name in door.keys:
        answer = door.show(service, KEYS[name](service))
        assert answer.status_code in {200, 201, 303}, (name, answer.text)
        assert "admin/sign-in" not in answer.headers.get("Location", "")
    service.sign_in()
    service.mine = account_holders.session(service.owner.id).token
