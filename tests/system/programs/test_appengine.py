"""The commands of docs/app-engine.md lead to the first comment, on App Engine and on Cloud Run.

Google's commands are replaced by a program that notes its arguments. For App Engine, the entrypoint
in app.yaml then runs under the conditions of its smallest instances: App Engine's environment
variables, only the files that a deployment uploads, a file system that is read-only except for
/tmp, and 384 MB of memory. For Cloud Run, the container's command runs with Cloud Run's variables.
The store is an emulator behind gRPC; the product connects to it in the same way as to Datastore.

FLATTHREAD_APP_ENGINE_PYTHON names an environment with another Python for the entrypoint, such as
the one in app.yaml with the packages of requirements.txt.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from comments import app as apps
from tests.support import forked_programs, optional_tools, programs

MEMORY = 384 * 1024 * 1024
PROJECT = "comments-of-example"  # The name in the page
PAGE = (programs.ROOT / "docs" / "app-engine.md").read_text()
ENVIRONMENT = Path(os.environ.get("FLATTHREAD_APP_ENGINE_PYTHON") or programs.BIN.parent)
# Disable these limits, because all of a test's posts come from one network.
UNLIMITED = {"PROOF_OF_WORK": "0", "POSTS_PER_NETWORK": "0", "SAME_TEXTS": "0"}
COMMENT = {"content_type": "application/json", "X_Forwarded_Proto": "https"}
GCLOUD = """#!/bin/sh
for each in "$@"; do printf '%s\\0' "$each"; done >>gcloud.log
echo >>gcloud.log
case "$*" in
  *defaultHostname*) echo comments-of-example.uc.r.appspot.com ;;
  *projectNumber*) echo 12345 ;;
  *queues\\ describe*) echo projects/comments-of-example/locations/us-central1/queues/flatthread ;;
