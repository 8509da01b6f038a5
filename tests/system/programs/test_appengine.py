"""The entrypoint in app.yaml runs under the conditions of App Engine's smallest instances.

The tests provide App Engine's environment variables, only the files that a deployment uploads, a
file system that is read-only except for /tmp, and 384 MB of memory. The store is an emulator behind
gRPC; the product connects to it in the same way as to Datastore.
"""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support import optional_tools, programs

MEMORY = 384 * 1024 * 1024
PROJECT = "flatthread-test"
SECRET = "a secret of the appengine test"

# This script runs $ENTRYPOINT in $WORKSPACE with everything read-only except a fresh /tmp. The
# workspace and the installed packages may be below the previous /tmp, so the script keeps both open
# and mounts them again.
CONFINED = """
set -eu
mount --make-rprivate /
exec 3<"$WORKSPACE" 4<"$PACKAGES"
mount -t tmpfs tmpfs /tmp
mkdir /tmp/workspace
mount --no-canonicalize --bind /proc/self/fd/3 /tmp/workspace
mkdir -p "$PACKAGES"
mount --no-canonicalize --bind /proc/self/fd/4 "$PACKAGES"
exec 3<&- 4<&-
while read -r _ place _; do
  case "$place" in
    /tmp | /proc* | /sys* | /dev*) ;;
    *) mount -o remount,bind,ro "$place" ;;
  esac
done </proc/self/mounts
cd /tmp/workspace
if touch probe 2>/dev/null || touch "$HOME/probe" 2>/dev/null; then
  echo "the file system can be written to"
  exit 1
fi
exec sh -c "exec $ENTRYPOINT"
"""


def peak_memory(process: int) -> int:
    """Return the peak memory of a process and its descendants, in bytes.

    Shared pages count once for each process.
    """
    own = Path(f"/proc/{process}")
    status = dict(line.split(":", 1) for line in (own / "status").read_text().splitlines())
    below = (own / "task" / str(process) / "children").read_text().split()
    return int(status["VmHWM"].split()[0]) * 1024 + sum(peak_memory(int(one)) for one in below)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A folder with the files that a deployment uploads and the operator's secret."""
    programs.copy_project(tmp_path / "workspace", without=programs.ROOT / ".gcloudignore")
    (tmp_path / "workspace" / "flatthread.env").write_text(f"SECRET={SECRET}\n")
    return tmp_path / "workspace"


@pytest.fixture
def emulator() -> Iterator[Any]:
    command: list[str | Path] = [
        programs.BIN / "python",
        "-m",
        "emulator",
        "--port",
        "0",
        "--in-memory",
    ]
    with programs.running(
        [*command, "--indexes", "index.yaml"],
        environ=programs.environment(),
    ) as program:
        yield program.wait_for(r"DATASTORE_EMULATOR_HOST=(\S+)")[1]


@pytest.fixture
def service(workspace: Any, emulator: Any) -> Iterator[Any]:
    """Run the entrypoint in app.yaml; yield the program and its URL."""
    optional_tools.mounts()
    described = yaml.safe_load((workspace / "app.yaml").read_text())
    assert described["runtime"] == "python313"
    environ = programs.environment(
        ENTRYPOINT=described["entrypoint"],
        WORKSPACE=str(workspace),
        PACKAGES=str(programs.BIN.parent),
        GAE_ENV="standard",
        GAE_APPLICATION=f"e~{PROJECT}",
        GAE_DEPLOYMENT_ID="1",
        GAE_INSTANCE="1",
        GAE_MEMORY_MB=str(MEMORY // 1024 // 1024),
        GAE_RUNTIME="python313",
        GAE_SERVICE="default",
        GAE_VERSION="1",
        GOOGLE_CLOUD_PROJECT=PROJECT,
        PORT="0",
        DATASTORE_EMULATOR_HOST=emulator,
        # Disable these limits, because all of the test's posts come from one network.
        PROOF_OF_WORK="0",
        POSTS_PER_NETWORK="0",
        SAME_TEXTS="0",
        **described["env_variables"],
    )
    environ["PATH"] = f"{programs.BIN}:{environ['PATH']}"
    confined = [*programs.unshare(), "sh", "-c", CONFINED]
    with programs.running(confined, environ=environ) as program:
        port = program.wait_for(r"Listening at: http://[^:]+:(\d+)")[1]
        yield program, f"http://127.0.0.1:{port}"


def add_site(host: str, workspace: Any) -> None:
    """Add a site as docs/deploying.md describes, by a command that uses the deployment's store."""
    subprocess.run(
        [*programs.FLATTHREAD, "site", "add", "blog", "--origin", "https://x.y"],
        cwd=workspace,
        env=programs.environment(
            DATASTORE_EMULATOR_HOST=host,
            GOOGLE_CLOUD_PROJECT=PROJECT,
            FLATTHREAD_CONFIG="flatthread.env",
        ),
        check=True,
        capture_output=True,
        timeout=programs.PATIENCE,
    )


def test_the_entrypoint_posts_and_reads_within_the_limits_of_app_engine(
    service: Any, emulator: Any, workspace: Any
) -> None:
    program, url = service
    add_site(emulator, workspace)
    thread = f"{url}/api/v1/sites/blog/comments?thread=first"

    assert programs.fetch(f"{url}/healthz")[0] == 200
    posted = [
        programs.fetch(
            thread,
            method="POST",
            body=json.dumps({"name": "Ada", "body": f"number *{n}* " + "x" * 4_000}).encode(),
            content_type="application/json",
            idempotency_key=f"app-engine-test-{n:04}",
        )
        for n in range(50)
    ]
    assert [status for status, _ in posted] == [201] * 50
    status, page = programs.fetch(f"{thread}&limit=50")
    assert status == 200
    bodies = [comment["html"] for comment in json.loads(page)["comments"]]
    assert [f"number <em>{n}</em>" in html for n, html in enumerate(bodies)] == [True] * 50

    assert any(f"the emulator at {emulator}" in line for line in program.lines)
    assert peak_memory(program.process.pid) < MEMORY
    assert program.stop() == 0


def test_a_missing_secret_ends_the_entrypoint_with_a_one_line_message(workspace: Any) -> None:
    (workspace / "flatthread.env").write_text("")
    environ = programs.environment(GAE_ENV="standard", FLATTHREAD_CONFIG="flatthread.env")
    ended = subprocess.run(
        [programs.BIN / "python", "-c", "import main; main.app"],
        cwd=workspace,
        env=environ,
        check=False,
        capture_output=True,
        text=True,
        timeout=programs.PATIENCE,
    )
    assert ended.returncode == 3
    assert ended.stdout == ""
    assert ended.stderr == (
        "flatthread: SECRET is not set: use one random text for all instances\n"
    )
