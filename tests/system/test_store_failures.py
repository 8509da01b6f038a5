"""Each API call survives the failure of any single store call.

The tests call each endpoint with a fault before or after its n-th store call is applied, with every
status, for each n until the endpoint makes fewer than n calls. The endpoint succeeds or answers 503
with Retry-After, but never 500. After a retry of the request, its effect has happened exactly once.
Afterwards, every counter equals the sum over the comments.
"""

import itertools
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from comments.domain import records
from comments.events import dispatcher
from comments.posting import cast_vote
from comments.store import connection
from comments.upkeep import wiring
from comments.upkeep.integrity import repair
from datastore_emulator import faults, inprocess
from tests.support import prepared_stores, stored_state
from tests.support.histories import counter_oracle
from tests.support.people.api_requests import ONE, THREAD, answer, bearer, post
from tests.support.threads import sample_threads
from tests.system.test_counting_processes import STATUSES

pytestmark = pytest.mark.slow

SOME = ["UNAVAILABLE", "DEADLINE_EXCEEDED", "PERMISSION_DENIED"]
Act = Callable[[FlaskClient, dict, str], TestResponse]


@pytest.fixture
def engine() -> Iterator[inprocess.Engine]:
    """Use optimistic mode; in other modes, a lost BeginTransaction answer leaves locks for 2 s."""
    with prepared_stores.opened(None, "optimistic") as engine:
        yield engine


def _key(text: str) -> dict[str, str]:
    return {"Idempotency-Key": text.replace(" ", "-").ljust(16, ".")}


def _reply(client: FlaskClient, posted: dict, text: str) -> TestResponse:
    sent = {"name": "Bob", "body": text, "parent": posted["comment"]["id"]}
    return client.post(THREAD, json=sent, headers={**_key(text), **bearer(posted)})


def _root(client: FlaskClient, _: dict, text: str) -> TestResponse:
    return client.post(THREAD, json={"name": "Bob", "body": text}, headers=_key(text))


def _edit(client: FlaskClient, posted: dict, text: str) -> TestResponse:
    headers = {**bearer(posted), "If-Match": '"1"'}
    return client.patch(_one(posted), json={"body": text}, headers=headers)


def _retract(client: FlaskClient, posted: dict, _: str) -> TestResponse:
    return client.delete(_one(posted), headers={**bearer(posted), "If-Match": '"1"'})


def _vote(client: FlaskClient, posted: dict, text: str) -> TestResponse:
    return client.put(f"{_one(posted)}/vote", json={"value": 1}, headers=_key(text))


def _withdraw(client: FlaskClient, posted: dict, _: str) -> TestResponse:
    return client.delete(f"{_one(posted)}/vote", headers=bearer(posted["voter"]))


def _one(posted: dict) -> str:
    return f"{ONE}{posted['comment']['id']}"


def _found(text: str) -> int:
    return sum(row.body == text for row in stored_state.said().values())


# For each endpoint, a function that calls it and a function that checks that its write is stored
# once.
WRITES: dict[str, tuple[Act, Callable[[dict, str], bool]]] = {
    "reply": (_reply, lambda _, text: _found(text) == 1),
    "root": (_root, lambda _, text: _found(text) == 1),
    "edit": (_edit, lambda posted, text: _state(posted) == ("approved", 2, text)),
    "retract": (_retract, lambda posted, _: _state(posted) == ("retracted", 2, "")),
    "vote": (_vote, lambda posted, _: _votes(posted) == 1),
    "withdraw": (_withdraw, lambda posted, _: _votes(posted) == 0),
}
READS: dict[str, Act] = {
    "page": lambda client, *_: client.get(f"{THREAD}&limit=3"),
    "one": lambda client, posted, _: client.get(_one(posted)),
    "replies": lambda client, posted, _: client.get(f"{_one(posted)}/replies"),
    "counts": lambda client, *_: client.post(
        "/api/v1/sites/demo/counts", json={"threads": ["t", "other"]}
    ),
    "following": lambda client, posted, _: client.get(
        "/api/v1/sites/demo/following?thread=t", headers=bearer(posted)
    ),
    "votes": lambda client, posted, _: client.get(
        "/api/v1/sites/demo/votes?thread=t", headers=bearer(posted)
    ),
}


