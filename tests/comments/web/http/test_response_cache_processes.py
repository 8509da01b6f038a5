"""A page shows every change that any process has acknowledged before the request, also as a 304.

Eight threads read the page of one thread as fast as they can, while two processes post, edit,
retract and compact.
"""

import itertools
import re
import subprocess
import sys
import threading
from concurrent import futures
from pathlib import Path

import flask
import pytest

from comments import app as apps
from comments.store import connection
from datastore_emulator import inprocess
from tests.support import prepared_stores, programs
from tests.support.threads import page_writer, sample_threads

pytestmark = [pytest.mark.slow, pytest.mark.embedded]

READERS = 8
STEPS = 5
PAGE = f"{page_writer.PAGE}&limit=200"
_SAID = re.compile(r"<p>(gone )?(near|far) ([0-9]+)")


def _is_current(text: str, least: dict[str, int]) -> bool:
    """Return whether a page shows at least these steps of the writers."""
    shown = dict.fromkeys(least, -1)
    for gone, name, step in _SAID.findall(text):
        if not gone:
            shown[name] = int(step)
        elif int(step) <= least[name]:
            return False
    return all(shown[name] >= step for name, step in least.items())


def _read(
    app: flask.Flask,
    acknowledged: dict[str, int],
    is_over: threading.Event,
    turns: list[int],
    reader: int,
) -> None:
    """Read the page until the event, and count the turns. Every page must be current."""
    client, headers, shown = app.test_client(), dict[str, str](), ""
    while not is_over.is_set():
        least = dict(acknowledged)
        answer = client.get(PAGE, headers=headers)
        if answer.status_code != 304:
            assert answer.status_code == 200, answer.text
            shown, headers = answer.text, {"If-None-Match": answer.headers["ETag"]}
        assert _is_current(shown, least)
        turns[reader] += 1


def test_a_page_shows_every_acknowledged_change_of_two_processes(tmp_path: Path) -> None:
    path = tmp_path / "data"
    acknowledged = {"near": 0, "far": -1}
    is_over = threading.Event()
    with prepared_stores.opened(path) as engine:
        store = connection.Store(inprocess.Channel(engine), project="test")
        with store.context():
            prepared_stores.demo()
        app = apps.create_app(sample_threads.SETTINGS, store)
        near = page_writer.PageWriter(app.test_client(), store, "near")
        near.step(0)  # Posts, and compacts the thread, so that pages depend on a probe
        with (
            subprocess.Popen(
                [sys.executable, "-m", page_writer.__name__, path, "far"],
                cwd=programs.ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            ) as far,
            futures.ThreadPoolExecutor(READERS) as pool,
        ):
            turns = [0] * READERS
            readers = [
                pool.submit(_read, app, acknowledged, is_over, turns, reader)
                for reader in range(READERS)
            ]
            try:
                assert far.stdin is not None
                assert far.stdout is not None
                # A busy machine may not run one of the readers for some time.
                for step in itertools.count(1):
                    has_ended = min(turns) > STEPS or any(each.done() for each in readers)
                    if step > STEPS and has_ended:
                        break
                    far.stdin.write(f"{step}\n")
                    far.stdin.flush()
                    near.step(step)
                    acknowledged["near"] = step
                    acknowledged["far"] = int(far.stdout.readline())
            finally:
                is_over.set()
            for each in readers:
                each.result(programs.PATIENCE)
            assert min(turns) > STEPS
