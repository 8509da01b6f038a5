"""Authors' names cannot impersonate anyone or reorder text.

Unless a page isolates it, a name in a right-to-left script reorders the text next to it. Therefore,
the tests check every page that shows a name.
"""

import html.parser
import json
from datetime import UTC, datetime

import flask
import msgspec
import pytest
from flask.testing import FlaskClient

from comments import config
from comments.accounts import accounts, reader_accounts
from comments.domain import presentation, records
from comments.domain.crypto import encryption
from comments.domain.records import Verb
from comments.events import dispatcher
from comments.moderation import decisions, reports
from comments.notifications import double_opt_in, moderation_links
from comments.posting import file_report
from comments.sites import site_settings
from comments.store import connection
from comments.store.models import comment_rows
from comments.upkeep import wiring
from comments.web.api.callers import api_tokens
from tests.support import stored_state
from tests.support.people import account_holders, api_requests, site_tokens
from tests.support.people.account_holders import OWNER, SECRET
from tests.support.people.console_browser import DESK, Desk
from tests.support.threads import sample_threads

NAME = "\u05e9\u05dc\u05d5\u05dd (7)"
TITLE = "\u05db\u05d5\u05ea\u05e8\u05ea (8)"
WEBSITE = "https://x.example/\u05d0\u05ea\u05e8(9)"
VOID = {"meta", "link", "base", "input", "br", "hr", "img"}
# A document's title and a field's suggestions cannot contain elements.
PLAIN = {"title", "script", "option"}
HIDDEN = ("\u202e", "\u202d", "\u2066", "\u2067", "\u2068", "\u2069")


class Texts(html.parser.HTMLParser):
    """A page's texts, each with the elements around it."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.found: list[tuple[str, list[tuple[str, dict[str, str | None]]]]] = []
        self._open: list[tuple[str, dict[str, str | None]]] = []
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self._open.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        self.found.append((data, list(self._open)))


def is_isolated(text: str, inside: list[tuple[str, dict[str, str | None]]], word: str) -> bool:
    """Return whether a word is alone in an element that isolates its direction."""
    tag, values = inside[-1]
    is_alone = text.strip() == word
    keeps = (
        tag == "bdi"
        or values.get("dir") == "auto"
        or (tag == "a" and inside[-2][1].get("dir") == "auto")
    )
    return tag in PLAIN or (keeps and is_alone)


@pytest.fixture
def said(store: connection.Store, site: records.Site) -> list[records.Comment]:
    """Post one author's comments; hold one of them and report one."""
    author = records.Author(NAME, WEBSITE, id="g:eve")
    url = "http://localhost:8080/page"
    root = sample_threads.post(site, "root", author=author, title=TITLE, url=url)
    rows = [root, sample_threads.post(site, "reply", root.id, author=author)]
    held = sample_threads.post(site, "held", root.id, author=author)
    ada = records.Actor("a:x", NAME)
    decisions.decide("demo", held.id, Verb.HOLD, ada, now=sample_threads.START, reason="why")
    settings = config.Settings(secret=SECRET)
    request = sample_threads.request(
        site, settings=settings, now=datetime.now(UTC), network="192.0.2.1"
    )
    file_report.report(root.id, reports.Reason.SPAM, request, author="")
    dispatcher.deliver(
        [stored_state.name_of(each) for each in stored_state.rows("Event")],
        now=sample_threads.START,
        handlers=wiring.HANDLERS,
    )
    return [*rows, held]