def _state(posted: dict) -> tuple[str, int, str]:
    row = stored_state.said()[posted["comment"]["id"]]
    return row.status, row.revision, row.body


def _votes(posted: dict) -> int:
    return sum(comment == posted["comment"]["id"] for comment, _ in stored_state.votes())


def _struck(engine: inprocess.Engine, act: Callable[[], TestResponse], **fault: Any) -> int | None:
    """Return the response's status if the n-th call fails, or None if there is no n-th call."""
    plan = faults.Plan.parse({"rules": [fault]})
    engine.install_faults(plan)
    try:
        response = act()
    finally:
        engine.install_faults(None)
    if not plan.log:
        return None
    assert response.status_code in {200, 201, 503}, (fault, response.text)
    if response.status_code == 503:
        assert int(response.headers["Retry-After"]) > 0
    return response.status_code


@pytest.mark.parametrize("name", WRITES)
def test_a_write_whose_nth_store_call_fails_takes_effect_once_when_repeated(
    client: FlaskClient, engine: inprocess.Engine, open_store: connection.Store, name: str
) -> None:
    act, is_stored_once = WRITES[name]
    seen: list[int] = []
    for status, when in itertools.product(STATUSES, ("before", "after")):
        for call in itertools.count(1):
            text = f"{status} {when} {call}".lower()
            posted = post(client, body="what it is about")
            if name == "withdraw":
                posted["voter"] = answer(_vote(client, posted, text))

            def ask(posted: dict = posted, text: str = text) -> TestResponse:
                return act(client, posted, text)

            found = _struck(engine, ask, call=call, when=when, status=status)
            if found is None:
                break
            seen.append(found)
            assert ask().status_code in {200, 201}
            with open_store.context():
                assert is_stored_once(posted, text), text
    assert 503 in seen
    assert {200, 201} & set(seen)
    with open_store.context():
        _assert_sound()


@pytest.mark.parametrize("name", READS)
def test_a_read_whose_nth_store_call_fails_succeeds_or_asks_to_retry(
    client: FlaskClient, engine: inprocess.Engine, name: str
) -> None:
    posted = post(client)
    whole = answer(READS[name](client, posted, ""))
    for status, when in itertools.product(SOME, ("before", "after")):
        for call in itertools.count(1):
            found = _struck(
                engine,
                lambda: READS[name](client, posted, ""),
                call=call,
                when=when,
                status=status,
            )
            if found is None:
                break
            assert answer(READS[name](client, posted, "")) == whole
        assert call > 1


def test_a_repeated_post_without_an_idempotency_key_is_a_second_comment(
    client: FlaskClient, engine: inprocess.Engine, open_store: connection.Store
) -> None:
    def ask() -> TestResponse:
        return client.post(THREAD, json={"name": "Bob", "body": "once"})

    lost = {"rpc": "Commit", "call": 1, "when": "after", "status": "PERMISSION_DENIED"}
    assert _struck(engine, ask, **lost) == 503
    assert ask().status_code == 201
    with open_store.context():
        assert _found("once") == 2
        _assert_sound()


def _assert_sound() -> None:
    now = sample_threads.START + timedelta(days=36_500)
    for comment in cast_vote.waiting_comments(now):
        cast_vote.count(comment.id, now=now)
    dispatcher.deliver(counter_oracle.events(), now=now, handlers=wiring.HANDLERS)
    stored_state.assert_sums()
    assert (
        repair.find_problems(sample_threads.SETTINGS.scheme, records.ThreadName("demo", "t")) == []
    )
