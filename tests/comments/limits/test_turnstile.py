"""Test which posts Turnstile admits or refuses, and what happens while Turnstile is unavailable.

A real HTTP server on loopback simulates Cloudflare and accepts each token once.
"""

import dataclasses
import json
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs

import msgspec
import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from comments import config
from comments.domain import records
from comments.domain.records import Status
from comments.events import safe_http
from comments.limits import turnstile
from comments.moderation.policy import policy_changes, rules
from comments.sites import site_settings, turnstile_settings
from comments.store import connection
from datastore_emulator import inprocess, testing
from tests.support import loopback_servers
from tests.support.histories import counter_oracle
from tests.support.people import api_requests, proof_solver
from tests.support.store_interceptors import Calls
from tests.support.threads import sample_threads

pytestmark = pytest.mark.settings(posts_per_network=20)

HOST = "blog.example"
GOOD = "token"
LIMITS = safe_http.RequestLimits(connect=60.0, total=60.0, answer=turnstile.LIMITS.answer)
SHORT = dataclasses.replace(LIMITS, connect=0.5, total=0.5)  # For servers that never answer
BOSS = records.Actor("cli", "the command line")
Talk = Callable[[socket.socket, threading.Event], None]


class Cloudflare:
    """A simulated Cloudflare server that accepts each token only for the first key sent with it."""

    def __init__(self, receiver: loopback_servers.Receiver) -> None:
        self.receiver = receiver
        self.said: dict[str, Any] = {"success": True, "hostname": HOST, "action": "comment"}
        self.used: dict[str, str] = {}
        receiver.then = self._answer

    @property
    def asked(self) -> list[dict[str, str]]:
        found = [parse_qs(each.body.decode()) for each in self.receiver.heard]
        return [{name: "".join(value) for name, value in each.items()} for each in found]

    def _answer(self, _: loopback_servers.Heard) -> None:
        form = self.asked[-1]
        token, key = form["response"], form["idempotency_key"]
        said = self.said
        if self.used.setdefault(token, key) != key:
            said = {"success": False, "error-codes": ["timeout-or-duplicate"]}
        self.receiver.answer = json.dumps(said).encode()


def is_asked(
    store: connection.Store,
    port: int,
    settings: config.Settings,
    limits: safe_http.RequestLimits = LIMITS,
    **more: Any,
) -> None:
    client = loopback_servers.client(port, limits=limits)
    turnstile.OUTBOUND.put(store, client)
    with store.context():
        site_settings.change("demo", origins=[f"https://{HOST}", "http://localhost:8080"])
        given = turnstile_settings.TurnstileInput("site-key", "secret-key", **more)
        url = f"http://{loopback_servers.NAME}:{port}/siteverify"
        turnstile_settings.set_up(
            "demo", given._replace(url=url), settings=settings, now=sample_threads.START
        )


@pytest.fixture
def cloudflare(
    open_store: connection.Store, client: FlaskClient, settings: config.Settings
) -> Iterator[Cloudflare]:
    with loopback_servers.receiver() as receiver:
        is_asked(open_store, receiver.port, settings)
        yield Cloudflare(receiver)


def post(client: FlaskClient, token: str = GOOD, body: str = "Hello", **more: Any) -> TestResponse:
    return proof_solver.post(client, body, turnstile=token, **more)


def assert_refused(response: TestResponse, status: int, code: str) -> None:
    assert (response.status_code, response.get_json()["code"]) == (status, code), response.text


def stored(store: connection.Store) -> list[records.Case]:
    with store.context():
        found = [sample_threads.queue(status) for status in (Status.APPROVED, Status.PENDING)]
        return [case for cases in found for case in cases]


def test_a_valid_token_admits_and_no_personal_data_is_sent(
    client: FlaskClient, cloudflare: Cloudflare
) -> None:
    assert post(client).status_code == 201
    (asked,) = cloudflare.asked
    key = asked.pop("idempotency_key")
    assert (asked, len(key)) == ({"secret": "secret-key", "response": "token"}, 36)


def test_browsers_get_the_site_key_where_turnstile_is_enabled(
    client: FlaskClient, cloudflare: Cloudflare, open_store: connection.Store
) -> None:
    told = api_requests.answer(client.get(proof_solver.CHALLENGE))
    assert (told["turnstile"], told["maxnumber"]) == ("site-key", 0)
    with open_store.context():
        turnstile_settings.remove("demo")
    assert api_requests.answer(client.get(proof_solver.CHALLENGE))["turnstile"] == ""
    assert post(client, "").status_code == 201
    assert cloudflare.asked == []