def test_a_name_and_a_title_are_isolated_on_every_page(
    app: flask.Flask, said: list[records.Comment]
) -> None:
    account_holders.account("ann", OWNER)
    desk = Desk(app, "ann")
    paths = [
        "/embed/demo?thread=page", "/embed/demo/fragment?thread=page",
        f"/embed/demo?thread=page&below={said[0].id}", "/embed/demo?thread=page&order=newest",
        *(f"{DESK}{path}" for path in (
            "/queue", "/queue?status=any", "/author?id=g%3Aeve", "/authors", "/threads",
            "/thread?thread=page", "/log", "/reported", f"/comments/{said[1].id}",
            f"/comments/{said[2].id}",
        )),
    ]  # fmt: skip
    seen = dict.fromkeys((NAME, TITLE, WEBSITE), 0)
    for path in paths:
        answer = desk.client.get(path)
        assert answer.status_code == 200, path
        for text, inside in Texts(answer.text).found:
            for word in seen:
                if word in text:
                    seen[word] += 1
                    assert is_isolated(text, inside, word), (path, text, inside[-1])
    site_settings.change("demo", moderators=["boss@demo.example"])
    now, secret = datetime.now(UTC), SECRET
    row = decisions.case("demo", said[2].id).comment
    warrant = moderation_links.link(row, "boss@demo.example", secret=secret, now=now)
    name = comment_rows.thread_key_name(records.ThreadName("demo", "page"))
    request = double_opt_in.SubscriptionRequest("ann@example.org", "demo", name, "", replies=False)
    link = encryption.seal(msgspec.json.encode(request).decode(), "confirm", secret, now=now)
    links = (("/decisions", warrant, NAME), ("/subscriptions/confirm", link, TITLE))
    for path, token, word in links:
        page = desk.client.get(path, query_string={"token": token}).text
        (found,) = (each for each in Texts(page).found if word in each[0])
        assert is_isolated(*found, word), path
    decided = desk.send("/queue", "approve", said[2]).text
    for text, inside in Texts(decided).found:
        assert NAME not in text or is_isolated(text, inside, NAME), text
    assert all(number > 1 for number in seen.values())


@pytest.mark.parametrize("hidden", HIDDEN)
def test_a_title_cannot_reorder_the_text_around_it(client: FlaskClient, hidden: str) -> None:
    api_requests.post(client, title=f"a{hidden}title", url="http://localhost:8080/x")
    for path in ("/embed/demo?thread=t", "/feeds/demo", "/feeds/demo/thread?thread=t"):
        shown = client.get(path).text
        assert "atitle" in shown
        assert hidden not in shown


@pytest.mark.parametrize("hidden", [*HIDDEN, "\u200b", "\u200f", "\ufeff", "\u061c", "\xad"])
def test_a_website_with_invisible_characters_is_refused(client: FlaskClient, hidden: str) -> None:
    sent = {"name": "Ann", "body": "b", "website": f"https://x.example/{hidden}gpj.exe"}
    api_requests.refused(client.post(api_requests.THREAD, json=sent), 400, "website")


@pytest.mark.parametrize("number", [0x202E, 0x2066, 0x2069])
def test_a_text_cannot_reorder_by_a_character_reference(client: FlaskClient, number: int) -> None:
    """Markdown converts `&#x202e;` to the character."""
    body = f"a&#x{number:x};b [x](https://x.example 'c&#{number};d') `&#x{number:x};`"
    shown = api_requests.post(client, body=body)["comment"]["html"]
    assert chr(number) not in shown
    assert ">x</a>" in shown


SPEAKING = [
    "\u1d00\u1d05\u1d0d\u026a\u0274",  # Small capitals.
    "\U0001f170\U0001f173\U0001f17c\U0001f178\U0001f17d",  # Letters in black squares.
    "\U0001f150\U0001f153\U0001f15c\U0001f158\U0001f15d",  # Letters in black circles.
    # Regional indicators, which form flags.
    "\U0001f1e6\U0001f1e9\U0001f1f2\U0001f1ee\U0001f1f3",
    "\u24d0\u24d3\u24dc\u24d8\u24dd",  # Letters in circles.
    "\u13aadm\u026an",  # Cherokee.
    "\ua4ee\ua4d3\ua4df\ua4f2\ua4e0",  # Lisu.
    "\u0430dmin", "\u0410DM\u0406N", "\u0430\u0501m\u0456n",  # Cyrillic.
    "\u0391dm\u0399n", "adm\u0456\u0578", "adm\u04cfn",  # Greek, Armenian, a palochka.
    "adrnin", "aclmin", "vvebmaster", "@dm1n", "4dm|n", "$upp0r7", "5t@ff",
    "a\u0336d\u0336m\u0336i\u0336n\u0336", "a.d.m.i.n", "ad\u200bmin", "\u2067admin\u2069",
    "admin \u2713", "\u2605 Moderator \u2605", "sy\u0455tem",
    "\u0405\u03c5\u0440\u03c1\u03bf\u0433\u0442",
]  # fmt: skip
INNOCENT = [
    "Adminah",
    "Madmin",
    "Ada Min",
    "Arn",
    "Clive",
    "Staffan",
    "Mode Rator Jr",
    "\u03c3\u03b1\u03c1\u03b1",
]


