"""Votes stay exact despite concurrent processes and threads, faults and kills.

Two processes with 16 threads each vote at random on a few comments, count votes, and retract
comments. Calls fail with every status, before and after they are applied, and in one round the
processes die in the middle of a commit. All threads also repeatedly cast the same voter's vote.
Afterwards, every row contains the sum of its votes, and all counters are exact.
"""

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from comments.posting import own_comment
from comments.sites import site_settings
from comments.store import connection
from comments.upkeep.integrity import recount
from datastore_emulator import faults, inprocess
from tests.support import forked_programs, programs
from tests.support.threads import sample_threads, sample_votes
from tests.system import test_counting_processes

pytestmark = [pytest.mark.slow, pytest.mark.embedded]

THREADS = 16  # Per process; there are two.
STEPS = 3  # Per thread of a process that no plan kills.

VOTING = """
import json, random, sys, threading
from concurrent.futures import ThreadPoolExecutor
from comments import errors
from comments.store import connection
from comments.domain import records
from comments.posting import cast_vote
from comments.upkeep import background_worker
from datastore_emulator import inprocess
from datastore_emulator import faults
from tests.support.threads import sample_votes
from tests.support.threads import sample_threads
from tests.system import test_counting_processes
from tests.comments.posting import test_cast_vote_processes

path, label, seed, ids, plan = sys.argv[1:4] + [json.loads(each) for each in sys.argv[4:6]]
indexes = test_counting_processes.INDEXES
engine = inprocess.open_engine(path, indexes=indexes, concurrency="pessimistic")
store = connection.Store(inprocess.Channel(engine), project="test", deadline=5.0)
gate = threading.Barrier(test_cast_vote_processes.THREADS)

def tried(step):
    for _ in range(6):
        try:
            return step()
        except errors.Overloaded:
            continue  # perhaps it was applied, perhaps not: again, as clients do
        except (errors.Conflict, errors.NotFound, errors.TooMany):
            return None

def work(number):
    rng = random.Random(f"{seed}{label}{number}")
    with store.context():
        gate.wait(60)
        for step in test_counting_processes.steps(plan, test_cast_vote_processes.STEPS):
            tried(lambda: sample_votes.vote(comments[0], "everybody"))
            row, voter = rng.choice(comments[1:]), f"voter {rng.randrange(8)}"
            value, network = rng.choice([1, 1, -1, 0]), f"network {rng.randrange(3)}"
            tried(lambda: sample_votes.vote(row, voter, value, network=network))
            if step % 3 == 0:
                tried(lambda: cast_vote.count(rng.choice(ids), now=sample_votes.LATER))
        tried(lambda: sample_votes.vote(comments[0], "everybody"))

with store.context():
    comments = [sample_votes.comment(each) for each in ids]
worker = background_worker.BackgroundWorker(store)
worker.start()
engine.install_faults(faults.Plan.parse(plan))
with ThreadPoolExecutor(test_cast_vote_processes.THREADS) as pool:
    list(pool.map(work, range(test_cast_vote_processes.THREADS)))
worker.stop(60)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def store(path: Path) -> Iterator[connection.Store]:
    """Open a store in a file that other processes share, and enter its context."""
    with inprocess.open_engine(
        path, indexes=test_counting_processes.INDEXES, concurrency="pessimistic"
    ) as engine:
        opened = connection.Store(inprocess.Channel(engine), project="test", deadline=60.0)
        with opened.context():
            yield opened


def _start(
    path: Path, label: str, seed: int, ids: list[str], rules: object
) -> forked_programs.Program:
    plan = json.dumps({"seed": seed, "rules": rules})
    return forked_programs.start(VOTING, path, label, seed, json.dumps(ids), plan)


@pytest.mark.parametrize(
    ("seed", "rules", "status"),
    [
        (1, test_counting_processes._failing(), 0),
        (2, test_counting_processes._killed(min(faults.POINTS), 20), -signal.SIGKILL),
    ],
)
def test_every_row_has_the_sum_of_its_votes_under_every_fault(
    store: connection.Store, path: Path, seed: int, rules: object, status: int
) -> None:
    site = site_settings.add(
        "demo",
        ["https://a.example"],
        scheme=sample_threads.SETTINGS.scheme,
        now=sample_threads.START,
    )
    rows = [sample_threads.post(site, f"{n}") for n in range(4)]
    ids = [row.id for row in rows]
    children = [_start(path, label, seed, ids, rules) for label in "ab"]
    gone = rows[3]
    own_comment.retract(gone.id, author_id=gone.author.id, revision=None, now=sample_threads.START)
    for child in children:
        child.wait(5 * programs.PATIENCE)
    assert [child.returncode for child in children] == [status] * 2
    sample_votes.vote(rows[1], "late")
    for _ in range(100):
        if not sample_votes.left():
            break
        sample_votes.count_all()
    sample_votes.assert_counted()
    assert recount.site("demo", tell=print, fixes=False) == 0
    cast = sample_votes.cast()
    assert cast[ids[0]] == {"g:everybody": 1}
    assert sample_votes.stored(ids[0]) == (1, 0, 1)
    assert ids[3] not in cast
