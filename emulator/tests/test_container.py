"""The image of the emulator builds, and its server needs no privileges."""

import secrets
import subprocess
from collections.abc import Iterator

import pytest
from google.cloud import datastore

from tests.support import optional_tools, programs

FOLDER = programs.ROOT / "emulator"


def podman(*arguments: str) -> str:
    done = subprocess.run(
        ["podman", *arguments], check=False, capture_output=True, text=True, cwd=FOLDER
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


@pytest.fixture
def image() -> Iterator[str]:
    base = optional_tools.container_base()
    name = f"datastore-emulator-test-{secrets.token_hex(4)}"
    podman(
        *("build", "--format=docker", f"--build-arg=BASE={base}", f"--tag={name}"),
        *("--volume=/etc/ssl/certs:/etc/ssl/certs:ro", "."),  # pip's connections, as outside
    )
    yield name
    podman("rmi", name)


@pytest.mark.slow
def test_a_client_outside_the_container_reaches_the_emulator_in_it(
    image: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    podman(
        *("run", "--detach", f"--name={image}", "--read-only", "--cap-drop=ALL"),
        *("--health-interval=disable", "--publish=127.0.0.1::8081", image, "--in-memory"),
    )
    try:
        host = podman("port", image, "8081")
        programs.wait_until(
            lambda: "export " in podman("logs", image), "the emulator in the container"
        )
        podman("healthcheck", "run", image)
        monkeypatch.setenv("DATASTORE_EMULATOR_HOST", host)
        client = datastore.Client(project="test")
        client.put(datastore.Entity(client.key("Note", "one")))
        assert len(list(client.query(kind="Note").fetch())) == 1
        podman("stop", image)
        assert podman("inspect", "--format={{.State.ExitCode}}", image) == "0"
    finally:
        podman("rm", "--force", "--volumes", image)