@pytest.mark.parametrize("name", SPEAKING)
def test_a_name_that_looks_like_a_reserved_one_is_refused(
    client: FlaskClient, store: connection.Store, name: str
) -> None:
    """Try every call that sets a name for readers to see, except for accounts with a role."""
    sent = {"name": name, "body": "b"}
    assert (
        api_requests.refused(client.post(api_requests.THREAD, json=sent), 400, "name")
        == "reserved-name"
    )
    shared = site_tokens.share()
    token = {"token": site_tokens.token(shared, name=name)}
    refused = client.post("/api/v1/sites/demo/session", json=token)
    assert api_requests.refused(refused, 400, "name") == "reserved-name"
    code = {"key": "k" * 43, "code": "aaaa aaaa", "name": name}
    refused = client.post("/api/v1/sites/demo/sign-in/code", json=code)
    assert api_requests.refused(refused, 400, "name") == "reserved-name"
    assert api_requests.stored(store, "Account") == 0


@pytest.mark.parametrize("name", INNOCENT)
def test_names_that_only_contain_a_reserved_word_are_accepted(
    client: FlaskClient, name: str
) -> None:
    assert api_requests.post(client, name)["comment"]["author"]["name"] == name


def test_no_comment_claims_a_role_that_the_server_did_not_set(
    client: FlaskClient, store: connection.Store
) -> None:
    """Only the server marks staff; no field that authors send can claim a role."""
    owner = account_holders.account("ann", OWNER)
    member = api_tokens.sign(api_tokens.Member("demo", owner.id, owner.epoch), secret=SECRET)
    headers = {"Authorization": f"Bearer {member}"}
    posted = client.post(api_requests.THREAD, json={"name": "x", "body": "b"}, headers=headers)
    assert posted.status_code == 201
    shown = json.loads(client.get(api_requests.THREAD).text)["comments"][0]
    assert shown["author"] == {"name": "Ann", "website": "", "kind": "staff"}
    assert presentation.PublicAuthor.__struct_fields__ == ("name", "website", "kind")
    assert not {"role", "badge", "verified", "label"} & set(
        presentation.PublicComment.__struct_fields__
    )


def test_claims_of_a_sites_token_give_no_role_and_no_address(
    client: FlaskClient, store: connection.Store
) -> None:
    shared = site_tokens.share()
    more = {
        "role": "owner", "roles": ["owner"], "grants": ["owner *"], "staff": True, "admin": True,
        "email": "boss@demo.example", "email_verified": True, "login": "ann", "label": "Admin",
        "type": "administrator", "2fa": "", "github": "42", "picture": "https://x.example/p.png",
    }  # fmt: skip
    token = {"token": site_tokens.token(shared, **more)}  # type: ignore[arg-type]
    assert client.post("/api/v1/sites/demo/session", json=token).status_code == 200
    reader = reader_accounts.of_site(
        token["token"], "demo", secret=SECRET, now=account_holders.here()
    )
    account = accounts.by_identity(reader.identity, SECRET)
    assert account is not None
    assert (account.grants, account.login, account.address) == ((), "", "")
    assert not account.has_password
    assert accounts.staff() == []
