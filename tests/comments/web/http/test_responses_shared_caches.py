"""Shared caches between the service and its readers never serve one caller's response to others.

The tests request every route, including routes added later: the response to a known caller is
either the same as for all callers or not cacheable.
"""

import itertools
from collections.abc import Iterator

import flask
import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from comments.domain import records
from comments.sites import site_settings
from comments.store import connection
from comments.store.models import comment_rows
from comments.web.api.callers import api_tokens
from tests.support.threads import sample_threads

PAGE = "/api/v1/sites/demo/comments?thread=t"
HELD = "only its author and moderators may see this"
# Example values for URL variables. New variables need an example here.
EXAMPLES = {
    "site_id": "demo", "name": "flatthread.js", "rest": "nowhere", "example": "events",
    "table": "days", "job": "nothing",
}  # fmt: skip


@pytest.fixture
def posted(client: FlaskClient, open_store: connection.Store) -> dict[str, str]:
    """Post, store a held reply by the same author, and vote as this author on Bob's comment.

    The site has inboxes.
    """
    other = client.post(PAGE, json={"name": "Bob", "body": "other"}).json
    made = client.post(PAGE, json={"name": "Ann", "body": "own"}).json
    assert made is not None
    assert other is not None
    token = {"Authorization": f"Bearer {made['token']}"}
    with open_store.context():
        site_settings.change("demo", options={"inbox": True})
        guest = api_tokens.read(
            token["Authorization"], secret=sample_threads.SETTINGS.secret, term=60
        )
        held = records.ImportedComment(
            id=comment_rows.comment_id(bytes(16)),
            reply_to=made["comment"]["id"],
            author=records.Author("Ann", id=guest.id),
            body=HELD,
            html=f"<p>{HELD}</p>",
            renderer="",
            status=records.Status.PENDING,
            created=sample_threads.START,
            source="",
        )
        sample_threads.store_imported(records.ThreadName("demo", "t"), held)
    voted = client.put(
        f"/api/v1/comments/{other['comment']['id']}/vote", json={"value": 1}, headers=token
    )
    assert voted.status_code == 200
    return {"comment_id": made["comment"]["id"], "held": held.id, **token}


def _paths(app: flask.Flask, comments: list[str]) -> Iterator[str]:
    """Yield URLs for every route that reads, with and without parameters."""
    queries = ["", "?thread=t", "?thread=t&order=recent", "?thread=t&order=newest", "?limit=2"]
    queries += ["?category=news"]
    queries += [f"?thread=t&around={each}" for each in comments]
    for rule in app.url_map.iter_rules():
        if "GET" not in (rule.methods or ()):
            continue
        for comment, query in itertools.product(comments, queries):
            given = {**EXAMPLES, "comment_id": comment}
            with app.test_request_context():
                yield (
                    flask.url_for(rule.endpoint, **{name: given[name] for name in rule.arguments})  # type: ignore[arg-type]
                    + query
                )


def _plain(answer: TestResponse) -> tuple[object, ...]:
    headers = {name: value for name, value in answer.headers if name != "Date"}
    return answer.status_code, answer.data, headers


@pytest.mark.slow
def test_cacheable_responses_are_the_same_for_everybody(
    app: flask.Flask, client: FlaskClient, posted: dict[str, str]
) -> None:
    known = {"Authorization": posted["Authorization"], "Cookie": "session=a"}
    shared = 0
    for path in dict.fromkeys(_paths(app, [posted["comment_id"], posted["held"]])):
        own = client.get(path, headers=known)
        # An anonymous caller, who comes second, must not get the first caller's response.
        public = client.get(path)
        assert "no-store" in public.headers["Cache-Control"] or _plain(own) == _plain(public), path
        assert "private" not in public.headers["Cache-Control"]
        assert HELD not in public.text
        if path.startswith("/api/v1/sites/demo/challenge"):
            # This response is different for each request and each caller.
            assert "no-store" in own.headers["Cache-Control"]
        elif _plain(own) != _plain(public):
            assert "no-store" in own.headers["Cache-Control"], path
            assert "Authorization" in own.headers["Vary"], path
            assert "ETag" not in own.headers, path
        elif public.status_code == 200:
            shared += 1
    assert shared > 20


def test_a_response_to_a_change_is_not_cacheable(
    client: FlaskClient, posted: dict[str, str]
) -> None:
    token = {"Authorization": posted["Authorization"]}
    one = f"/api/v1/comments/{posted['comment_id']}"
    for answer in (
        client.post(PAGE, json={"name": "Ann", "body": "b"}),
        client.post("/api/v1/sites/demo/preview", json={"body": "b"}),
        client.put(f"{one}/vote", json={"value": 1}),
        client.patch(one, json={"body": "c"}, headers=token),
        client.delete(f"{one}/vote", headers=token),
        client.delete(one, headers=token),
        client.delete(one),
    ):
        assert "no-store" in answer.headers["Cache-Control"]
