"""Calls with the author's token never reveal a shadow ban.

The same author makes the same calls on two fresh services; one service has a shadow ban. The tests
compare every byte of every response, except for the time at which a token was signed.
"""

import re
from collections.abc import Callable, Iterator

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from comments import app as apps
from comments import config
from comments.domain import records
from comments.domain.records import Policy
from comments.moderation.policy import policy_changes
from comments.moderation.policy.rules import Action, Rule
from comments.web.api.callers import api_tokens
from comments.web.http import context
from tests.support import datastores, prepared_stores
from tests.support.people import api_requests
from tests.support.people.post_times import Moment
from tests.support.threads import sample_threads

SETTINGS = config.Settings(secret="a secret of the tests")
ADA = records.Actor("cli", "Ada")
AUTHOR = "g:ann"
SITE = "/api/v1/sites/demo"
LINK = "A text with <https://link.example>"
HELD = Rule(id="held", action=Action.HOLD, words=("wait",))
Answer = tuple[str, int, dict[str, str], bytes]
_TOKEN = re.compile(rb'"token":"[^"]+"')


class Life:
    """An author's calls on a service and their responses."""

    def __init__(self, client: FlaskClient) -> None:
        self._client = client
        token = api_tokens.sign(api_tokens.Guest("demo", AUTHOR), secret=SETTINGS.secret)
        self._headers = {"Authorization": f"Bearer {token}"}
        self.answers: list[Answer] = []

    def call(self, method: str, path: str, json: object = None, **headers: str) -> TestResponse:
        response = self._client.open(
            path, method=method, json=json, headers={**self._headers, **headers}
        )
        told = {k: v for k, v in response.headers.items() if k != "Date"}
        body = _TOKEN.sub(b'"token":"..."', response.data)
        # This header depends on the length of a token, which depends on the current second.
        told.pop("Content-Length", None)
        self.answers.append((f"{method} {path}", response.status_code, told, body))
        return response

    def post(self, body: str, number: int, parent: str | None = None) -> str:
        key = f"key-of-the-post-{number}"
        json = {"name": "Ann", "body": body, **({"parent": parent} if parent else {})}
        posted = self.call("POST", api_requests.THREAD, json, Idempotency_Key=key)
        return str(api_requests.answer(posted)["comment"]["id"])

    def look(self) -> None:
        for path in ("held?thread=t", "votes?thread=t", "author"):
            self.call("GET", f"{SITE}/{path}")


def lived(client: FlaskClient) -> tuple[list[Answer], list[str]]:
    """Make every API call that accepts a token, most of these calls in several states."""
    bob = client.post(
        api_requests.THREAD,
        json={"name": "Bob", "body": "Hello"},
        headers={"Idempotency-Key": "b" * 16},
    )
    other = api_requests.answer(bob)["comment"]["id"]
    life = Life(client)
    own = life.post("A first text", 1)
    life.post("A first text", 1)
    linked = life.post(LINK, 2)
    waiting = life.post("A word to wait for", 3)
    life.look()
    for number, parent in enumerate((own, other), 4):
        made = life.call(
            "POST", api_requests.THREAD, {"name": "Ann", "body": "Reply", "parent": parent},
            Idempotency_Key=f"key-of-the-reply-{number}",
        )  # fmt: skip
        if made.status_code < 300:
            reply = api_requests.answer(made)["comment"]["id"]
            life.call("PATCH", api_requests.ONE + reply, {"body": f"Reply {LINK}"})
    for comment in (own, linked, waiting, other):
        one = api_requests.ONE + comment
        life.call("PUT", f"{one}/vote", {"value": 1})
        life.call("DELETE", f"{one}/vote")
        life.call("POST", f"{one}/report", {"reason": "spam"})
        life.call("PATCH", one, {"body": "Edited"})
        life.call("PATCH", one, {"body": "Edited twice"}, If_Match='"1"')
        life.call("PATCH", one, {"body": f"Edited {LINK}"}, If_Match='"2"')
    life.look()
    life.call("PUT", f"{SITE}/subscription?thread=t", {"email": "a@b.example", "replies": True})
    life.call("DELETE", api_requests.ONE + linked, If_Match='"1"')
    life.call("DELETE", api_requests.ONE + linked)
    life.call("DELETE", api_requests.ONE + linked)
    life.look()
    shown = api_requests.listed(client)
    life.call("DELETE", f"{SITE}/author")
    life.look()
    return life.answers, shown


@pytest.fixture
def frozen(monkeypatch: pytest.MonkeyPatch) -> Iterator[Moment]:
    moment = Moment()
    monkeypatch.setattr(context, "datetime", moment)
    return moment  # type: ignore[return-value]


def _life(
    datastore: datastores.Datastore, policy: Policy, *, is_banned: bool
) -> tuple[list[Answer], list[str]]:
    """Return the author's responses, and the comments that others saw before the erasure."""
    store = datastore.connect()
    with store.context():
        prepared_stores.demo()
        client = apps.create_app(SETTINGS, store).test_client()
        policy_changes.set_policy("demo", ADA, now=sample_threads.START, policy=policy)
        policy_changes.put_rule("demo", HELD, ADA, now=sample_threads.START)
        if is_banned:
            policy_changes.ban("demo", AUTHOR, ADA, now=sample_threads.START, is_shadow=True)
    return lived(client)


@pytest.mark.parametrize("policy", [Policy.OFF, Policy.LINKS, Policy.FIRST, Policy.ALL])
def test_no_response_reveals_a_shadow_ban_to_its_author(
    new_datastore: Callable[[], datastores.Datastore], frozen: Moment, policy: Policy
) -> None:
    (ordinary, ordinary_shown), (banned, shown) = (
        _life(new_datastore(), policy, is_banned=each) for each in (False, True)
    )
    assert len(ordinary) > 40
    for one, other in zip(ordinary, banned, strict=True):
        assert one == other
    assert not [html for html in shown if "Hello" not in html]  # Proves that the ban was in effect
    assert len(ordinary_shown) > 1 or policy is not Policy.OFF
