"""In the API, a held comment is visible only to its author, and no cache stores it."""

import pytest
from flask.testing import FlaskClient

from comments.domain import records
from comments.domain.records import Policy, Verb
from comments.moderation import decisions
from comments.moderation.policy import policy_changes
from comments.moderation.policy.rules import Action, Rule
from comments.store import connection
from tests.support.people.api_requests import (
    KEY,
    ONE,
    THREAD,
    answer,
    bearer,
    listed,
    post,
    refused,
)
from tests.support.threads import sample_threads

ADA = records.Actor("cli", "Ada")
HELD = "/api/v1/sites/demo/held?thread=t"
PUBLIC = [
    THREAD, f"{THREAD}&order=newest", f"{THREAD}&limit=all", "/embed/demo?thread=t",
    "/embed/demo/fragment?thread=t", "/feeds/demo", "/feeds/demo/thread?thread=t",
]  # fmt: skip


def _set(store: connection.Store, policy: Policy) -> None:
    with store.context():
        policy_changes.set_policy("demo", ADA, now=sample_threads.START, policy=policy)


def _rule(store: connection.Store, action: Action) -> None:
    with store.context():
        rule = Rule(id="r", action=action, words=("canary",))
        policy_changes.put_rule("demo", rule, ADA, now=sample_threads.START)


def _held(client: FlaskClient, body: str = "Canary", **more: object) -> dict:
    response = client.post(THREAD, json={"name": "Ann", "body": body, **more}, headers=KEY)
    assert response.status_code == 202, response.text
    assert response.headers["Cache-Control"] == "no-store"
    return answer(response)


def test_a_held_post_is_accepted_and_only_its_author_sees_it(
    client: FlaskClient, open_store: connection.Store
) -> None:
    other = post(client, "Bob")
    _set(open_store, Policy.ALL)
    made = _held(client)
    assert (made["comment"]["status"], made["comment"]["html"]) == ("pending", "<p>Canary</p>\n")
    assert _held(client)["comment"] == {k: v for k, v in made["comment"].items() if k != "replies"}
    comment_id = made["comment"]["id"]
    for url in (*PUBLIC, f"{ONE}{other['comment']['id']}"):
        told = client.get(url, headers=bearer(made))
        assert told.status_code == 200
        assert "Canary" not in told.text
        assert comment_id not in told.text
    assert refused(client.get(ONE + comment_id, headers=bearer(made)), 404)
    for url in (THREAD, "/embed/demo?thread=t"):
        refused_or_empty = client.get(f"{url}&around={comment_id}")
        assert refused_or_empty.status_code == 404


def test_held_comments_are_returned_only_to_their_author(
    client: FlaskClient, open_store: connection.Store
) -> None:
    other = post(client, "Bob")
    _set(open_store, Policy.ALL)
    made = _held(client)
    mine = client.get(HELD, headers=bearer(made))
    assert [row["html"] for row in answer(mine)["comments"]] == ["<p>Canary</p>\n"]
    assert mine.headers["Cache-Control"] == "private, no-store"
    assert "Authorization" in mine.headers["Vary"]
    others = answer(client.get(HELD, headers=bearer(other)))["comments"]
    assert [row["html"] for row in others] == ["<p>Hello</p>\n"]
    assert refused(client.get(HELD), 401) == "no-token"
    assert refused(client.get(f"{HELD}&token={made['token']}"), 400)
    elsewhere = "/api/v1/sites/demo/held?thread=elsewhere"
    assert answer(client.get(elsewhere, headers=bearer(made)))["comments"] == []


def test_a_token_of_another_site_shows_nothing(
    client: FlaskClient, open_store: connection.Store
) -> None:
    from comments.sites import site_settings  # noqa: PLC0415 - only this test needs it

    with open_store.context():
        scheme = sample_threads.SETTINGS.scheme
        site_settings.add(
            "other", ["http://localhost:8080"], scheme=scheme, now=sample_threads.START
        )
    _set(open_store, Policy.ALL)
    made = _held(client)
    assert refused(client.get("/api/v1/sites/other/held?thread=t", headers=bearer(made)), 401)


def test_an_approved_comment_appears_in_its_place(
    client: FlaskClient, open_store: connection.Store
) -> None:
    _set(open_store, Policy.ALL)
    made = _held(client)
    _set(open_store, Policy.OFF)
    post(client, body="later")
    assert listed(client) == ["<p>later</p>\n"]
    with open_store.context():
        decisions.decide("demo", made["comment"]["id"], Verb.APPROVE, ADA, now=sample_threads.START)
    assert listed(client) == ["<p>Canary</p>\n", "<p>later</p>\n"]
    (mine,) = answer(client.get(HELD, headers=bearer(made)))["comments"]
    assert mine["status"] == "approved"  # Shadow-banned comments show the same status


def test_an_edit_that_adds_a_link_is_held_and_its_author_is_informed(
    client: FlaskClient, open_store: connection.Store
) -> None:
    made = post(client)
    _set(open_store, Policy.LINKS)
    edited = client.patch(
        ONE + made["comment"]["id"],
        json={"body": "<https://canary.example>"},
        headers=bearer(made),
    )
    assert edited.status_code == 200
    assert answer(edited)["comment"]["status"] == "pending"
    assert listed(client) == []
    assert len(answer(client.get(HELD, headers=bearer(made)))["comments"]) == 1


def test_a_shadow_banned_author_cannot_tell(
    client: FlaskClient, open_store: connection.Store
) -> None:
    _rule(open_store, Action.SHADOW)
    response = client.post(THREAD, json={"name": "Ann", "body": "Canary"})
    assert response.status_code == 201
    assert answer(response)["comment"]["status"] == "approved"
    assert listed(client) == []
    mine = answer(client.get(HELD, headers=bearer(answer(response))))["comments"]
    assert [row["status"] for row in mine] == ["approved"]


def test_spam_is_reported_as_pending(client: FlaskClient, open_store: connection.Store) -> None:
    _rule(open_store, Action.SPAM)
    assert _held(client)["comment"]["status"] == "pending"


def test_a_refusal_names_no_rule(client: FlaskClient, open_store: connection.Store) -> None:
    _rule(open_store, Action.REJECT)
    response = client.post(THREAD, json={"name": "Ann", "body": "Canary"})
    assert refused(response, 403) == "comment-refused"
    assert "rule" not in response.text
    assert "canary" not in response.text.lower()


@pytest.mark.parametrize(
    "field",
    [
        "id", "hash", "sort_hash", "created", "status", "votes", "score", "pin", "pinned",
        "deleted", "imported", "role", "user_id", "ip", "badge", "rule", "why", "listed",
    ],
)  # fmt: skip
def test_authors_cannot_set_the_status_of_their_own_comment(
    client: FlaskClient, open_store: connection.Store, field: str
) -> None:
    made = post(client)
    _set(open_store, Policy.ALL)
    sent = {"name": "Ann", "body": "Hello", field: "approved"}
    refused(client.post(THREAD, json=sent), 400, field)
    edit = {"body": "Hello", field: "approved"}
    one = ONE + made["comment"]["id"]
    refused(client.patch(one, json=edit, headers=bearer(made)), 400, field)
    assert len(listed(client)) == 1
