"""Callers read their inbox and mark replies as read with their token, and nobody else does."""

from typing import Any

import pytest
from flask.testing import FlaskClient

from comments.domain import records
from comments.domain.records import Verb
from comments.moderation import decisions
from comments.sites import site_settings
from comments.store import connection
from comments.store.large_sets import set_search
from comments.web.api.callers import api_tokens
from tests.support.people import account_holders, api_requests
from tests.support.people.account_holders import SECRET
from tests.support.people.api_requests import answer, bearer, post, refused
from tests.support.threads import moderated_site, sample_threads

INBOX = "/api/v1/sites/demo/inbox"
READ = f"{INBOX}/read"
ME = "/api/v1/sites/demo/author"


@pytest.fixture
def ann(client: FlaskClient, open_store: connection.Store) -> dict:
    """Ann's first comment, on a site with inboxes."""
    with open_store.context():
        site_settings.change("demo", options={"inbox": True})
    return post(client)


def reply(client: FlaskClient, store: connection.Store, to: dict, name: str = "Bob") -> str:
    made = post(client, name, f"By {name}", parent=to["comment"]["id"])
    with store.context():
        moderated_site.settle()
    return str(made["comment"]["id"])


def listed(client: FlaskClient, who: dict, query: str = "") -> dict[str, Any]:
    return answer(client.get(f"{INBOX}{query}", headers=bearer(who)))


def mark(client: FlaskClient, who: dict, **sent: Any) -> int:
    found = answer(client.post(READ, json=sent, headers=bearer(who)))
    return int(found["read"])


def ids(page: dict[str, Any]) -> list[str]:
    return [each["comment"]["id"] for each in page["replies"]]


def test_an_unread_reply_comes_with_its_thread_and_a_link(
    client: FlaskClient, open_store: connection.Store, ann: dict
) -> None:
    there = "/api/v1/sites/demo/comments?thread=titled"
    about = {"title": "A page", "url": "http://localhost:8080/page"}
    first = answer(client.post(there, json={"name": "Ann", "body": "1", **about}))
    sent = {"name": "Bob", "body": "2", "parent": first["comment"]["id"]}
    titled = answer(client.post(there, json=sent))["comment"]["id"]
    other = reply(client, open_store, ann)
    response = client.get(INBOX, headers=bearer(first))
    assert response.headers["Cache-Control"] == "private, no-store"
    (entry,) = answer(response)["replies"]
    assert entry["comment"]["id"] == titled
    assert entry["comment"]["reply_to"] == first["comment"]["id"]
    assert entry["comment"]["author"] == {"name": "Bob", "website": "", "kind": "guest"}
    assert {name: entry[name] for name in ("thread", "title", "url", "link")} == {
        "thread": "titled",
        **about,
        "link": f"{about['url']}#comment-{titled}",
    }
    (entry,) = listed(client, ann)["replies"]
    assert (entry["title"], entry["url"]) == ("", "")
    assert entry["link"] == f"/embed/demo?thread=t&around={other}#comment-{other}"
    assert client.get(entry["link"]).status_code == 200


def test_replies_are_marked_as_read_by_id_by_time_or_all(
    client: FlaskClient, open_store: connection.Store, ann: dict
) -> None:
    one, two, three, four = (reply(client, open_store, ann, f"B{n}") for n in range(4))
    page = listed(client, ann, "?limit=3")
    assert (page["unread"], ids(page)) == (4, [four, three, two])
    rest = listed(client, ann, f"?limit=3&cursor={page['cursor']}")
    assert (rest["unread"], ids(rest), rest["cursor"]) == (4, [one], None)
    assert mark(client, ann, ids=[three, api_requests.NOBODY]) == 1
    assert mark(client, ann, until=two) == 2
    assert ids(listed(client, ann)) == [four]
    assert mark(client, ann) == 1
    assert mark(client, ann) == 0
    assert listed(client, ann) == {"unread": 0, "replies": [], "cursor": None}


def test_a_member_has_an_inbox_too(client: FlaskClient, store: connection.Store, ann: dict) -> None:
    bob = account_holders.account("bob", password="")
    member = api_tokens.Member("demo", bob.id, bob.epoch)
    token = {"token": api_tokens.sign(member, secret=SECRET)}
    sent = {"name": "", "body": "Hello", "parent": ann["comment"]["id"]}
    own = answer(client.post(api_requests.THREAD, json=sent, headers=bearer(token)))
    answered = post(client, "Cid", "Yes", parent=own["comment"]["id"])
    moderated_site.settle()
    assert ids(listed(client, token)) == [answered["comment"]["id"]]
    assert ids(listed(client, ann)) == [own["comment"]["id"]]


