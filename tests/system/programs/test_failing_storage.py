"""A full disk and damaged data under a running service: readers go on, and writers learn why."""

import functools
import json
import os
import shutil
import signal
import sqlite3
from collections.abc import Iterator
from concurrent import futures
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from tests.support import optional_tools, programs

OPEN = dict.fromkeys(
    ("PROOF_OF_WORK", "FORM_SECONDS", "POSTS_PER_NETWORK", "POSTS_PER_AUTHOR", "SAME_TEXTS"), "0"
)
# More than the service has threads.
WRITERS = 24


@contextmanager
def serving(data: Path, *prefix: str) -> Iterator[tuple[programs.Program, str]]:
    environ = programs.environment(PORT="0", FLATTHREAD_DATA=str(data), **OPEN)
    with programs.running([*prefix, *programs.FLATTHREAD, "serve"], environ=environ) as program:
        yield program, program.wait_for(r"answers at (http://\S+)/")[1]


def thread(url: str, name: str) -> tuple[int, Any]:
    status, body = programs.fetch(f"{url}/api/v1/sites/demo/comments?thread={name}")
    return status, json.loads(body)


def post(url: str, name: str, text: str) -> tuple[int, Any]:
    status, body = programs.fetch(
        f"{url}/api/v1/sites/demo/comments?thread={name}",
        method="POST",
        body=json.dumps({"name": "Ann", "body": text}).encode(),
        Content_Type="application/json",
        Origin=url,
    )
    return status, json.loads(body)


def health(url: str) -> tuple[int, Any]:
    status, body = programs.fetch(f"{url}/healthz")
    return status, json.loads(body)


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)):
                pass
        except OSError:
            return


def test_on_a_full_disk_readers_read_and_writers_learn_why(tmp_path: Path) -> None:
    optional_tools.mounts()
    data = tmp_path / "data"
    data.mkdir()
    mount = f'mount -t tmpfs -o size=16m tmpfs {data} && exec "$@"'
    with serving(data, *programs.unshare(), "sh", "-c", mount, "sh") as (program, url):
        assert post(url, "read", "before")[0] == 201
        filler = Path(f"/proc/{program.process.pid}/root{data}/filler")
        fill(filler)
        with futures.ThreadPoolExecutor(WRITERS) as pool:
            texts = [f"{number} {'long ' * 1000}" for number in range(WRITERS)]
            sent = [pool.submit(post, url, f"t{each[0]}", each) for each in texts]
            assert [thread(url, "read")[1]["total"] for _ in range(3)] == [1, 1, 1]
            refused = [each.result() for each in sent]
        assert {(status, answer["code"]) for status, answer in refused} == {(503, "disk-full")}
        assert health(url) == (200, {"status": "disk-full", "folder": str(data)})
        program.wait_for(f"The disk of {data} is full")
        filler.unlink()
        assert post(url, "read", "after")[0] == 201
        assert health(url)[1]["status"] == "ok"


def test_damaged_pages_fail_what_needs_them_and_nothing_else(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with serving(data) as (_, url):
        text = "marked for damage " * 200
        assert post(url, "damaged", text)[0] == 201
        assert post(url, "sound", "short")[0] == 201
    overwrite(data / "flatthread.db", b"marked for damage")
    with serving(data) as (program, url):
        status, answer = thread(url, "damaged")
        assert (status, answer["code"]) == (503, "data-damaged")
        program.wait_for(f"Data in {data} is damaged")
        status, answer = thread(url, "sound")
        assert (status, answer["total"]) == (200, 1)
        assert post(url, "sound", "next")[0] == 201


def overwrite(path: Path, marker: bytes) -> None:
    """Overwrite the heads of all pages of a data file that contain a marker."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content, size = path.read_bytes(), 4096
    pages = [at for at in range(size, len(content), size) if marker in content[at : at + size]]
    assert pages
    file = os.open(path, os.O_WRONLY)
    for at in pages:
        os.pwrite(file, b"\xee" * 100, at)
    os.close(file)


def refusal(data: Path) -> str:
    """Start a service that must refuse to start; return what it says."""
    ended = programs.run(
        [*programs.FLATTHREAD, "serve"], cwd=programs.ROOT, PORT="0", FLATTHREAD_DATA=str(data)
    )
    assert ended.returncode == 3
    return ended.stderr


def has_ended(child: str) -> bool:
    return Path(f"/proc/{child}/stat").read_text().rpartition(") ")[2].startswith("Z")


def kill(program: programs.Program) -> None:
    """Kill all processes of a service, so that none of them closes the data file."""
    master = program.process.pid
    os.kill(master, signal.SIGSTOP)  # It would replace its workers
    children = Path(f"/proc/{master}/task/{master}/children")
    for worker in children.read_text(encoding="ascii").split():
        os.kill(int(worker), signal.SIGKILL)
        programs.wait_until(functools.partial(has_ended, worker), "it has not ended")
    program.process.kill()
    program.process.wait(programs.PATIENCE)


def test_a_stopped_service_needs_only_its_data_file(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with serving(data) as (_, url):
        assert post(url, "read", "text")[0] == 201
    (tmp_path / "copy").mkdir()
    for name in ("flatthread.db", "secret"):
        shutil.copy(data / name, tmp_path / "copy")
    with serving(tmp_path / "copy") as (_, url):
        assert thread(url, "read")[1]["total"] == 1


def test_a_killed_service_does_not_start_without_its_log(tmp_path: Path) -> None:
    log = tmp_path / "flatthread.db-wal"
    with serving(tmp_path) as (program, url):
        for number in range(3):
            assert post(url, "read", f"text {number}")[0] == 201
        kill(program)
    log.rename(tmp_path / "aside")
    said = refusal(tmp_path)
    assert f"{log} is missing" in said
    assert f"remove {tmp_path}/flatthread.db-turn" in said
    (tmp_path / "aside").rename(log)
    with serving(tmp_path) as (program, url):
        assert thread(url, "read")[1]["total"] == 3
        assert "lost" not in health(url)[1]
        assert post(url, "read", "last")[0] == 201
        kill(program)
    # The end of the last commit.
    os.truncate(log, log.stat().st_size - 4096)
    with serving(tmp_path) as (program, url):
        assert thread(url, "read")[1]["total"] >= 3
        lost = health(url)[1]["lost"]
        assert lost["since"] < lost["until"]
        assert any("lacks the commits from" in line for line in program.lines)


def test_a_service_without_its_data_does_not_start(tmp_path: Path) -> None:
    with serving(tmp_path) as (_, url):
        assert post(url, "read", "text")[0] == 201
    (tmp_path / "flatthread.db").rename(tmp_path / "aside")
    assert f"{tmp_path}/flatthread.db is missing or empty" in refusal(tmp_path)
    (tmp_path / "aside").rename(tmp_path / "flatthread.db")
    with serving(tmp_path) as (_, url):
        assert thread(url, "read")[1]["total"] == 1
