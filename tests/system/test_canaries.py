"""No public response contains personal data: the tests plant canaries and request every route.

The canaries are a mail address, a network, a browser, tokens, secrets, and moderation data that
readers must not see: pending and refused texts, rules, bans and reasons. Callers without permission
request every route, including with invalid requests and from caches. The tests also search the log
of these requests, and they search moderators' pages for data that even moderators must not see.
"""

import base64
import gzip
import hashlib
import itertools
from collections.abc import Iterator
from datetime import UTC, datetime

import flask
import pytest
from werkzeug.test import TestResponse

from comments import config
from comments.accounts import accounts, site_keys
from comments.accounts.links import invitations
from comments.accounts.passwords import credentials
from comments.domain import records
from comments.domain.crypto import client_networks, encryption
from comments.domain.records import Verb
from comments.events import safe_http, webhook_endpoints, webhooks
from comments.limits.site_request import SiteRequest
from comments.moderation import decisions
from comments.moderation.classifiers import registration
from comments.moderation.policy import policy_changes
from comments.moderation.policy.rules import Action, Rule
from comments.posting import admission, new_comment, own_comment
from comments.sites import site_settings
from comments.store import connection, reads
from comments.store.models import account_rows
from comments.transfer import personal_data
from comments.web.service import service_pages
from tests.support import datastores
from tests.support.every_route import ROWS, SETTINGS, AllRoles, Row, opened, path_of
from tests.support.people import account_holders, provider_login
from tests.support.people.account_holders import SECRET

pytestmark = pytest.mark.slow

ADDRESS = "canary@mailbox.example"
NETWORK = "203.0.113.77"
BROWSER = "Canary/7.7 (of one person)"
PASSWORD_OF_ANN = "canary-password-of-ann"
KEY = "canary-idempotency-key-0001"
AUTHENTICATOR = "CANARYCANARYCANARYCANARYCANARY22"
CRON = "canary-secret-of-cron"
STRANGERS = ("nobody", "other")


class Planted(AllRoles):
    """A service with canaries in its data, and the canaries by name."""

    def __init__(
        self, datastore: datastores.Datastore, store: connection.Store, app: flask.Flask
    ) -> None:
        super().__init__(datastore, store, app)
        now = datetime.now(UTC)
        site_settings.change("demo", moderators=[f"moderator.{ADDRESS}"])
        hook = webhook_endpoints.Registered(
            "00ff00ff", "https://hooks.canary.example/in", (webhooks.secret(b"canary" * 6),),
            webhooks.PUBLIC_TYPES, created=now,
        )  # fmt: skip
        token = f"123456:{'c4n4ry' * 6}"
        chat = webhook_endpoints.new_telegram(token, "-100", webhooks.CHAT_TYPES, now=now)
        webhook_endpoints._change("demo", lambda _: [hook, chat])
        away = safe_http.HttpClient(resolver=lambda _host: ["93.184.215.14"])
        by = registration.By(records.Actor("cli", "cli"), now, config.Settings(secret=SECRET))
        asked = registration.set_webhook(
            "demo", "https://review.canary.example/in", registration.Terms(holds=False), by, away
        )
        registration.set_akismet("demo", "c4n4rykey", registration.Terms(holds=False), by, away)
        key, shared = site_keys.make_shared(SECRET, now=now)
        site_keys.add("demo", key)
        account_holders.account("ann", password=PASSWORD_OF_ANN, mail=ADDRESS)
        credentials.set_totp(self.named("ann").id, AUTHENTICATOR, 0, account_holders.cause(now))
        stored = reads.get(account_rows.account_key(self.named("ann").id))
        invitation = account_holders.invite(account_holders.moderator(), address=ADDRESS, now=now)
        reset = invitations.issue_reset(self.named("ann"), account_holders.cause(now))
        posted = self.app.test_client().post(
            "/api/v1/sites/demo/comments?thread=t",
            json={"name": "Ann", "body": "Hello", "email": ADDRESS},
            headers={"User-Agent": BROWSER, "Idempotency-Key": KEY},
            environ_base={"REMOTE_ADDR": NETWORK},
        )
        assert posted.status_code == 201
        secret = encryption.seal("c4n4rysecret", "turnstile", SECRET, now=now)
        site_settings.change("demo", turnstile=lambda _: records.Turnstile("sitekey", secret))
        author = personal_data.author_of(posted.json["comment"]["id"])
        self.posted = posted.json["comment"]["id"]
        self.canaries = {
            "address": ADDRESS, "host of the address": "mailbox.example", "network": NETWORK,
            "browser": BROWSER, "token": posted.json["token"], "key": KEY,
            "author's id": author.partition(":")[2],
            "secret": SECRET, "site's secret": shared, "hook's secret": hook.secrets[0],
            "token of a chat's bot": token,
            "adviser's secret": asked, "adviser": "review.canary.example",
            "key for Akismet": "c4n4rykey", "secret for Turnstile": "c4n4rysecret",
            "hook": "hooks.canary.example", "password": PASSWORD_OF_ANN,
            "account": self.named("ann").id, "owner": self.named("owner").id,
            "invitation": invitation, "reset": reset, "authenticator": AUTHENTICATOR,
            "password's hash": stored.password, "sealed": stored.totp, "cron's secret": CRON,
            "session": account_holders.session(self.named("ann").id).token,
            "provider's secret": provider_login.CLIENT_SECRET,
        }  # fmt: skip
        self.canaries |= {f"hash of the network for {what}": client_networks.digest(SECRET, what,
        NETWORK)
            for what in ("posts/demo", f"votes/{self.posted}")}  # fmt: skip
        self.canaries |= self._kept_back(author, now)

    def _kept_back(self, author: str, now: datetime) -> dict[str, str]:
        """Store data that only moderators may see; return the canaries by name."""
        ada = records.Actor("cli", "canary-actor")
        for verb in (Verb.HOLD, Verb.SPAM, Verb.REJECT, Verb.HIDE):
            row = self._said("canary-text", author)
            # A reply below a hidden comment must reveal only the comment's place.
            self._said("an answer", "g:somebody", name="Bob", parent=row.id)
            decisions.decide("demo", row.id, verb, ada, now=now, reason="canary-reason")
        edited = self._said("canary-text", author, name="Ann")
        own_comment.edit(
            edited.id, author_id=author, body="mended", revision=None, settings=SETTINGS, now=now
        )
        gone = self._said("canary-text", author)
        self._said("an answer", "g:somebody", name="Bob", parent=gone.id)
        own_comment.retract(gone.id, author_id=author, revision=None, now=now)
        rule = Rule(id="canary-rule", action=Action.SHADOW, words=("canary-word",))
        policy_changes.put_rule("demo", rule, ada, now=now)
        shadowed = self._said("canary-text with a canary-word", author)
        assert shadowed.status is records.Status.SHADOWED
        policy_changes.ban("demo", "g:canary-banned", ada, now=now, reason="canary-reason")
        found = ("text", "name", "reason", "rule", "word", "actor", "banned")
        return {f"{each} kept back": f"canary-{each}" for each in found}

    def _said(
        self, body: str, author: str, *, name: str = "canary-name", parent: str | None = None
    ) -> records.Comment:
        draft = admission.Submission("t", parent, records.Author(name, id=author), body)
        return new_comment.post(draft, SiteRequest(self.site, SETTINGS, datetime.now(UTC))).comment

    @staticmethod
    def named(login: str) -> accounts.Account:
        return accounts.by_text(login, SECRET)


