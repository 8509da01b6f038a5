"""The image builds, and its service runs without privileges and without a writable file system."""

import contextlib
import http.client
import re
import secrets
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support import optional_tools, programs

pytestmark = pytest.mark.slow
THREAD = "/api/v1/sites/demo/comments?thread=t"
CONFINED = ("--init", "--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges")
# podman starts health checks with systemd, which not every machine has; a test starts one itself.
MANUAL = "--health-interval=disable"
KILLED = "137"


def podman(*arguments: str) -> str:
    done = subprocess.run(
        ["podman", *arguments], check=False, capture_output=True, text=True, cwd=programs.ROOT
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def image() -> Iterator[str]:
    base = optional_tools.container_base()
    name = f"flatthread-test-{secrets.token_hex(4)}"
    podman("build", "--format=docker", f"--build-arg=BASE={base}", f"--tag={name}", ".")
    yield name
    podman("rmi", name)


@pytest.fixture
def container(image: str) -> Iterator[str]:
    """A running container of the image, which uses only what docs/deploying.md gives it."""
    name = f"{image}-{secrets.token_hex(4)}"
    podman(
        *("run", "--detach", f"--name={name}", *CONFINED, MANUAL, f"--volume={name}:/data"),
        *("--publish=127.0.0.1::8080", "--env=PROOF_OF_WORK=0", image),
    )
    yield name
    podman("rm", "--force", "--volumes", name)
    podman("volume", "rm", name)


def port_of(container: str) -> int:
    """Wait until the service answers, and return its port on this machine."""
    port = int(podman("port", container, "8080").rpartition(":")[2])

    def answers() -> bool:
        with contextlib.suppress(OSError, http.client.HTTPException):
            return programs.fetch(f"http://127.0.0.1:{port}/healthz")[0] == 200
        return False

    programs.wait_until(answers, "the service in the container")
    return port


def begin_post(port: int, body: bytes, key: str) -> Any:
    """Send a post without the last byte of its body, and wait until a worker has it."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=programs.PATIENCE)
    connection.putrequest("POST", THREAD)
    connection.putheader("Content-Type", "application/json")
    connection.putheader("Content-Length", str(len(body)))
    connection.putheader("Idempotency-Key", key)
    connection.putheader("Expect", "100-continue")
    connection.endheaders()
    assert connection.sock.recv(1024).startswith(b"HTTP/1.1 100 ")
    connection.send(body[:-1])
    return connection


def test_the_service_keeps_its_data_and_stops_before_it_is_killed(container: str) -> None:
    port = port_of(container)
    body = b'{"name": "Ada", "body": "still here"}'
    kept, lost = (begin_post(port, body, f"container-test-{number}") for number in (1, 2))
    with contextlib.closing(kept), contextlib.closing(lost):
        kept.send(body[-1:])
        assert kept.getresponse().status == 201
        # The other request never ends.
        podman("stop", "--time=10", container)
    assert podman("inspect", container, "--format={{.State.ExitCode}}") == "0"
    podman("start", container)
    assert b"still here" in programs.fetch(f"http://127.0.0.1:{port_of(container)}{THREAD}")[1]


def test_the_service_has_no_privileges_and_writes_only_to_its_volume(container: str) -> None:
    port_of(container)
    podman("healthcheck", "run", container)
    link = podman("exec", container, "cat", "/data/first-owner")
    assert re.fullmatch(r"http://127\.0\.0\.1:8080/admin/welcome#\S+", link)
    assert "demo" in podman("exec", container, "flatthread", "site", "list")
    assert podman("exec", container, "id", "-u") == "10001"
    for path in ("/x", "/opt/flatthread/x"):
        with pytest.raises(AssertionError, match="Read-only file system"):
            podman("exec", container, "touch", path)


def test_the_service_stops_during_its_start(container: str) -> None:
    podman("stop", "--time=10", container)
    assert podman("inspect", container, "--format={{.State.ExitCode}}") != KILLED