def test_a_post_without_a_token_sends_no_request_and_stores_nothing(
    client: FlaskClient, cloudflare: Cloudflare, open_store: connection.Store
) -> None:
    assert_refused(post(client, ""), 403, "turnstile-required")
    assert post(client, "x" * (turnstile.LONGEST_TOKEN + 1)).status_code == 400
    assert (cloudflare.asked, stored(open_store)) == ([], [])


@pytest.mark.parametrize(
    "said",
    [
        {"success": False, "error-codes": ["invalid-input-response"]},
        {"success": False, "error-codes": ["timeout-or-duplicate"]},
        {"success": True, "hostname": "evil.example", "action": "comment"},
        {"success": True, "hostname": f"{HOST}.evil.example", "action": "comment"},
        {"success": True, "hostname": "", "action": "comment"},
        {"success": True, "action": "comment"},
        {"success": True, "hostname": HOST, "action": "login"},
        {"success": True, "hostname": HOST},
    ],
)
def test_an_invalid_token_or_one_of_another_page_or_purpose_is_refused(
    client: FlaskClient, cloudflare: Cloudflare, open_store: connection.Store, said: dict
) -> None:
    cloudflare.said = said
    assert_refused(post(client), 403, "turnstile-refused")
    assert stored(open_store) == []


@pytest.mark.parametrize("host", [HOST, HOST.upper(), "localhost"])
def test_a_token_from_any_origin_of_the_site_is_accepted(
    client: FlaskClient, cloudflare: Cloudflare, host: str
) -> None:
    cloudflare.said["hostname"] = host
    assert post(client).status_code == 201


def test_a_token_is_valid_for_one_post(
    client: FlaskClient, cloudflare: Cloudflare, open_store: connection.Store
) -> None:
    assert post(client, body="one").status_code == 201
    assert_refused(post(client, body="two"), 403, "turnstile-refused")
    # The second use is refused even if Cloudflare accepts the token again.
    cloudflare.used.clear()
    assert_refused(post(client, body="three"), 403, "turnstile-refused")
    assert len(stored(open_store)) == 1


def test_a_retried_post_is_the_same_post(
    client: FlaskClient, cloudflare: Cloudflare, open_store: connection.Store
) -> None:
    first = post(client, key="key")
    again = post(client, key="key")
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.headers["Idempotent-Replayed"] == "true"
    # Simulate that Cloudflare has lost the record that this post used the token.
    cloudflare.used["token"] = "another post's"
    assert post(client, key="key").status_code == 201
    cloudflare.receiver.status = 500
    with open_store.context():
        site_settings.change(
            "demo",
            turnstile=lambda found: msgspec.structs.replace(found, refuses=True),  # type: ignore[type-var]
        )
    assert post(client, key="key").status_code == 201
    # The retry comes from a network for which no use of the token is recorded.
    assert post(client, key="key", peer="198.51.100.9").status_code == 201
    assert_refused(post(client, "new", key="other"), 503, "turnstile-unavailable")
    assert len(stored(open_store)) == 1


def test_turnstile_is_checked_after_the_proof_of_work(
    client: FlaskClient, cloudflare: Cloudflare, open_store: connection.Store
) -> None:
    with open_store.context():
        site_settings.change("demo", guard={"proof_of_work": 50})
    assert_refused(post(client), 403, "proof-required")
    assert cloudflare.asked == []
    proof = proof_solver.proof(client)
    assert post(client, proof=proof).status_code == 201
    assert_refused(post(client, "another", "another text", proof=proof), 403, "proof-spent")