@pytest.fixture(scope="module")
def planted(shared_datastore: datastores.Datastore) -> Iterator[Planted]:
    with opened(Planted, shared_datastore, tasks_secret=CRON) as planted:
        yield planted


def text_of(response: TestResponse) -> str:
    data = response.get_data()
    if response.headers.get("Content-Encoding") == "gzip":
        data = gzip.decompress(data)
    # Ignore the cookie, which only the caller who has just signed in receives.
    headers = [each for each in response.headers if each[0] != "Set-Cookie"]
    return f"{headers}\n{data.decode('utf-8', 'replace')}"


def hits(planted: Planted, response: TestResponse, *, without: frozenset[str] = frozenset()) -> set:
    text = text_of(response)
    return {name for name, canary in planted.canaries.items() if canary in text} - without


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.method} {row.rule}")
@pytest.mark.parametrize("caller", STRANGERS)
def test_no_route_shows_a_stranger_personal_data(
    planted: Planted, row: Row, caller: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(0)
    comment = planted.comment()
    for _ in range(2 if row.method == "GET" else 1):  # A cache may return the second response
        assert hits(planted, planted.ask(row, caller, comment.id)) == set()
    assert {name for name, canary in planted.canaries.items() if canary in caplog.text} == set()


WHOLE = {"limit": "all"}
ORDERS = [{"order": order} for order in ("recent", "best", "oldest", "newest")]


@pytest.mark.parametrize("query", [WHOLE, *ORDERS, {"around": ""}, {"below": ""}, {"parent": ""}])
def test_no_view_of_a_thread_shows_a_hidden_comment(
    planted: Planted, query: dict[str, str]
) -> None:
    """Request plain and gzip responses both from the store and from caches."""
    client, seen = planted.app.test_client(), 0
    query = {name: value or planted.posted for name, value in query.items()}
    for path in ("/api/v1/sites/demo/comments", "/embed/demo", "/embed/demo/fragment"):
        for coding in ("identity", "gzip", "gzip"):
            asked = {"thread": "t", **query}
            answer = client.get(path, query_string=asked, headers={"Accept-Encoding": coding})
            assert hits(planted, answer) == set()
            seen += answer.status_code == 200
    assert seen >= 3
    assert (
        hits(planted, client.get(f"/api/v1/comments/{planted.posted}/replies?limit=all")) == set()
    )


def test_no_file_of_the_widget_contains_data_of_the_service(planted: Planted) -> None:
    client, names = planted.app.test_client(), sorted(service_pages._files())
    assert "flatthread.js" in names
    for name in names:
        assert hits(planted, client.get(f"/widget/{name}")) == set()
        assert client.get(f"/widget/{name}.map").status_code == 404


# Data that moderators are meant to see. Owners' pages also show the owner, the site's recipients,
# and the hosts of invited people's addresses.
SEEN = {
    f"{each} kept back" for each in ("text", "name", "reason", "rule", "word", "actor", "banned")
}
SEEN |= {"author's id"}
OWNERS = {
    "settings": {"address", "host of the address"},
    "advisers": {"adviser"},
    "connections": {"hook"},
    "notifications": {"address", "host of the address"},
    "people": {"host of the address", "owner"},
    "team": {"host of the address"},
}
AT_DESK = [row for row in ROWS if row.method == "GET" and row.rule.startswith("/admin")]


@pytest.mark.parametrize("row", AT_DESK, ids=lambda row: row.rule)
@pytest.mark.parametrize("caller", ["moderator", "owner"])
def test_no_admin_page_shows_a_secret_an_address_or_a_network(
    planted: Planted, row: Row, caller: str
) -> None:
    """Other people may use a moderator's browser, so admin pages must not show these values."""
    found = hits(planted, planted.ask(row, caller, planted.posted), without=frozenset(SEEN))
    told = OWNERS.get(row.rule.rpartition("/")[2], set()) if caller == "owner" else set()
    assert found == told


def test_moderators_do_see_hidden_comments(planted: Planted) -> None:
    """Prove that the test above requests pages with content."""
    seen = set()
    for row in AT_DESK:
        seen |= hits(planted, planted.ask(row, "moderator", planted.posted))
    assert seen >= SEEN


GETS = sorted({row.rule for row in ROWS if row.method == "GET"})


@pytest.mark.parametrize("rule", GETS)
def test_no_error_contains_personal_data_and_no_filter_is_an_oracle(
    planted: Planted, rule: str
) -> None:
    client, path = planted.app.test_client(), path_of(rule, planted.posted)
    answers: dict[str, set[tuple[int, bytes]]] = {}
    queries = (
        "q={}", "search={}", "email={}", "author={}", "author_id={}", "filter=email:{}",
        "order=email", "sort=email", "thread=t&q={}", "thread=t&email={}", "thread=t&author={}",
        "thread=t&order=email", "thread=t&cursor={}", "cursor={}", "token={}",
    )  # fmt: skip
    known = (ADDRESS, planted.canaries["author's id"], "nobody@nowhere.example")
    for query, value in itertools.product(queries, known):
        response = client.get(f"{path}?{query.format(value)}")
        assert response.status_code < 500
        # The demo page and errors may echo the query but never stored text.
        assert hits(planted, response) <= _asked(planted, value)
        body = response.get_data().replace(value.encode(), b"?")
        answers.setdefault(query, set()).add((response.status_code, body))
    # The response must be the same for known and unknown values.
    assert {query: len(found) for query, found in answers.items()} == dict.fromkeys(queries, 1)


def _asked(planted: Planted, value: str) -> set[str]:
    return {name for name, canary in planted.canaries.items() if canary in value}


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_no_refusal_contains_personal_data(planted: Planted, method: str) -> None:
    client = planted.app.test_client()
    for rule in sorted({row.rule for row in ROWS}):
        for sent in ({"json": {}}, {"data": b"{"}, {"json": {"name": "Ann", "body": ""}}, {}):
            path = f"{path_of(rule, planted.posted)}?thread=t"
            response = client.open(path, method=method, **sent)
            assert response.status_code != 500
            assert hits(planted, response) == set()


def test_no_hash_of_an_address_or_a_network_is_shown_or_stored(planted: Planted) -> None:
    """Plain hashes would let attackers look up addresses in a dictionary."""
    client = planted.app.test_client()
    shown = "".join(
        text_of(client.get(path))
        for path in (
            f"/api/v1/comments/{planted.posted}",
            "/api/v1/sites/demo/comments?thread=t",
            "/api/v1/sites/demo/authors",
            "/embed/demo?thread=t",
            "/feeds/demo",
            "/feeds/demo/thread?thread=t",
        )
    )
    kinds = ("Account", "Identity", "Session", "Ticket", "RateBucket", "VoterNetwork", "Subscriber")
    stored = "".join(str(entity) for kind in kinds for entity in reads.fetch(reads.Query(kind)))
    assert "canary" not in stored.replace("canary@", "")
    for value in (ADDRESS, ADDRESS.upper(), f" {ADDRESS}", NETWORK, f"{NETWORK}/32"):
        for algorithm in ("md5", "sha1", "sha256", "sha512"):
            digest = hashlib.new(algorithm, value.encode()).digest()
            for form in (
                digest.hex(),
                base64.b32encode(digest).decode().lower()[:26],
                base64.b64encode(digest).decode()[:20],
                base64.urlsafe_b64encode(digest).decode()[:20],
            ):
                assert form not in shown
                assert form not in stored


def test_the_crawl_would_find_a_canary(planted: Planted) -> None:
    """Prove that the search finds canaries: the author's own responses contain some."""
    client = planted.app.test_client()
    header = {"Authorization": f"Bearer {planted.canaries['token']}"}
    own = client.get("/api/v1/sites/demo/author", headers=header)
    assert "address" in hits(planted, own)
