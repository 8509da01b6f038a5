"""Test who can vote through the API, as which author and from which network, and who sees votes."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import flask
import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from comments import app as apps
from comments import config
from comments.domain import records
from comments.domain.records import Status
from comments.sites import site_settings
from comments.store import connection, reads
from comments.store.models import counter_rows
from comments.web.api.callers import api_tokens
from tests.support.people.api_requests import (
    KEY,
    NOBODY,
    ONE,
    THREAD,
    answer,
    bearer,
    post,
    refused,
    stored,
)
from tests.support.store_interceptors import Calls
from tests.support.threads import sample_threads, sample_votes

VOTES = "/api/v1/sites/demo/votes?thread=t"
AUTHORS = "/api/v1/sites/demo/authors"
MOST = sample_threads.SETTINGS.voters_per_network


def _put(
    client: FlaskClient, posted: dict, value: object = 1, *, address: str = "", **headers: str
) -> TestResponse:
    return client.put(
        f"{ONE}{posted['comment']['id']}/vote",
        json={"value": value},
        headers=headers,
        environ_overrides={"REMOTE_ADDR": address or "192.0.2.1"},
    )


def _cast(store: connection.Store) -> list[int]:
    with store.context():
        return [value for votes in sample_votes.cast().values() for value in votes.values()]


def test_a_first_time_voter_gets_a_token_and_may_change_the_vote(
    client: FlaskClient, open_store: connection.Store
) -> None:
    posted = post(client)
    first = _put(client, posted)
    voted = answer(first)
    assert (voted["comment"], voted["value"]) == (posted["comment"]["id"], 1)
    assert first.headers["Cache-Control"] == "no-store"
    again = answer(_put(client, posted, -1, **bearer(voted)))
    assert (again["value"], _cast(open_store)) == (-1, [-1])
    path = f"{ONE}{posted['comment']['id']}/vote"
    assert answer(client.delete(path, headers=bearer(again)))["value"] == 0
    assert answer(client.delete(path, headers=bearer(again)))["value"] == 0
    assert _cast(open_store) == []


def test_a_first_time_voter_needs_one_look_up_to_find_the_site(
    client: FlaskClient, calls: Calls
) -> None:
    below = post(client, parent=post(client)["comment"]["id"])
    calls.names.clear()
    answer(_put(client, below))
    first, *others = calls.names
    assert first == "Lookup"
    assert others.count("Commit") == 1  # Of the vote; reading opens no transaction


def test_guests_vote_as_the_author_of_their_posts(
    client: FlaskClient, open_store: connection.Store
) -> None:
    posted, other = post(client), post(client, name="Bob")
    answer(_put(client, posted, **bearer(other)))
    answer(_put(client, posted, **bearer(other)))
    assert _cast(open_store) == [1]
    assert refused(_put(client, posted, **bearer(posted)), 403) == "own-comment"


def test_a_retry_with_a_key_is_one_vote(client: FlaskClient, open_store: connection.Store) -> None:
    posted = post(client)
    one, two = (answer(_put(client, posted, **KEY)) for _ in range(2))
    guests = {
        api_tokens.read(f"Bearer {each['token']}", secret=sample_threads.SETTINGS.secret, term=60)
        for each in (one, two)
    }
    assert len(guests) == 1
    assert _cast(open_store) == [1]
    answer(_put(client, posted, address="192.0.2.9", **KEY))
    assert _cast(open_store) == [1, 1]


@pytest.mark.parametrize("value", [0, 2, -2, 1.0, True, None, "1", [1], 10**400])
def test_a_vote_is_one_up_or_one_down(
    client: FlaskClient, open_store: connection.Store, value: object
) -> None:
    posted = post(client)
    refused(_put(client, posted, value), 400, "value")
    assert _cast(open_store) == []


@pytest.mark.parametrize(
    "sent", [{}, {"value": 1, "voter": "g:bob"}, {"value": 1, "score": 9}, {"value": 1, "ip": "x"}]
)
def test_a_vote_has_no_other_fields(client: FlaskClient, sent: dict) -> None:
    response = client.put(f"{ONE}{post(client)['comment']['id']}/vote", json=sent)
    refused(response, 400, next((name for name in sent if name != "value"), "value"))


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_an_invalid_token_cannot_vote(
    client: FlaskClient, open_store: connection.Store, method: str
) -> None:
    path = f"{ONE}{post(client)['comment']['id']}/vote"
    for header, code in (("Bearer x.y.z", "bad-token"), ("Basic eDp5", "no-bearer-token")):
        headers = {"Authorization": header}
        response = client.open(path, method=method, json={"value": 1}, headers=headers)
        assert refused(response, 401) == code
    assert _cast(open_store) == []


def test_withdrawing_a_vote_needs_a_token(client: FlaskClient) -> None:
    path = f"{ONE}{post(client)['comment']['id']}/vote"
    assert refused(client.delete(path), 401) == "no-token"


def test_an_unknown_or_hidden_comment_takes_no_votes_and_creates_nothing(
    client: FlaskClient, open_store: connection.Store
) -> None:
    posted = post(client)
    held = sample_threads.node("held", None, Status.PENDING)
    with open_store.context():
        sample_threads.store_imported(records.ThreadName("demo", "t"), held)
    for comment in (NOBODY, held.id):
        for headers in ({}, bearer(posted)):
            path = f"{ONE}{comment}/vote"
            response = client.put(path, json={"value": 1}, headers=headers)
            assert refused(response, 404) == "comment-not-found"
    for kind in ("Vote", "VotesDue", "VoterNetwork"):
        assert stored(open_store, kind) == 0


def test_a_tombstone_takes_no_votes(client: FlaskClient) -> None:
    posted = post(client)
    post(client, parent=posted["comment"]["id"])
    client.delete(ONE + posted["comment"]["id"], headers=bearer(posted))
    assert refused(_put(client, posted), 409) == "comment-retracted"


def test_a_token_of_another_site_cannot_vote_here(
    client: FlaskClient, open_store: connection.Store, settings: config.Settings
) -> None:
    with open_store.context():
        site_settings.add("other", [], scheme=settings.scheme, now=datetime(2026, 1, 2, tzinfo=UTC))
    posted = post(client)
    token = api_tokens.sign(api_tokens.Guest("other", "g:bob"), secret=settings.secret)
    headers = {"Authorization": f"Bearer {token}"}
    assert refused(_put(client, posted, **headers), 404) == "comment-not-found"
    assert refused(client.get(VOTES, headers=headers), 401) == "token-of-other-site"
    assert _cast(open_store) == []


def test_a_script_with_a_new_guest_for_each_vote_gets_few_votes(
    app: flask.Flask, client: FlaskClient, open_store: connection.Store
) -> None:
    posted = post(client)

    def vote(number: int) -> int:
        own = app.test_client()
        forged = {
            "X-Forwarded-For": f"198.51.100.{number}",
            "Forwarded": f"for=10.0.0.{number}",
            "X-Real-IP": f"10.0.1.{number}",
            "X-Appengine-User-IP": f"10.0.2.{number}",
        }
        address = f"2001:db8::{number}"  # One Internet customer has all these addresses
        response = _put(own, posted, address=address, **forged)
        if response.status_code != 200:
            assert refused(response, 429) == "too-many-votes"
            assert 0 < int(response.headers["Retry-After"]) <= 30 * 24 * 3600
        return response.status_code

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(vote, range(30)))
    assert found.count(200) == MOST
    assert found.count(429) == 30 - MOST
    assert len(_cast(open_store)) == MOST
    # A second instance of the service also enforces the limit; other networks are not affected.
    other = apps.create_app(sample_threads.SETTINGS, open_store).test_client()
    assert _put(other, posted, address="2001:db8::ffff").status_code == 429
    assert _put(other, posted, address="2001:db8:0:1::1").status_code == 200
    with open_store.context():
        text = str(list(reads.fetch(reads.Query("VoterNetwork"))))
    assert "2001:db8" not in text


def test_only_voters_see_their_own_votes(client: FlaskClient) -> None:
    one, two = post(client), post(client, name="Bob")
    ann = answer(_put(client, one))
    answer(_put(client, two, -1, **bearer(ann)))
    bob = answer(_put(client, one, -1))
    shown = client.get(VOTES, headers=bearer(ann))
    assert answer(shown) == {
        "votes": {one["comment"]["id"]: 1, two["comment"]["id"]: -1},
        "uncounted": {two["comment"]["id"]: -1},
        "cursor": None,
    }
    assert shown.headers["Cache-Control"] == "private, no-store"
    assert {"Authorization", "Origin"} <= set(shown.headers["Vary"].split(", "))
    assert "ETag" not in shown.headers
    assert answer(client.get(VOTES, headers=bearer(bob)))["votes"] == {one["comment"]["id"]: -1}
    assert refused(client.get(VOTES), 401) == "no-token"
    assert answer(client.get(VOTES.replace("=t", "=u"), headers=bearer(ann)))["votes"] == {}
    first = answer(client.get(f"{VOTES}&limit=1", headers=bearer(ann)))
    rest = answer(client.get(f"{VOTES}&cursor={first['cursor']}", headers=bearer(ann)))
    assert {**first["votes"], **rest["votes"]} == answer(shown)["votes"]
    assert refused(client.get(f"{VOTES}&cursor={first['cursor']}", headers=bearer(bob)), 400,
                   "cursor") == "bad-cursor"  # fmt: skip
    refused(client.get(f"{VOTES}&limit=1001", headers=bearer(ann)), 400, "limit")
    refused(client.get(f"{VOTES}&limit=0", headers=bearer(ann)), 400, "limit")


def test_the_page_is_the_same_for_everybody_and_shows_the_score(
    client: FlaskClient, open_store: connection.Store
) -> None:
    posted = post(client)
    ann = answer(_put(client, posted))
    with open_store.context():
        sample_votes.count_all(datetime.now(UTC).replace(year=2100))
    pages = [client.get(THREAD, headers=headers) for headers in ({}, bearer(ann), bearer(posted))]
    assert len({each.data for each in pages}) == 1
    assert len({each.headers["ETag"] for each in pages}) == 1
    assert answer(pages[0])["comments"][0]["score"] == 1


def test_no_response_about_votes_names_a_voter(
    client: FlaskClient, open_store: connection.Store
) -> None:
    posted = post(client)
    voted = answer(_put(client, posted))
    guests = [
        api_tokens.read(f"Bearer {each['token']}", secret=sample_threads.SETTINGS.secret, term=60)
        for each in (posted, voted)
    ]
    post(client, name="Bob")
    with open_store.context():
        sample_votes.count_all(datetime.now(UTC).replace(year=2100))
    read = [client.get(path, headers=bearer(voted)) for path in (VOTES, f"{VOTES}&limit=1", THREAD)]
    read += [client.get(f"{AUTHORS}?limit=1"), client.get(ONE + posted["comment"]["id"])]
    for response in read:
        assert response.status_code == 200
        assert not any(guest.id[2:] in response.text for guest in guests)


def test_the_authors_of_a_site_are_listed_best_first_in_pages(
    client: FlaskClient, open_store: connection.Store
) -> None:
    posted = [post(client, name=f"writer {n}", website="https://a.example") for n in range(7)]
    for number, each in enumerate(posted):
        for voter in range(number // 2):
            answer(_put(client, each, address=f"192.0.2.{voter}"))
    post(client, name="writer 6")
    with open_store.context():
        sample_votes.count_all(datetime.now(UTC).replace(year=2100))
        assert len(list(reads.fetch(reads.Query("Standing")))) == 8
    whole = answer(client.get(AUTHORS))
    assert [each["score"] for each in whole["authors"]] == [3, 2, 2, 1, 1, 0, 0, 0]
    assert whole["cursor"] is None
    assert whole["authors"][0] == {
        "author": {"name": "writer 6", "website": "https://a.example"},
        "score": 3,
        "comments": 1,
    }
    for limit in (1, 2, 3, 8):
        found, cursor = [], ""
        while cursor is not None:
            page = answer(client.get(f"{AUTHORS}?limit={limit}{cursor and f'&cursor={cursor}'}"))
            assert len(page["authors"]) <= limit
            assert len(found) < 8
            found += page["authors"]
            cursor = page["cursor"]
        assert found == whole["authors"]
    first = client.get(AUTHORS)
    tag = {"If-None-Match": first.headers["ETag"]}
    assert client.get(AUTHORS, headers=tag).status_code == 304
    other = answer(client.get(THREAD + "&limit=1"))["cursor"]
    refused(client.get(f"{AUTHORS}?cursor={other}"), 400, "cursor")
    refused(client.get(f"{AUTHORS}?limit=101"), 400, "limit")
    assert client.get(AUTHORS.replace("demo", "nowhere")).status_code == 404


def test_an_author_whose_naming_comment_is_retracted_is_named_by_another(
    client: FlaskClient, open_store: connection.Store
) -> None:
    first = post(client, name="Ann")
    headers = bearer(first)
    with open_store.context():
        sample_votes.count_all()  # Otherwise both events could name the author in any order
    sent = {"name": "Ann later", "body": "x"}
    second = answer(client.post(THREAD, json=sent, headers=headers))
    with open_store.context():
        sample_votes.count_all()
    assert answer(client.get(AUTHORS))["authors"][0]["author"]["name"] == "Ann later"
    client.delete(ONE + second["comment"]["id"], headers=headers)
    with open_store.context():
        sample_votes.count_all()
    (shown,) = answer(client.get(AUTHORS))["authors"]
    assert (shown["author"]["name"], shown["comments"]) == ("Ann", 1)
    client.delete(ONE + first["comment"]["id"], headers=headers)
    with open_store.context():
        sample_votes.count_all()
    assert answer(client.get(AUTHORS))["authors"] == []


def test_held_comments_make_no_author(client: FlaskClient, open_store: connection.Store) -> None:
    with open_store.context():
        held = sample_threads.node("held", None, Status.PENDING, author="g:held", up=9)
        sample_threads.store_imported(records.ThreadName("demo", "t"), held)
        sample_votes.count_all()
        assert reads.get(counter_rows.standing_key("demo", "g:held")) is not None
    assert answer(client.get(AUTHORS))["authors"] == []


def test_every_response_about_votes_is_json(client: FlaskClient) -> None:
    posted = post(client)
    assert json.loads(_put(client, posted).text).keys() == {
        "comment", "value", "token", "expires"
    }  # fmt: skip


def test_the_64s_of_one_ipv6_customer_share_a_limit(
    client: FlaskClient, open_store: connection.Store
) -> None:
    posted = post(client)
    of_one_56 = [f"2001:db8:0:{number:x}::1" for number in range(4 * MOST + 2)]
    found = [_put(client, posted, address=each).status_code for each in of_one_56]
    assert found == [200] * (4 * MOST) + [429] * 2
    of_one_48 = [f"2001:db8:0:{256 * number:x}::1" for number in range(1, 12 * MOST + 3)]
    found = [_put(client, posted, address=each).status_code for each in of_one_48]
    assert found == [200] * (12 * MOST) + [429] * 2
    assert _put(client, posted, address="2001:db8:1::1").status_code == 200
    assert len(_cast(open_store)) == 16 * MOST + 1


def test_a_withdrawn_vote_makes_room_in_every_surrounding_network(client: FlaskClient) -> None:
    posted = post(client)
    path = f"{ONE}{posted['comment']['id']}/vote"
    for number in range(4 * MOST):
        voted = answer(_put(client, posted, address=f"2001:db8:0:{number:x}::1"))
    last = {"REMOTE_ADDR": f"2001:db8:0:{4 * MOST - 1:x}::1"}
    assert _put(client, posted, address="2001:db8:0:ff::1").status_code == 429
    answer(client.delete(path, headers=bearer(voted), environ_overrides=last))
    assert _put(client, posted, address="2001:db8:0:ff::1").status_code == 200
