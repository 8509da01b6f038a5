"""Back up and restore the service as its owner does: with the real server and real commands."""

import contextlib
import json
import re
import shlex
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import optional_tools, programs

pytestmark = [pytest.mark.slow, pytest.mark.embedded]

AFTERWARDS = ["afterwards"]
THREAD = "api/v1/sites/demo/comments?thread=t"
QUIET = {"PROOF_OF_WORK": "0", "POSTS_PER_THREAD": "0", "POSTS_PER_NETWORK": "0", "SAME_TEXTS": "0"}


def flatthread(*words: Any, data: Path, **more: str) -> subprocess.CompletedProcess[str]:
    return programs.run(
        [*programs.FLATTHREAD, *words], cwd=programs.ROOT, FLATTHREAD_DATA=str(data), **more
    )


def serving(data: Path, **more: str) -> Any:
    environ = programs.environment(PORT="0", FLATTHREAD_DATA=str(data), **QUIET, **more)
    return programs.running([*programs.FLATTHREAD, "serve"], environ=environ)


def post(url: str, text: str) -> int:
    body = json.dumps({"name": "Ada", "body": text}).encode()
    status, _ = programs.fetch(
        url + THREAD, method="POST", body=body, content_type="application/json"
    )
    return status


def texts(url: str) -> set[str]:
    answer = json.loads(programs.fetch(f"{url}{THREAD}&limit=all&order=thread")[1])
    return {re.sub("<[^>]+>", "", each["html"]).strip() for each in answer["comments"]}


@contextlib.contextmanager
def writers(url: str, posted: list[str]) -> Iterator[None]:
    """Let two people post until the block ends; `posted` gets each text that was acknowledged."""
    stop = threading.Event()

    def write(writer: int) -> None:
        while not stop.is_set():
            text = f"{writer}: {len(posted)}"
            if post(url, text) == 201:
                posted.append(text)

    threads = [threading.Thread(target=write, args=(n,)) for n in range(2)]
    for each in threads:
        each.start()
    try:
        programs.wait_until(lambda: len(posted) > 10, "nobody can post")
        yield
    finally:
        stop.set()
        for each in threads:
            each.join()


def test_a_service_is_backed_up_while_people_post_and_restored(tmp_path: Path) -> None:
    data, folder, backup = tmp_path / "data", tmp_path / "backups", tmp_path / "backup.tar.gz"
    folder.mkdir()
    posted: list[str] = []
    with serving(data, BACKUP_DIR=str(folder)) as service:
        url = service.wait_for(r"answers at (http://\S+/)")[1]
        with writers(url, posted):
            before = set(posted)
            done = flatthread("backup", backup, data=data)
            assert (done.returncode, done.stderr) == (0, f"Using the embedded engine in {data}.\n")
            programs.wait_until(lambda: list(folder.glob("*.tar.gz")), "no nightly backup")
        refused = flatthread("restore", backup, data=data)
        assert refused.returncode == 1
        assert "flatthread.db is in use" in refused.stderr
        programs.wait_until(lambda: not health(url)["is_overdue"], "the backup is not noted")
        assert service.stop() == 0
    (nightly,) = folder.iterdir()
    assert any("The nightly backup is complete. Backed up" in line for line in service.lines)
    assert flatthread("restore", nightly, data=data).returncode == 0
    assert before <= restored_and_served(backup, data, posted)


def health(url: str) -> Any:
    return json.loads(programs.fetch(f"{url}healthz")[1])["backup"]


def restored_and_served(backup: Path, data: Path, posted: list[str]) -> set[str]:
    """Restore a backup, check it, serve it, and return the texts in it."""
    restored = flatthread("restore", backup, data=data)
    assert restored.returncode == 0, restored.stderr
    for command in (["repair"], ["recount", "--no-fix"]):
        checked = flatthread(*command, data=data)
        assert checked.returncode == 0, checked.stdout
    with serving(data) as service:
        url = service.wait_for(r"answers at (http://\S+/)")[1]
        found = texts(url)
        assert found <= {*posted, *AFTERWARDS}
        assert post(url, AFTERWARDS[0]) == 201
    return found


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("backups", "No space left on device"),
        ("data", "cannot grow"),
        ("read-only", "backups is not writable. Make it writable for the service's user."),
    ],
)
def test_an_unusable_disk_leaves_the_old_backups_and_is_named(
    tmp_path: Path, place: str, reason: str
) -> None:
    optional_tools.mounts()
    data, folder = tmp_path / "data", tmp_path / "backups"
    folder.mkdir()
    assert (
        flatthread("site", "add", "blog", "--origin", "https://a.example", data=data).returncode
        == 0
    )
    script = {
        # Bytes that cannot be compressed fill the disk of the backups.
        "backups": f"mount -t tmpfs -o size=40k tmpfs {folder} && "
        f"head -c 36864 /dev/urandom > {folder}/old",
        # The copy of the data file fills the disk of the data.
        "data": f"cp -r {data} {tmp_path}/kept && "
        f"mount -t tmpfs -o size=$(($(du -sk {data} | cut -f1) + 64))k tmpfs {data} && "
        f"cp -r {tmp_path}/kept/. {data} && touch {folder}/old",
        "read-only": f"touch {folder}/old && mount --bind {folder} {folder} && "
        f"mount -o remount,ro,bind {folder}",
    }[place]
    backup = shlex.join([*map(str, programs.FLATTHREAD), "backup"])
    environ = programs.environment(FLATTHREAD_DATA=str(data), BACKUP_DIR=str(folder))
    done = subprocess.run(
        [
            *programs.unshare(),
            "sh",
            "-c",
            f"{script} && {backup}; echo $?; ls {folder} {data}",
        ],
        cwd=programs.ROOT,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=programs.PATIENCE,
    )
    said = [line for line in done.stderr.splitlines() if line.startswith("Error: ")]
    assert len(said) == 1, done.stderr
    assert "Traceback" not in done.stderr
    status, listed = done.stdout.split("\n", 1)
    assert status == "1"
    assert "old" in listed.split()
    assert not any(each.endswith((".partial", ".copy", ".tar.gz")) for each in listed.split())
    assert reason in said[0]
