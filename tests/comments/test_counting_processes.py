"""Claims about counters and events under everything at once: processes, threads, faults and kills.

Two processes of 16 threads each post, answer, edit and retract at random in two threads of a site,
while their workers deliver; calls fail with every status, before and after they are applied, and in
some rounds the processes die at a named point. Afterwards a third process delivers what is left.
Then every counter must equal its recount, and what was told must be what was committed.
"""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from comments import datastore, delivery, outbox, records, recount, repair, sites, tallies
from emulator import faultrules, inprocess
from tests import programs, recounts, trees

pytestmark = pytest.mark.slow

INDEXES = programs.ROOT / "index.yaml"
THREADS = 16  # of each of two processes
STEPS = 10  # of each thread
STATUSES = [
    "ABORTED", "UNAVAILABLE", "INTERNAL", "UNKNOWN", "DEADLINE_EXCEEDED", "CANCELLED",
    "RESOURCE_EXHAUSTED", "INVALID_ARGUMENT", "PERMISSION_DENIED",
]  # fmt: skip

# Says what was acknowledged, "A" and the event's id, and what was told, "T" and the event's id.
CHANGING = """
import json, random, sys, threading
from concurrent.futures import ThreadPoolExecutor
from comments import datastore, delivery, errors, posting, records, upkeep
from emulator import faults, inprocess
from tests import trees
from tests.comments import test_counting_processes as shared

path, label, seed, roots, plan = sys.argv[1:4] + [json.loads(each) for each in sys.argv[4:6]]
engine = inprocess.open_engine(path, indexes=shared.INDEXES, concurrency="pessimistic")
store = datastore.Store(inprocess.Channel(engine), project="test", deadline=5.0)
site = records.Site("demo", (), "", 2)

def say(letter, event):
    sys.stdout.write(f"{letter} {event}\\n")
    sys.stdout.flush()

recorder = delivery.Sending("recorder", lambda event: say("T", event.id))
delivery.HANDLERS = (*delivery.HANDLERS, recorder)
gate = threading.Barrier(shared.THREADS)

def tried(step):
    for _ in range(4):
        try:
            return step()
        except errors.Overloaded:
            continue  # perhaps it was applied, perhaps not: again, as clients do
        except (errors.Conflict, errors.NotFound):
            return None  # somebody else took it back first
    return None

def change(rng, number, step, own):
    author = records.Author("somebody", id=f"g:{label}{rng.randrange(6)}")
    dice = rng.random()
    if dice < 0.6 or not own:
        thread = rng.choice(sorted(roots))
        parent = rng.choice([None, *roots[thread], *[r.id for r in own if r.thread == thread]])
        key = f"{label}-{number}-{step}".ljust(16, ".")
        row = tried(lambda: trees.post(site, key, parent, thread=thread, author=author, key=key))
        if row is not None:
            own.append(row)
        return row
    row = own.pop(rng.randrange(len(own)))
    if dice < 0.8:
        return tried(lambda: posting.edit(
            row.id, author_id=row.author.id, body=f"edited {step}", revision=None,
            settings=trees.SETTINGS, now=trees.START,
        ))
    return tried(lambda: posting.retract(
        row.id, author_id=row.author.id, revision=None, now=trees.START,
    ))

def work(number):
    rng, own = random.Random(f"{seed}{label}{number}"), []
    with store.context():
        gate.wait(60)
        for step in range(shared.STEPS):
            row = change(rng, number, step, own)
            if row is not None:
                say("A", f"{row.id}.{row.revision}")

worker = upkeep.Worker(store, trees.SETTINGS.scheme)
worker.start()
engine.install_faults(faults.Plan.parse(plan))
with ThreadPoolExecutor(shared.THREADS) as pool:
    list(pool.map(work, range(shared.THREADS)))
worker.stop(30)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def store(path: Path) -> Iterator[datastore.Store]:
    """A store in a file that other processes share, with its context entered."""
    with inprocess.open_engine(path, indexes=INDEXES, concurrency="pessimistic") as engine:
        opened = datastore.Store(inprocess.Channel(engine), project="test", deadline=60.0)
        with opened.context():
            yield opened


def _failing() -> list[dict[str, object]]:
    """Every status, before and after: of the calls of a post one in eight or so."""
    return [
        {"rpc": rpc, "probability": 0.004, "when": when, "status": status}
        for rpc in ("BeginTransaction", "Lookup", "Commit")
        for when in ("before", "after")
        for status in STATUSES
    ]


def _killed(point: str, call: int) -> list[dict[str, object]]:
    return [*_failing(), {"point": point, "call": call, "kill": True}]


def _start(path: Path, label: str, seed: int, roots: object, rules: object) -> "_Child":
    arguments = [str(path), label, str(seed), json.dumps(roots)]
    plan = json.dumps({"seed": seed, "rules": rules})
    return subprocess.Popen(
        [sys.executable, "-c", CHANGING, *arguments, plan],
        cwd=programs.ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )


_Child = subprocess.Popen[str]


def _said(child: _Child) -> list[tuple[str, str]]:
    """The whole lines of a child, which may have died within one."""
    lines = child.communicate(timeout=5 * programs.PATIENCE)[0].splitlines(keepends=True)
    return [(line[0], line[2:-1]) for line in lines if line.endswith("\n")]


@pytest.mark.parametrize(
    ("seed", "rules", "status"),
    [
        (1, _failing(), 0),
        *(
            (2 + number, _killed(point, 40 + 25 * number), -signal.SIGKILL)
            for number, point in enumerate(sorted(faultrules.POINTS))
        ),
    ],
)
def test_counters_and_events_are_exact_whatever_fails(
    store: datastore.Store, path: Path, seed: int, rules: object, status: int
) -> None:
    site = sites.add("demo", ["https://a.example"], scheme=trees.SETTINGS.scheme, now=trees.START)
    roots = {
        thread: [trees.post(site, f"{n}", thread=thread).id for n in range(6)]
        for thread in ("page", "other")
    }
    children = [_start(path, label, seed, roots, rules) for label in "ab"]
    said = [line for child in children for line in _said(child)]
    assert [child.returncode for child in children] == [status] * 2
    told = [event for letter, event in said if letter == "T"]
    acknowledged = {event for letter, event in said if letter == "A"}
    told += _deliver_what_is_left()
    recounts.check_all()
    for thread in roots:
        name = records.ThreadName("demo", thread)
        assert repair.find_problems(trees.SETTINGS.scheme, name) == []
        tallies.gather(name)
    recounts.check_all()
    assert recount.site("demo", tell=print, fixes=False) == 0
    # Each change that was answered was told of, each comment that is there, and nothing else.
    stored = _revisions()
    assert acknowledged <= set(told)
    assert {f"{comment}.1" for comment in stored} <= set(told)
    for event in told:
        comment, _, revision = event.partition(".")
        assert 1 <= int(revision) <= stored[comment]


def _deliver_what_is_left() -> list[str]:
    told: list[str] = []
    recorder = delivery.Sending("recorder", lambda event: told.append(event.id))
    now = trees.START + timedelta(days=3650)
    while recounts.events():
        delivery.sweep(now=now, handlers=(*delivery.HANDLERS, recorder))
        now += outbox.LONGEST_PAUSE
    return told


def _revisions() -> dict[str, int]:
    query = datastore.Query("Comment")
    return {
        message.key.path[-1].name: message.properties["revision"].integer_value
        for message in datastore.fetch(query)
    }
