"""Bots cannot publish comments on a service with default settings.

Each bot sends HTTP requests like a script and does one thing that people's browsers never do. The
service never publishes the bot's comment. A client that behaves like the widget can publish
comments.
"""

import http.client
import json
import time
from typing import Any

import pytest

from tests.support import programs
from tests.support.people import proof_solver

THREAD = "/api/v1/sites/demo/comments?thread=t"
CHALLENGE = "/api/v1/sites/demo/challenge"
REFUSED = (
    "without a proof", "forged", "guessed", "too fast", "in the honeypot", "the same proof again",
    "with a token", "by a key", "with both", "the other field",
)  # fmt: skip


class Server:
    """The service from a script's point of view."""

    def __init__(self, address: str) -> None:
        self._address = address

    def ask(self, method: str, path: str, body: object = None, **headers: str) -> tuple[int, Any]:
        connection = http.client.HTTPConnection(self._address, timeout=programs.PATIENCE)
        sent = None if body is None else json.dumps(body)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            connection.request(method, path, sent, {"Content-Type": "application/json", **named})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def post(self, body: str, headers: dict[str, str] | None = None, **more: object) -> str:
        status, said = self.ask(
            "POST", THREAD, {"name": "Bot", "body": body, **more}, **(headers or {})
        )
        return "shown" if status == 201 else str(said["code"])

    def challenge(self) -> dict[str, Any]:
        return dict(self.ask("GET", CHALLENGE)[1])

    def page(self, path: str) -> str:
        status, body = programs.fetch(f"http://{self._address}{path}")
        assert status == 200
        return body.decode()

    @property
    def shown(self) -> list[str]:
        return [row["html"] for row in self.ask("GET", THREAD)[1]["comments"]]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with programs.running(
        [*programs.FLATTHREAD, "serve"],
        environ=programs.environment(
            PORT="0", FLATTHREAD_DATA=str(tmp_path_factory.mktemp("data"))
        ),
    ) as program:
        yield Server(program.wait_for(r"answers at http://(\S+)/")[1])


def too_fast(server: Server) -> tuple[dict[str, Any], float, str]:
    """Post directly after opening the form, which the server refuses.

    Return the challenge, the time at which it arrived, and its proof, which is not spent. If a busy
    machine takes longer than a person, try again with a new form. The comment answers a missing one
    and is therefore never published.
    """
    for _ in range(programs.PATIENCE):
        began = time.monotonic()
        waiting = server.challenge()
        opened = time.monotonic()
        assert waiting["wait"] > 0
        proof = proof_solver.solved(waiting)
        said = server.post("too fast", proof=proof, parent="a" * 26)
        if time.monotonic() - began < waiting["wait"]:
            assert said == "too-fast"
            return waiting, opened, proof
    raise TimeoutError("the machine is too busy to post before the end of the wait")


def test_a_bots_post_is_never_published_and_a_widget_like_post_is(server: Server) -> None:
    waiting, opened, proof = too_fast(server)
    assert server.post("without a proof") == "proof-required"
    forged = {"X-Forwarded-For": "127.0.0.1", "X-Appengine-User-IP": "127.0.0.1"}
    assert server.post("forged", forged, proof="e30=") == "proof-invalid"
    guessed = proof_solver.encoded({**waiting, "number": 0})
    assert server.post("guessed", proof=guessed) == "proof-invalid"
    time.sleep(max(0.0, waiting["wait"] - (time.monotonic() - opened)))
    assert server.post("in the honeypot", proof=proof, subject="Cheap") == "not-accepted"
    assert server.shown == []

    assert server.post("as the widget does", proof=proof) == "shown"
    assert server.post("the same proof again", proof=proof) == "proof-spent"
    assert server.shown == ["<p>as the widget does</p>\n"]

    # A token from voting, an idempotency key or an extra field does not bypass the check.
    vote = f"/api/v1/comments/{server.ask('GET', THREAD)[1]['comments'][0]['id']}/vote"
    light = server.ask("GET", f"{proof_solver.CHALLENGE}?purpose=vote")[1]
    status, voted = server.ask("PUT", vote, {"value": 1, "proof": proof_solver.solved(light)})
    assert status == 200
    token = {"Authorization": f"Bearer {voted['token']}"}
    assert server.post("with a token", token) == "proof-required"
    assert server.post("by a key", {"Idempotency-Key": "of-a-bot-0123456"}) == "proof-required"
    assert server.post(
        "with both", {**token, "Idempotency-Key": "of-a-bot-0123456"}, proof=proof
    ) == ("proof-spent")
    assert (
        server.post("the other field", altcha=proof_solver.solved(server.challenge()))
        == "unknown-field"
    )
    assert server.shown == ["<p>as the widget does</p>\n"]
    for page in ("/feeds/demo", "/embed/demo?thread=t"):
        text = server.page(page)
        assert "as the widget does" in text
        assert not [word for word in REFUSED if word in text]
