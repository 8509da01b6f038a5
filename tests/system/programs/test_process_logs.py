"""A real process's log reveals nothing about callers or authors, even during failures.

gunicorn runs as in `flatthread serve`, at the most verbose log level. gunicorn receives malformed
requests, requests that the service refuses, and requests that fail with an error that quotes their
content.
"""

import json
import socket
import urllib.parse
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support import programs

SETTINGS = programs.ROOT / "flatthread" / "serving.py"
CANARY = "canary"
# With these settings, a text, address, name, token or path with the canary raises an error that
# quotes it.
FAILING = """
import logging

loglevel = "info"
kept = post_worker_init

def post_worker_init(worker):
    import comments.posting.new_comment
    import comments.posting.previews
    import comments.reading.thread_pages

    def fail(*arguments, **named):
        logging.getLogger("some.library").error("cannot use %r", arguments)
        logging.getLogger("some.library").error(f"cannot use {arguments!r}")
        raise ValueError(f"cannot use {arguments!r} and {named!r}")

    comments.posting.previews.render = fail
    comments.posting.new_comment.post = fail
    kept(worker)
"""
SENT = {"name": "Canary Ann", "body": "canary text", "email": "canary@mailbox.example"}
DAMAGED = (
    b"GET /canary token=canary HTTP/1.1\r\n\r\n",
    b"canary\r\n\r\n",
    b"GET / HTTP/9.canary\r\nHost: x\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\nAuthorization : Bearer canary\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\ncanary\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: canary\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: canary\r\n\r\n",
    b"GET /" + b"canary" * 20_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\nX-Long: " + b"canary" * 20_000 + b"\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfccanary\r\n\r\n",
)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("service")
    settings = folder / "settings.py"
    settings.write_text(SETTINGS.read_text() + FAILING)
    with programs.running(
        [
            programs.BIN / "python",
            "-m",
            "gunicorn",
            "--bind",
            "127.0.0.1:0",
            "--config",
            settings,
            "main:app",
        ],
        environ=programs.environment(FLATTHREAD_DATA=str(folder / "data"), PROOF_OF_WORK="0"),
    ) as program:
        yield program, program.wait_for(r"answers at (http://\S+/)")[1]


def raw(url: str, data: bytes) -> bytes:
    """Return the response to raw bytes, which need not form an HTTP request."""
    place = urllib.parse.urlsplit(url)
    with socket.create_connection((place.hostname, place.port), programs.PATIENCE) as connection:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        found = b""
        while data := connection.recv(65_536):
            found += data
    return found


@pytest.mark.parametrize("data", DAMAGED, ids=lambda data: repr(data[:40]))
def test_a_malformed_request_gets_the_same_problem_document_as_other_errors(
    service: Any, data: bytes
) -> None:
    head, _, body = raw(service[1], data).partition(b"\r\n\r\n")
    status, *lines = head.decode().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    number = int(status.split()[1])
    assert 400 <= number < 505
    problem = json.loads(body)
    assert (problem["status"], problem["code"]) == (number, f"http-{number}")
    assert CANARY not in body.decode()
    assert headers["Content-Type"] == "application/problem+json"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == "no-store"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert headers["Referrer-Policy"] == "strict-origin-when-cross-origin"
    assert "sandbox" in headers["Content-Security-Policy"]
    assert "camera=()" in headers["Permissions-Policy"]
    assert "Server" not in headers


def test_the_server_does_not_identify_itself(service: Any) -> None:
    head = raw(service[1], b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    lines = head.decode().lower().split("\r\n")
    assert lines[0] == "http/1.1 200 ok"
    assert not [line for line in lines if line.startswith("server:") or "gunicorn" in line]


def test_the_log_has_a_line_per_failure_and_nothing_about_the_caller(service: Any) -> None:
    program, url = service
    site = f"{url}api/v1/sites/demo"
    told = {
        "content_type": "application/json", "authorization": "Bearer canary.token.canary",
        "user_agent": "canary browser", "x_forwarded_for": "203.0.113.77",
        "cookie": "__Host-flatthread=canary",
    }  # fmt: skip
    text = json.dumps(SENT).encode()
    asked = [
        ("POST", f"{site}/preview", b'{"body": "canary text"}', 500),
        ("POST", f"{site}/comments?thread=canary", text, 401),
        ("POST", f"{site}/comments?thread=canary", b'{"canary": 1', 401),
        ("GET", f"{url}subscriptions/confirm?token=canary", None, 400),
        ("GET", f"{url}embed/canary%0d%0a@mailbox.example?thread=t", None, 404),
        ("GET", f"{url}tasks/upkeep?canary", None, 403),
        ("GET", f"{url}admin/sites/canary/queue", None, 200),  # Shows the sign-in form
        ("CANARY", f"{url}canary", None, 404),
    ]
    for method, address, body, status in asked:
        found, _ = programs.fetch(address, method=method, body=body, **told)
        assert found == status, address
    told.pop("authorization")
    assert programs.fetch(f"{site}/comments?thread=c", method="POST", body=text, **told)[0] == 500
    for data in DAMAGED:
        raw(url, data)
    assert program.stop() == 0
    lines = [
        line for line in program.lines if "answers at" not in line and "no owner yet" not in line
    ]
    said = [json.loads(line) for line in lines]
    assert {each["logger"] for each in said} == {
        "flatthread", "comments.web.http.problems", "gunicorn.error", "some.library",
    }  # fmt: skip
    failed = [each for each in said if each["logger"] == "comments.web.http.problems"]
    assert [each["message"] for each in failed] == [
        "POST /api/v1/sites/<site:site_id>/preview failed: 500",
        "POST /api/v1/sites/<site:site_id>/comments failed: 500",
    ]
    assert {each["error"] for each in failed} == {"ValueError"}
    assert failed[0]["at"][-2].startswith("comments/web/api/comment_calls.py:")
    assert "Invalid request" in {each["message"] for each in said}
    written = "\n".join(lines).lower()
    addresses = ("127.0.0.1", "203.0.113.77", "mailbox.example")
    for secret in (CANARY, "traceback", *addresses):
        found = [line for line in lines if secret in line.lower()]  # type: ignore[assignment]
        assert not [line for line in found if "Listening at" not in line], secret  # type: ignore[attr-defined]
    assert "debug" not in written
