"""Limits stay exact when two processes concurrently get 200 posts from one network.

Each process serves 100 clients; the processes share only the store.
"""

import json
from pathlib import Path

import pytest

from comments.sites import site_settings
from comments.store import connection, reads
from datastore_emulator import inprocess
from tests.conftest import ROOT
from tests.support import forked_programs, programs
from tests.support.threads import sample_threads

pytestmark = [pytest.mark.slow, pytest.mark.embedded]

MOST = 20
CLIENTS = 100  # For each of the two processes

POSTING = """
import dataclasses, json, sys, threading
from concurrent.futures import ThreadPoolExecutor
from comments import app
from comments.posting import admission
from comments.store import connection
from datastore_emulator import inprocess
from tests.support.threads import sample_threads
from tests.support.people import api_requests
from tests.support.people import proof_solver
from tests.comments.posting import test_admission_processes

path, label, mode, rules = *sys.argv[1:4], json.loads(sys.argv[4])
admission.PATIENCE = 60.0  # the machine may be busy with everything else
indexes = test_admission_processes.ROOT / "index.yaml"
engine = inprocess.open_engine(path, indexes=indexes, concurrency=mode)
store = connection.Store(inprocess.Channel(engine), project="test", deadline=60.0)
made = app.create_app(dataclasses.replace(sample_threads.SETTINGS, **rules), store)
gate = threading.Barrier(test_admission_processes.CLIENTS)

def post(number):
    client = made.test_client()
    proof = proof_solver.proof(client)
    gate.wait(60)
    said = proof_solver.post(client, f"{label} {number}", proof=proof)
    return said.status_code, said.get_json().get("code", "")

print("ready", flush=True)
sys.stdin.readline()
with ThreadPoolExecutor(test_admission_processes.CLIENTS) as pool:
    print(json.dumps(list(pool.map(post, range(test_admission_processes.CLIENTS)))), flush=True)
"""


@pytest.mark.parametrize(("mode", "tries"), [("pessimistic", 50), ("optimistic", 0)])
def test_of_200_concurrent_posts_of_one_network_exactly_the_limit_is_accepted(
    tmp_path: Path, mode: str, tries: int
) -> None:
    path = tmp_path / "store.db"
    with inprocess.open_engine(path, indexes=ROOT / "index.yaml", concurrency=mode) as engine:  # type: ignore[arg-type]
        store = connection.Store(inprocess.Channel(engine), project="test")
        with store.context():
            site_settings.add(
                "demo",
                ["https://a.example"],
                scheme=sample_threads.SETTINGS.scheme,
                now=sample_threads.START,
            )
        answers = _posted(path, mode, {"posts_per_network": MOST, "proof_of_work": tries})
        accepted = [code for status, code in answers if status == 201]
        refused = {code for status, code in answers if status != 201}
        assert (len(answers), len(accepted), refused) == (2 * CLIENTS, MOST, {"too-many-posts"})
        with store.context():
            rows = reads.fetch(reads.Query("Comment", keys_only=True))
            assert len(list(rows)) == MOST


def _posted(path: Path, mode: str, rules: dict[str, int]) -> list[tuple[int, str]]:
    """Return the answers that two processes give to 200 clients that start at the same time."""
    children = [
        forked_programs.start(POSTING, path, label, mode, json.dumps(rules)) for label in "ab"
    ]
    for child in children:
        assert child.stdout.readline() == "ready\n"
    for child in children:
        child.stdin.write("go\n")
        child.stdin.flush()
    said = [child.output(5 * programs.PATIENCE) for child in children]
    assert [child.returncode for child in children] == [0, 0]
    return [tuple(answer) for each in said for answer in json.loads(each)]
