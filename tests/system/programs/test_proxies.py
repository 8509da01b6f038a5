"""The configurations for nginx and Caddy serve readers as docs/deploying.md says."""

import contextlib
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import programs, proxies

THREAD = "/api/v1/sites/demo/comments?thread=t"
SLOW = 24  # More clients than the service has threads
# What a reader may send to appear as somebody else.
FORGED = {
    "X-Forwarded-For": "203.0.113.9",
    "X-Real-IP": "203.0.113.9",
    "Forwarded": "for=203.0.113.9",
    "X-Forwarded-Proto": "gopher",
    "X-Forwarded-Host": "evil.example",
}
_keys = (f"proxy-test-{number:06}" for number in itertools.count())
# Readers' addresses, each of which only one test uses, because a network may post twice.
_addresses = (f"127.0.1.{number}" for number in range(1, 255))


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a service behind a proxy, where a network may post twice in ten minutes."""
    environ = programs.environment(
        PORT="0",
        FLATTHREAD_DATA=str(tmp_path_factory.mktemp("service") / "data"),
        PUBLIC_URL=f"https://{proxies.NAME}",
        TRUSTED_PROXIES="1",
        POSTS_PER_NETWORK="2",
        PROOF_OF_WORK="0",
        FORM_SECONDS="0",
        SAME_TEXTS="0",
        POSTS_PER_AUTHOR="0",
    )
    serve: list[str | Path] = [programs.BIN / "python", "-m", "flatthread", "serve"]
    with programs.running(serve, environ=environ) as program:
        yield int(program.wait_for(r"answers at http://\S+:(\d+)/")[1])


@pytest.fixture(scope="module", params=["nginx", "caddy"])
def proxy(
    request: pytest.FixtureRequest, service: int, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Any]:
    with getattr(proxies, request.param)(tmp_path_factory.mktemp("proxy"), service) as running:
        yield running


def posting(text: str) -> Any:
    body = json.dumps({"name": "Ada", "body": text}).encode()
    return body, {"Content-Type": "application/json", "Idempotency-Key": next(_keys)}


def post(proxy: Any, source: str, text: str = "a comment", **more: str) -> Any:
    body, headers = posting(text)
    answer, content = proxy.ask("POST", THREAD, body=body, headers=headers | more, source=source)
    return answer.status, content


def direct(service: int, path: str) -> Any:
    return programs.fetch(f"http://127.0.0.1:{service}{path}", Host=proxies.NAME)


def test_each_reader_has_limits_of_their_own_which_forged_headers_do_not_evade(
    proxy: Any,
) -> None:
    ann, ben = next(_addresses), next(_addresses)
    assert [post(proxy, ann)[0] for _ in range(3)] == [201, 201, 429]
    assert post(proxy, ann, **FORGED)[0] == 429
    assert [post(proxy, ben, **FORGED)[0] for _ in range(3)] == [201, 201, 429]


def test_long_requests_and_answers_pass_unchanged(proxy: Any, service: int) -> None:
    reader = next(_addresses)
    # The longest text: four bytes in UTF-8 for each character, and twelve in JSON.
    status, created = post(proxy, reader, "\N{WHITE SMILING FACE}" * 10_000)
    assert status == 201, created
    answer, thread = proxy.ask("GET", THREAD)
    assert (answer.status, thread) == direct(service, THREAD)
    # The service accepts heads of 32 KiB, so it must be the one to refuse a page with this address.
    long = f"{THREAD}&page=https://blog.example/{'x' * 20_000}"
    answer, refusal = proxy.ask("GET", long)
    assert (answer.status, json.loads(refusal)) == (400, json.loads(direct(service, long)[1]))


def test_the_service_itself_refuses_a_body_that_is_too_large(proxy: Any) -> None:
    body, headers = posting("x" * 200_000)
    answer, problem = proxy.ask("POST", THREAD, body=body, headers=headers)
    assert answer.status == 413
    assert json.loads(problem)["code"] == "too-large"


def test_slow_clients_block_no_reader_and_nginx_does_not_pass_them_on(
    proxy: Any, service: int
) -> None:
    with contextlib.ExitStack() as stack:
        slow = [stack.enter_context(contextlib.closing(begin(proxy))) for _ in range(SLOW)]
        for _ in range(4):
            assert proxy.ask("GET", THREAD)[0].status == 200
        # Caddy passes bodies on as they come; the service holds them without a thread.
        if proxy.has_buffers:
            assert proxies.connections_to(service) == 1
        for each in slow:
            each.send(b'e"}')
            assert each.getresponse().status == 201


def begin(proxy: Any) -> Any:
    """Send a post without its last three bytes."""
    body, headers = posting("late")
    connection = proxy.connection(next(_addresses))
    connection.putrequest("POST", THREAD)
    for name, value in {**headers, "Content-Length": str(len(body))}.items():
        connection.putheader(name, value)
    connection.endheaders(body[:-3])
    return connection
