"""`scripts/test --store` tests the product against an emulator through gRPC.

The gate runs a part of the tests in this way: reads, transactions, the writing of comments, a whole
API call, and a data file that is copied to the emulator. If Google's Firestore emulator is
installed, the gate runs more tests against it in Datastore mode, and a few commands.
"""

import json
import re
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support import optional_tools, programs

SLICE = (
    "tests/comments/store/test_queries.py",
    "tests/comments/store/test_transactions.py",
    "tests/comments/tree/test_placement.py",
    "tests/comments/reading/test_thread_pages.py",
    "tests/comments/web/api/test_comment_calls_posting.py",
)
# These tests store or read hundreds of comments; the others of their modules do enough.
LEFT_OUT = [
    f"--deselect=tests/comments/{each}"
    for each in (
        "tree/test_placement.py::test_order_and_listing_are_right_after_any_posts_and_retractions",
        "reading/test_thread_pages.py::test_replies_equal_the_ordered_query",
        "reading/test_thread_pages.py::test_recent_discussions_come_first_and_complete",
        "reading/test_thread_pages.py::test_the_page_around_a_comment_contains_it_and_is_contiguous",
        (
            "transfer/importing/test_import_writer.py"
            "::test_more_siblings_than_two_digits_hold_keep_their_order"
        ),
    )
]
GOOGLE_SLICE = (
    *SLICE,
    "tests/comments/web/api/test_comment_calls_changing.py",
    "tests/comments/web/api/test_comment_calls_voting.py",
    "tests/comments/transfer/importing/test_import_writer.py",
)
_SAMPLE = programs.ROOT / "tests/fixtures/imports/disqus.xml"
_MINUTES = 15 * 60  # Seconds; Google's emulator needs about two minutes on quiet cores
PYTEST: list[str | Path] = [programs.BIN / "python", "-m", "pytest", "-p", "no:cacheprovider", "-q"]


class Running(NamedTuple):
    """A running emulator: the address of its API and the URL of its admin port."""

    host: str
    admin: str


@pytest.fixture
def running() -> Iterator[Running]:
    command: list[str | Path] = [
        programs.BIN / "python", "-m", "emulator", "--port", "0", "--in-memory",
        "--indexes", "index.yaml", "--strict-indexes",
    ]  # fmt: skip
    with programs.running(command, environ=programs.environment()) as program:
        host = program.wait_for(r"DATASTORE_EMULATOR_HOST=(\S+)")[1]
        yield Running(host, program.wait_for(r"Admin port: (\S+)")[1])


@pytest.fixture
def google() -> Iterator[str]:
    """The address of Google's Firestore emulator in Datastore mode."""
    program = optional_tools.firestore_emulator()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command: list[str | Path] = [
        program, "start", "--database-mode=datastore-mode", "--host=127.0.0.1", f"--port={port}",
    ]  # fmt: skip
    # The program is a shell script, which would leave Java running when it is stopped.
    java = programs.environment(JAVA="exec java -Xmx512m")
    with programs.running(command, environ=java) as emulator:
        emulator.wait_for("Dev App Server is now running")
        yield f"127.0.0.1:{port}"


def metered(admin: str) -> dict[str, int]:
    status, body = programs.fetch(f"{admin}/meter")
    assert status == 200
    found: dict[str, int] = json.loads(body)
    return found


def test_the_slice_passes_and_the_emulators_meter_counts_its_reads_and_writes(
    running: Running,
) -> None:
    before = metered(running.admin)
    assert before["reads"] == before["writes"] == 0
    ended = programs.run(
        [*PYTEST, "--store", "--few-values", *LEFT_OUT, *SLICE],
        cwd=programs.ROOT,
        DATASTORE_EMULATOR_HOST=running.host,
    )
    assert ended.returncode == 0, ended.stdout
    told = re.search(
        rf"^store: (\d+) tests ran against {running.host}, .+; (\d+) were left out \((.+)\)\.$",
        ended.stdout,
        re.MULTILINE,
    )
    assert told, ended.stdout
    ran, left_out = int(told[1]), int(told[2])
    assert ran > 50
    assert left_out == sum(map(int, re.findall(r"(\d+) (?:embedded|without a store)", told[3]))) > 0
    used = metered(running.admin)
    # Almost every test stores a site and a comment.
    assert used["writes"] > ran
    assert used["reads"] > ran


@pytest.mark.slow
def test_the_slice_passes_on_googles_firestore_emulator(google: str) -> None:
    ended = subprocess.run(
        [*PYTEST, "--store", "--few-values", *LEFT_OUT, *GOOGLE_SLICE],
        cwd=programs.ROOT,
        env=programs.environment(DATASTORE_EMULATOR_HOST=google),
        check=False,
        capture_output=True,
        text=True,
        timeout=_MINUTES,
    )
    assert ended.returncode == 0, ended.stdout
    assert f"tests ran against {google}, Google's Firestore emulator; " in ended.stdout


def test_commands_run_on_googles_firestore_emulator(google: str, tmp_path: Path) -> None:
    def flatthread(*command: str | Path) -> str:
        ended = programs.run(
            [*programs.FLATTHREAD, *command],
            cwd=programs.ROOT,
            DATASTORE_EMULATOR_HOST=google,
            FLATTHREAD_DATA=str(tmp_path),
            SECRET="a secret of this test, long enough",
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    flatthread("site", "add", "blog", "--origin", "https://blog.example")
    assert "Verified" in flatthread("import", "--site", "blog", _SAMPLE)
    assert "Compacted" in flatthread("compact")
    assert flatthread("repair") == "0 problems found.\n"


@pytest.fixture
def module(tmp_path: Path) -> Path:
    """A test module that opens an embedded engine although it is not marked."""
    path = tmp_path / "test_unmarked.py"
    path.write_text(
        "from datastore_emulator import inprocess\n"
        "def test_store(open_datastore):\n"
        "    inprocess.open_engine(None).close()\n"
        "def test_engine(engine): ...\n"
        "def test_pure(): ...\n"
    )
    return path


def test_a_test_that_opens_an_embedded_engine_without_the_marker_fails(module: Path) -> None:
    command = [
        *PYTEST,
        "--rootdir",
        programs.ROOT,
        "-p",
        "conftest",
        "-p",
        "tests.conftest",
        module,
    ]
    ended = programs.run(
        [*command, "--store"], cwd=programs.ROOT, DATASTORE_EMULATOR_HOST="localhost:1"
    )
    assert ended.returncode == 1
    assert "mark this test `embedded`" in ended.stdout
    assert (
        "store: 1 tests ran against localhost:1, an emulator that is not Google's; 2 were left "
        "out (1 embedded, 1 without a store)." in ended.stdout
    )
    assert programs.run(command, cwd=programs.ROOT).returncode == 0


def test_a_run_without_an_emulator_is_refused(tmp_path: Path) -> None:
    ended = programs.run([*PYTEST, "--store", SLICE[0]], cwd=programs.ROOT)
    assert ended.returncode == 4
    assert "DATASTORE_EMULATOR_HOST" in ended.stderr