@pytest.mark.parametrize("beside", ["", "beside the proof of work"])
def test_turnstile_is_checked_outside_transactions_and_costs_no_store_calls(
    client: FlaskClient,
    cloudflare: Cloudflare,
    open_store: connection.Store,
    engine: inprocess.Engine,
    calls: Calls,
    beside: str,
) -> None:
    if beside:
        with open_store.context():
            site_settings.change("demo", guard={"proof_of_work": 50})
    costs: list[tuple[int, int]] = []
    under_way: list[list[str]] = []
    answer = cloudflare.receiver.then

    def asked(heard: loopback_servers.Heard) -> None:
        under_way.append(list(calls.names))
        answer(heard)

    cloudflare.receiver.then = asked
    for number in range(3):
        if number == 2:
            with open_store.context():
                turnstile_settings.remove("demo")
                site_settings.get("demo")
        proof = proof_solver.proof(client) if beside else ""
        calls.names.clear()
        with testing.meter(engine) as cost:
            assert post(client, f"t{number}", f"text {number}", proof=proof).status_code == 201
        costs.append((cost.reads, cost.writes))
    # Only the first post may read the site and its rules, which are cached afterwards.
    first, second = under_way
    assert set(first) <= {"Lookup"}
    assert second == []
    assert costs[1][0] - 4 <= 2  # The post itself needs four reads and five writes
    assert costs[1][1] - 5 <= 2
    assert costs[1] == costs[2]


def _closes(connection: socket.socket, _over: threading.Event) -> None:
    connection.recv(1)


def _hangs(_connection: socket.socket, over: threading.Event) -> None:
    over.wait()


def _trickles(connection: socket.socket, over: threading.Event) -> None:
    connection.recv(65536)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{")
    while not over.wait(0.05):
        connection.sendall(b" ")


def _answers(status: int, body: bytes) -> Talk:
    def talk(connection: socket.socket, _over: threading.Event) -> None:
        connection.recv(65536)
        head = f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\n\r\n"
        connection.sendall(head.encode() + body)

    return talk


YES = json.dumps({"success": True, "hostname": HOST, "action": "comment"}).encode()
AWAY = {
    "closes": _closes,
    "hangs": _hangs,
    "trickles": _trickles,
    "fails": _answers(500, YES),
    "fails with a word": _answers(503, b'{"success":false,"error-codes":["timeout-or-duplicate"]}'),
    "sends elsewhere": _answers(302, YES),
    "says nothing": _answers(200, b""),
    "says rubbish": _answers(200, b"<html>"),
    "says another type": _answers(200, b'{"success":"yes"}'),
    "says too much": _answers(200, YES[:-1] + b',"x":"' + b"x" * LIMITS.answer + b'"}'),
    "does not know us": _answers(200, b'{"success":false,"error-codes":["invalid-input-secret"]}'),
    "has a fault": _answers(200, b'{"success":false,"error-codes":["internal-error"]}'),
    "says no without a word": _answers(200, b'{"success":false}'),
}


@pytest.mark.parametrize("how", AWAY)
@pytest.mark.parametrize("then", ["hold", "refuse"])
def test_while_turnstile_is_unavailable_posts_are_held_or_refused_as_the_site_chose(
    client: FlaskClient,
    open_store: connection.Store,
    settings: config.Settings,
    how: str,
    then: str,
) -> None:
    with loopback_servers.peer(AWAY[how]) as port:
        is_asked(open_store, port, settings, SHORT, refuses=then == "refuse")
        response = post(client)
    if then == "refuse":
        assert_refused(response, 503, "turnstile-unavailable")
        assert response.headers["Retry-After"] == "60"
        assert stored(open_store) == []
        return
    assert response.status_code == 202
    (case,) = stored(open_store)
    assert (case.comment.status, case.rule) == (Status.PENDING, "turnstile")
    assert case.why == "Turnstile did not answer"


def test_a_rules_stricter_status_wins_over_holding(
    client: FlaskClient, cloudflare: Cloudflare, open_store: connection.Store
) -> None:
    cloudflare.receiver.status = 500
    with open_store.context():
        rule = rules.Rule(id="r", action=rules.Action.SPAM, words=("casino",))
        policy_changes.put_rule("demo", rule, BOSS, now=sample_threads.START)
        post(client, "one", "casino")
        (case,) = sample_threads.queue(Status.SPAM)
        assert case.rule == "rule:r"
        counter_oracle.assert_counted()


def test_an_unreadable_secret_is_treated_as_unavailability(
    client: FlaskClient, cloudflare: Cloudflare, open_store: connection.Store
) -> None:
    with open_store.context():
        damaged = records.Turnstile("site-key", "not sealed")
        site_settings.change("demo", turnstile=lambda _: damaged)
    assert post(client).status_code == 202
    assert cloudflare.asked == []