esac
"""

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
  [ -e "$place" ] || continue  # the new /tmp hides it
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
    """A folder with the files that a deployment uploads."""
    return programs.copy_project(tmp_path / "workspace", without=programs.ROOT / ".gcloudignore")


@pytest.fixture
def emulator() -> Iterator[str]:
    command: list[str | Path] = [
        programs.BIN / "python", "-m", "emulator", "--port", "0", "--in-memory",
        "--indexes", "index.yaml", "--strict-indexes",
    ]  # fmt: skip
    with programs.running(command, environ=programs.environment()) as program:
        yield program.wait_for(r"DATASTORE_EMULATOR_HOST=(\S+)")[1]


def steps(without: str) -> str:
    """Return all commands of the page, except those of the other platform's section."""
    before, _, rest = PAGE.partition(f"\n## {without}\n")
    text = before + rest.partition("\n## ")[2]
    script = "".join(re.findall(r"^```\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE))
    return script.replace(".venv/bin/flatthread", shlex.join(map(str, programs.FLATTHREAD)))


class Followed(NamedTuple):
    """The steps of the page, followed: the owner's link, and the words of Google's commands."""

    link: str
    google: list[list[str]]

    def option(self, command: str, name: str) -> str:
        (words,) = (each for each in self.google if " ".join(each).startswith(command))
        (found,) = (each for each in words if each.startswith(f"{name}="))
        return found.removeprefix(f"{name}=")


def follow(workspace: Path, emulator: str, *, without: str) -> Followed:
    """Run the commands of the page in a folder, with the emulator as the store."""
    programs.write(workspace / "bin" / "gcloud", GCLOUD)
    for name in ("bin/git", "scripts/venv"):
        programs.write(workspace / name, "#!/bin/sh\n")
    environ = programs.environment(DATASTORE_EMULATOR_HOST=emulator)
    environ["PATH"] = f"{workspace / 'bin'}:{environ['PATH']}"
    done = subprocess.run(
        ["sh", "-eu", "-c", steps(without)],
        cwd=workspace,
        env=environ,
        check=False,
        capture_output=True,
        text=True,
        timeout=programs.PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    assert "Added blog (https://blog.example)." in done.stdout
    (link,) = re.findall(r"^https://\S+/admin/welcome#\S+$", done.stdout, re.MULTILINE)
    lines = (workspace / "gcloud.log").read_text().splitlines()
    for name in ("bin", "scripts", "gcloud.log"):
        path = workspace / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    return Followed(link, [line.removesuffix("\0").split("\0") for line in lines])


def comment(thread: str, text: str, host: str, n: int = 0) -> int:
    body = json.dumps({"name": "Ada", "body": text}).encode()
    key = f"app-engine-test-{n:04}"
    return programs.fetch(
        thread, method="POST", body=body, Host=host, idempotency_key=key, **COMMENT
    )[0]


def app_engine_environment(workspace: Path, emulator: str) -> dict[str, str]:
    """Return App Engine's variables, and those of the confined program."""
    described = yaml.safe_load((programs.ROOT / "app.yaml").read_text())
    assert described["runtime"] == "python313"
    environ = programs.environment(
        ENTRYPOINT=described["entrypoint"],
        WORKSPACE=str(workspace),
        PACKAGES=str(ENVIRONMENT),
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
        **UNLIMITED,
        **described["env_variables"],
    )
    environ["PATH"] = f"{ENVIRONMENT / 'bin'}:{environ['PATH']}"
    return environ


def call_cron(url: str, *, events: int) -> None:
    """Make the calls of cron and of the queue, which nobody else may make."""
    cron = yaml.safe_load((programs.ROOT / "cron.yaml").read_text())["cron"]
    assert [each["url"] for each in cron] == ["/tasks/deliver", "/tasks/upkeep"]
    deliver, upkeep = (f"{url}{each['url']}" for each in cron)
    assert [programs.fetch(each)[0] for each in (deliver, upkeep)] == [403, 403]
    delivered = programs.fetch(deliver, X_Appengine_Cron="true")
    assert delivered[0] == 200
    assert json.loads(delivered[1])["delivered"] >= events
    assert programs.fetch(upkeep, X_Appengine_QueueName="another")[0] == 403
    compacted = programs.fetch(upkeep, X_Appengine_QueueName="flatthread")
    assert compacted[0] == 200


def test_the_page_leads_to_comments_within_the_limits_of_app_engine(
    workspace: Path, emulator: str
) -> None:
    optional_tools.mounts()
    followed = follow(workspace, emulator, without="Cloud Run")
    host = followed.link.split("/")[2]
    environ = app_engine_environment(workspace, emulator)
    confined = [*programs.unshare(), "sh", "-c", CONFINED]
    with programs.running(confined, environ=environ) as program:
        port = program.wait_for(r"Listening at: http://[^:]+:(\d+)")[1]
        url = f"http://127.0.0.1:{port}"
        assert programs.fetch(f"{url}/healthz")[0] == 200
        assert programs.fetch(f"{url}/")[0] == 421
        first = programs.fetch(f"{url}/", Host=host, X_Forwarded_Proto="https")[1]
        assert f"https://{host}/widget/flatthread.js".encode() in first
        thread = f"{url}/api/v1/sites/blog/comments?thread=first"
        posted = [comment(thread, f"number *{n}* " + "x" * 4_000, host, n) for n in range(50)]
        assert posted == [201] * 50
        status, page = programs.fetch(f"{thread}&limit=50", Host=host)
        assert status == 200
        bodies = [each["html"] for each in json.loads(page)["comments"]]
        assert [f"number <em>{n}</em>" in html for n, html in enumerate(bodies)] == [True] * 50

        call_cron(url, events=len(posted))
        assert any(f"the emulator at {emulator}" in line for line in program.lines)
        assert peak_memory(program.process.pid) < MEMORY
        assert program.stop() == 0


def test_the_page_leads_to_comments_on_cloud_run(workspace: Path, emulator: str) -> None:
    followed = follow(workspace, emulator, without="App Engine")
    host = followed.link.split("/")[2]
    assert host == "flatthread-12345.us-central1.run.app"
    assert followed.option("run deploy flatthread", "--set-env-vars").startswith(
        "FLATTHREAD_CONFIG=/settings/"
    )
    environ = programs.environment(
        FLATTHREAD_CONFIG=str(workspace / "flatthread.env"),
        K_SERVICE="flatthread",
        K_REVISION="flatthread-00001",
        K_CONFIGURATION="flatthread",
        PORT="0",
        DATASTORE_EMULATOR_HOST=emulator,
        **UNLIMITED,
    )
    with programs.running([*programs.FLATTHREAD, "serve"], environ=environ) as program:
        url = program.wait_for(r"answers at (http://\S+)/,")[1]
        assert comment(f"{url}/api/v1/sites/blog/comments?thread=first", "Hello", host) == 201
        for job in ("deliver", "upkeep"):
            created = f"scheduler jobs create http flatthread-{job}"
            path = followed.option(created, "--uri").removeprefix(f"https://{host}")
            name, _, token = followed.option(created, "--headers").partition("=")
            assert (path, name) == (f"/tasks/{job}", "Authorization")
            refused = (
                programs.fetch(f"{url}{path}"),
                programs.fetch(f"{url}{path}", X_Appengine_Cron="true"),
                programs.fetch(f"{url}{path}", Authorization=f"{token}x"),
            )
            assert [status for status, _ in refused] == [403] * 3
            status, answer = programs.fetch(f"{url}{path}", Authorization=token)
            assert status == 200
            assert job != "deliver" or json.loads(answer)["delivered"] == 1
        assert program.stop() == 0


def start_worker_process(environ: dict[str, str]) -> None:
    """Print the number of processes, and whether each does background work."""
    os.environ |= {"SECRET": "x" * 43, "DATASTORE": "cloud", **environ}
    from flatthread import serving  # noqa: PLC0415 - it reads the environment

    started: list[object] = []
    apps.warm_up = lambda app: None  # noqa: ARG005 - the parameter's name
    apps.start_worker = started.append  # type: ignore[assignment]
    serving._announce = lambda *_: None
    listening = types.SimpleNamespace(getsockname=lambda: ("127.0.0.1", 1))
    serving.post_worker_init(types.SimpleNamespace(wsgi=None, sockets=[listening]))  # type: ignore[arg-type]
    print(serving.workers, len(started))  # noqa: T201 - the test reads it


@pytest.mark.parametrize(("environ", "shown"), [({}, "2 1"), ({"K_SERVICE": "flatthread"}, "1 0")])
def test_on_cloud_run_one_process_serves_and_does_no_background_work(
    environ: dict[str, str], shown: str
) -> None:
    assert forked_programs.run(start_worker_process, environ) == (0, f"{shown}\n")


def test_a_deployment_uploads_only_what_the_service_needs(workspace: Path) -> None:
    assert {path.name for path in workspace.iterdir()} == {
        "LICENSE", "comments", "flatthread", "index.yaml", "main.py", "requirements.txt", "server",
    }  # fmt: skip
    size = sum(path.stat().st_size for path in workspace.rglob("*") if path.is_file())
    assert size < 5_000_000
    optional_tools.gcloud_commands()
    for private in ("flatthread.env", "backup.tar.gz", "data/secret"):
        programs.write(workspace / private, "")
    shutil.copy(programs.ROOT / ".gcloudignore", workspace)
    listed = programs.run(
        ["gcloud", "meta", "list-files-for-upload", "."],
        cwd=workspace,
        CLOUDSDK_CONFIG=str(workspace.parent / "google"),
    ).stdout.split()
    assert {name.partition("/")[0] for name in listed} == {
        "LICENSE", "comments", "flatthread", "flatthread.env", "index.yaml", "main.py",
        "requirements.txt", "server",
    }  # fmt: skip


def test_a_missing_secret_ends_the_entrypoint_with_a_one_line_message(workspace: Any) -> None:
    (workspace / "flatthread.env").touch()
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
