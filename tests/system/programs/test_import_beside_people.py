"""People read and post while a long import runs beside the server; nobody waits for its end."""

import json
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Self
from urllib.parse import quote

import pytest

from tests.support import programs
from tests.support.threads import sample_exports

SIZES = [1_400, *[30] * 20, *[1] * 400]  # 2,400 comments
LIMITS = ("PROOF_OF_WORK", "POSTS_PER_NETWORK", "POSTS_PER_AUTHOR", "POSTS_PER_THREAD")


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, str]:
    return {
        "FLATTHREAD_DATA": str(tmp_path / "data"),
        "PORT": "0",
        "SAME_TEXTS": "0",
        **dict.fromkeys(LIMITS, "0"),
    }


@pytest.fixture
def url(settings: dict[str, str]) -> Iterator[str]:
    added = [*programs.FLATTHREAD, "site", "add", "garden", "--origin", "https://garden.example"]
    assert programs.run(added, cwd=programs.ROOT, **settings).returncode == 0
    server = [*programs.FLATTHREAD, "serve"]
    with programs.running(server, environ=programs.environment(**settings)) as program:
        yield program.wait_for(r"answers at (http://\S+)/")[1]


class Person:
    """Someone who repeats a request, while `goes_on`, and keeps the statuses of the answers."""

    def __init__(self, ask: Callable[[int], int], goes_on: Callable[[], bool]) -> None:
        self.statuses: list[int] = []
        self._ask, self._goes_on = ask, goes_on
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join()

    def _run(self) -> None:
        while self._goes_on():
            self.statuses.append(self._ask(len(self.statuses)))


@pytest.mark.slow
@pytest.mark.embedded
def test_people_read_and_post_during_an_import(
    url: str, settings: dict[str, str], tmp_path: Path
) -> None:
    file = sample_exports.saved(tmp_path / "export.xml", *sample_exports.threads_of(SIZES))
    comments = f"{url}/api/v1/sites/garden/comments?thread="

    def read(turn: int) -> int:
        return programs.fetch(f"{comments}{quote(f'garden.example/page{turn % 9 + 1}', '')}")[0]

    def post(turn: int) -> int:
        body = json.dumps({"name": "Ann", "body": f"hello {turn}"}).encode()
        thread = quote(f"garden.example/page{turn % 30 + 1}", "")
        return programs.fetch(
            f"{comments}{thread}", method="POST", body=body, Content_Type="application/json"
        )[0]

    with subprocess.Popen(
        [*programs.FLATTHREAD, "import", file, "--site", "garden"],
        cwd=programs.ROOT,
        env=programs.environment(**settings),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as importing:
        goes_on: Callable[[], bool] = lambda: importing.poll() is None  # noqa: E731
        with Person(read, goes_on) as reader, Person(post, goes_on) as poster:
            output, errors = importing.communicate(timeout=programs.PATIENCE)
    assert (importing.returncode, errors.count("Traceback")) == (0, 0), output + errors
    assert "Added 2400 comments in 421 threads; 0 existed already.\n" in output
    assert set(reader.statuses) == {200}
    assert set(poster.statuses) == {201}
    # They would have got one answer each if they had waited for the import.
    assert min(len(reader.statuses), len(poster.statuses)) > 10
    verified = [*programs.FLATTHREAD, "verify", file, "--site", "garden", "--json"]
    found = json.loads(programs.run(verified, cwd=programs.ROOT, **settings).stdout)
    assert found["unexplained"] == 0
    assert found["other_comments"] == len(poster.statuses)