def test_a_token_opens_only_its_own_inbox(
    client: FlaskClient, open_store: connection.Store, ann: dict
) -> None:
    one = reply(client, open_store, ann)
    eve = post(client, "Eve", "Me")
    assert listed(client, eve)["unread"] == 0
    assert mark(client, eve) == mark(client, eve, ids=[one]) == mark(client, eve, until=one) == 0
    assert ids(listed(client, ann)) == [one]
    page = listed(client, ann, "?limit=1")
    second = reply(client, open_store, ann, "Cid")
    page = listed(client, ann, "?limit=1")
    assert ids(page) == [second]
    stolen = client.get(f"{INBOX}?cursor={page['cursor']}", headers=bearer(eve))
    assert refused(stolen, 400) == "bad-cursor"


def test_bad_requests_are_refused_by_field_and_change_nothing(
    client: FlaskClient, open_store: connection.Store, ann: dict
) -> None:
    one, mine = reply(client, open_store, ann), bearer(ann)
    both = {"ids": [one], "until": one}
    for sent, field, code in (
        (both, "ids", "conflicting-fields"),
        ({"ids": [], "until": one}, "ids", "conflicting-fields"),
        ({"ids": one}, "ids", "wrong-type"),
        ({"ids": ["x"]}, "ids", "bad-item"),
        ({"ids": [one] * 201}, "ids", "too-many-items"),
        ({"until": "x"}, "until", "not-a-comment-id"),
        ({"all": True}, "all", "unknown-field"),
    ):
        assert refused(client.post(READ, json=sent, headers=mine), 400, field) == code
    unknown = client.post(READ, json={"until": api_requests.NOBODY}, headers=mine)
    assert refused(unknown, 404) == "comment-not-found"
    for query, field in (("?limit=0", "limit"), ("?limit=201", "limit"), ("?x=1", "x")):
        refused(client.get(f"{INBOX}{query}", headers=mine), 400, field)
    assert refused(client.get(f"{INBOX}?cursor=x", headers=mine), 400) == "bad-cursor"
    assert refused(client.get(INBOX), 401) == refused(client.post(READ, json={}), 401) == "no-token"
    assert ids(listed(client, ann)) == [one]


def test_a_site_without_inboxes_refuses_both_calls(
    client: FlaskClient, open_store: connection.Store, ann: dict
) -> None:
    reply(client, open_store, ann)
    with open_store.context():
        site_settings.change("demo", options={"inbox": False})
    assert refused(client.get(INBOX, headers=bearer(ann)), 403) == "inbox-off"
    assert refused(client.post(READ, json={}, headers=bearer(ann)), 403) == "inbox-off"


def test_a_page_of_another_origin_may_neither_read_nor_mark(client: FlaskClient, ann: dict) -> None:
    headers = {**bearer(ann), "Origin": "https://evil.example"}
    assert refused(client.get(INBOX, headers=headers), 403) == "origin-not-allowed"
    assert refused(client.post(READ, json={}, headers=headers), 403) == "origin-not-allowed"


def test_pages_tell_whether_the_site_has_inboxes(client: FlaskClient, ann: dict) -> None:
    assert answer(client.get(api_requests.THREAD))["options"]["inbox"] is True


def test_a_hidden_reply_is_not_shown_before_its_event_is_delivered(
    client: FlaskClient, open_store: connection.Store, ann: dict
) -> None:
    one = reply(client, open_store, ann)
    with open_store.context():
        ada = records.Actor("cli", "Ada")
        decisions.decide("demo", one, Verb.SPAM, ada, now=sample_threads.START)
    assert listed(client, ann) == {"unread": 0, "replies": [], "cursor": None}


def test_an_inbox_is_exported_and_erased_with_its_author(
    client: FlaskClient, open_store: connection.Store, ann: dict
) -> None:
    one = reply(client, open_store, ann)
    assert answer(client.get(ME, headers=bearer(ann)))["inbox"] == [one]
    assert answer(client.delete(ME, headers=bearer(ann)))["done"] is True
    assert answer(client.get(ME, headers=bearer(ann)))["inbox"] == []
    with open_store.context():
        assert set_search.stored_texts() == []
