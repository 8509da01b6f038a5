"""scripts/serve starts, serves and stops as documented, and reports faults in one line."""

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import programs


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project with the packages already installed."""
    folder = programs.copy_project(tmp_path_factory.mktemp("serving") / "project")
    programs.borrow_environment(folder)
    return folder


@pytest.fixture
def project(copied: Path) -> Iterator[Path]:
    """The copy without the data of other tests."""
    yield copied
    shutil.rmtree(copied / "data", ignore_errors=True)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_prints_only_its_url_once_it_answers_and_stops_on_a_signal(
    project: Path, tmp_path: Path, number: Any
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with (
        (tmp_path / "errors").open("w+") as stderr,
        subprocess.Popen(
            [project / "scripts" / "serve"],
            cwd=elsewhere,
            env=programs.environment(PORT="0", FLATTHREAD_DATA="kept here"),
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        ) as process,
    ):
        try:
            said = process.stdout.readline()
            url = re.fullmatch(r"Flatthread answers at (http://127\.0\.0\.1:\d+/)\n", said)[1]
            assert programs.fetch(f"{url}healthz")[0] == 200
        finally:
            process.send_signal(number)
        rest, _ = process.communicate(timeout=programs.PATIENCE)
        stderr.seek(0)
        log = stderr.read()
    assert rest == ""
    assert process.returncode == 0
    # A relative FLATTHREAD_DATA is relative to the caller's folder. The log names the store once.
    assert (elsewhere / "kept here").is_dir()
    assert not (project / "data").exists()
    line, rest = log.split("\n", 1)
    stores = f"Flatthread stores comments in the embedded engine in {elsewhere}/kept here."
    assert json.loads(line)["message"] == stores
    kept = elsewhere / "kept here" / "first-owner"
    owning = f"There is no owner yet. The link to become the owner is in {kept}\n"
    assert rest in {"", owning}, "a link is in the log"
    if rest:
        assert kept.stat().st_mode & 0o777 == 0o600


def test_posted_comments_survive_a_restart(project: Path) -> None:
    comment = b'{"name": "Ada", "body": "still here"}'
    thread = "api/v1/sites/demo/comments?thread=t"
    for attempt in (1, 2):
        with programs.running(
            [project / "scripts" / "serve"],
            environ=programs.environment(PORT="0", PROOF_OF_WORK="0"),
        ) as serving:
            url = serving.wait_for(r"answers at (http://\S+/)")[1]
            if attempt == 1:
                posted, _ = programs.fetch(
                    url + thread,
                    method="POST",
                    body=comment,
                    content_type="application/json",
                    idempotency_key="restart-test-0001",
                )
                assert posted == 201
            else:
                assert b"still here" in programs.fetch(url + thread)[1]


def test_on_a_fresh_folder_the_stored_link_creates_the_owner_once(project: Path) -> None:
    form = {"name": "Ann", "login": "ann", "password": "a password of hers"}

    def accept(url: str, token: str) -> Any:
        return programs.fetch(
            f"{url}admin/welcome",
            method="POST",
            body=urllib.parse.urlencode(form | {"token": token}).encode(),
            content_type="application/x-www-form-urlencoded",
            sec_fetch_site="same-origin",
        )[0]

    serve = [project / "scripts" / "serve"]
    environ = programs.environment(PORT="0", FLATTHREAD_DATA="kept")
    with programs.running(serve, environ=environ, cwd=project) as program:
        url = program.wait_for(r"answers at (http://\S+/)")[1]
        kept = Path(program.wait_for(r"The link to become the owner is in (\S+)")[1])
        link = kept.read_text(encoding="ascii").strip()
        assert link.startswith(f"{url}admin/welcome#")
        token = link.partition("#")[2]
        assert accept(url, "x" * 43) == 400
        assert kept.exists()
        assert accept(url, token) == 200  # Redirects to a page that needs the new cookie
        assert not kept.exists()
        assert accept(url, token) == 400
        assert program.stop() == 0
        assert not any(token in line for line in program.lines)
    with programs.running(serve, environ=environ, cwd=project) as program:
        url = program.wait_for(r"answers at (http://\S+/)")[1]
        assert programs.fetch(f"{url}admin/sign-in")[0] == 200
        assert program.stop() == 0
        assert not any("owner yet" in line for line in program.lines)
        assert not kept.exists()


def test_a_short_secret_causes_one_warning(project: Path) -> None:
    (project / "short").mkdir()
    environ = programs.environment(PORT="0", FLATTHREAD_DATA="short", SECRET="a short one")
    with programs.running([project / "scripts" / "serve"], environ=environ, cwd=project) as program:
        program.wait_for(r"answers at (http://\S+/)")
        assert program.stop() == 0
    (said,) = [line for line in program.lines if "SECRET has" in line]
    assert json.loads(said)["severity"] == "WARNING"
    assert "11 characters" in said
    assert "a short one" not in "".join(program.lines)


def test_at_a_terminal_the_first_owners_link_is_shown(project: Path) -> None:
    screen, terminal = pty.openpty()
    environ = programs.environment(PORT="0", FLATTHREAD_DATA="shown")
    with subprocess.Popen(
        [project / "scripts" / "serve"],
        cwd=project,
        env=environ,
        stdout=subprocess.DEVNULL,
        stderr=terminal,
    ) as process:
        os.close(terminal)
        try:
            shown = ""
            while not (found := re.search(r"open this link once: (\S+#[\w-]{43})", shown)):
                shown += os.read(screen, 4096).decode()
        finally:
            process.terminate()
            os.close(screen)
    kept = project / "shown" / "first-owner"
    assert kept.read_text(encoding="ascii").strip() == found[1]


def test_invalid_settings_end_it_with_one_line_and_status_3(project: Path) -> None:
    ended = programs.run([project / "scripts" / "serve"], cwd=project, MAX_BODY="none", PORT="0")
    assert ended.returncode == 3
    assert ended.stdout == ""
    assert ended.stderr == (
        "flatthread: MAX_BODY must be a whole number from 1024 to 1048576, not 'none'\n"
    )


def test_an_unreadable_data_file_ends_it_with_one_line_and_status_3(project: Path) -> None:
    (project / "data").mkdir()
    (project / "data" / "flatthread.db").write_bytes(b"no data file at all" * 1_000)
    given = {"PORT": "0", "SECRET": "x" * 40}
    ended = programs.run([project / "scripts" / "serve"], cwd=project, **given)
    assert ended.returncode == 3
    assert ended.stdout == ""
    assert ended.stderr.splitlines()[-1].startswith(
        "flatthread: cannot open the data: data/flatthread.db: "
    )
    assert "Traceback" not in ended.stderr


def test_sites_with_another_scheme_end_it_with_one_line_and_status_3(project: Path) -> None:
    add = ["site", "add", "blog", "--origin", "https://x.y"]
    assert programs.run([*programs.FLATTHREAD, *add], cwd=project).returncode == 0
    ended = programs.run(
        [project / "scripts" / "serve"], cwd=project, PORT="0", SORT_HASH_LEVELS="3"
    )
    assert ended.returncode == 3
    assert ended.stderr.splitlines()[-1].startswith(
        "flatthread: SORT_HASH_LEVELS is 3, but site blog has 8 levels."
    )
    assert "Traceback" not in ended.stderr


def test_on_an_emulator_every_worker_has_its_own_connection(project: Path) -> None:
    emulator: list[str | Path] = [
        programs.BIN / "python",
        "-m",
        "emulator",
        "--port",
        "0",
        "--in-memory",
    ]
    with programs.running(
        [*emulator, "--indexes", "index.yaml"],
        environ=programs.environment(),
    ) as store:
        host = store.wait_for(r"DATASTORE_EMULATOR_HOST=(\S+)")[1]
        environ = programs.environment(
            PORT="0", DATASTORE_EMULATOR_HOST=host, SECRET="0123456789abcdef"
        )
        with programs.running([project / "scripts" / "serve"], environ=environ) as serving:
            url = serving.wait_for(r"answers at (http://\S+/)")[1]
            serving.wait_for("There is no owner yet. .* run `flatthread account invite --owner`")
            assert [programs.fetch(f"{url}healthz")[0] for _ in range(20)] == [200] * 20
            assert serving.stop() == 0
        assert sum(f"the emulator at {host}" in line for line in serving.lines) == 1
