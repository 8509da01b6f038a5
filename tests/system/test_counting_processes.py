"""Counters and events stay exact despite concurrent processes and threads, faults and kills.

Two processes with 16 threads each post, reply, retry, edit, retract, vote, follow and leave at
random in two discussion threads on a site, and they recategorize these discussion threads.
Meanwhile, their workers deliver, count and compact. Calls fail with every status, before and after
they are applied. In some rounds, the processes die at a named point. Afterwards, a third process
finishes the remaining work. At the end, every counter must equal its recount, votes and followers
must match the responses, and the delivered events must match the committed changes.

In the long run, each fault plan runs repeatedly for this number of seconds:

    COUNTING_SECONDS=150 .venv/bin/python -m pytest -s tests/system/test_counting_processes.py
"""

import contextlib
import itertools
import json
import os
import signal
import time
from collections.abc import Iterable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from comments.domain import records
from comments.events import dispatcher, outbox, retry_pauses
from comments.notifications import thread_followers
from comments.posting import cast_vote
from comments.sites import site_settings
from comments.store import connection
from comments.store.large_sets import membership, set_compaction
from comments.tree.bulk import recategorize
from comments.tree.counters import sharding
from comments.upkeep import wiring
from comments.upkeep.integrity import recount, repair
from comments.upkeep.migrations import thread_count_rows
from datastore_emulator import faults, inprocess
from tests.support import forked_programs, programs, stored_state
from tests.support.threads import sample_threads

pytestmark = [pytest.mark.slow, pytest.mark.embedded]

INDEXES = programs.ROOT / "index.yaml"
THREADS = 16  # Per process; there are two.
STEPS = 10  # Per thread of a process that no plan kills.
STATUSES = [
    "ABORTED", "UNAVAILABLE", "INTERNAL", "UNKNOWN", "DEADLINE_EXCEEDED", "CANCELLED",
    "RESOURCE_EXHAUSTED", "INVALID_ARGUMENT", "PERMISSION_DENIED",
]  # fmt: skip

# This program prints "A" and the event id for an acknowledged change, "T" and the id for a
# delivered event, and "K" with an idempotency key and its comment. For a vote or a follower, the
# program prints "I" and the wanted value before the call, and "D" and the acknowledged value after
# the call.
CHANGING = """
import json, random, sys, threading
from concurrent.futures import ThreadPoolExecutor
from comments import errors
from comments.store import connection
from comments.events import dispatcher
from comments.tree.bulk import recategorize
from comments.store.large_sets import membership
from comments.events import outbox
from comments.posting import own_comment
from comments.domain import records
from comments.domain.ids import sorthash
from comments.notifications import reader_follows
from comments.posting import cast_vote, own_comment
from comments.upkeep import background_worker
from comments.upkeep import wiring
from datastore_emulator import inprocess
from datastore_emulator import faults
from tests.support.threads import sample_threads
from tests.system import test_counting_processes

path, label, seed, roots, plan = sys.argv[1:4] + [json.loads(each) for each in sys.argv[4:6]]
membership.MARKS = 8
indexes = test_counting_processes.INDEXES
engine = inprocess.open_engine(path, indexes=indexes, concurrency="pessimistic")
store = connection.Store(inprocess.Channel(engine), project="test", deadline=5.0)
site = records.Site("demo", (), sorthash.DEFAULT_DIGITS, 2)

def say(*words):
    sys.stdout.write(" ".join(map(str, words)) + "\\n")
    sys.stdout.flush()

recorder = dispatcher.Sending("recorder", lambda event: say("T", event.id), outbox.COUNTED)
wiring.HANDLERS = (*wiring.HANDLERS, recorder)
gate = threading.Barrier(test_counting_processes.THREADS)

def tried(step):
    for _ in range(4):
        try:
            return step()
        except errors.Overloaded:
            continue  # perhaps it was applied, perhaps not: again, as clients do
        except (errors.Conflict, errors.NotFound):
            return None  # somebody else took it back first
    return None

def wish(step, *words):
    say("I", *words)
    if tried(lambda: step() or True):
        say("D", *words)

def post(rng, key, own):
    author = records.Author("somebody", id=f"g:{label}{rng.randrange(6)}")
    thread = rng.choice(sorted(roots))
    parent = rng.choice([None, *roots[thread], *[r.id for r in own if r.thread == thread]])
    for _ in range(rng.choice([1, 1, 2])):
        row = tried(
            lambda: sample_threads.post(site, key, parent, thread=thread, author=author, key=key)
        )
        if row is not None:
            say("K", key, row.id)
    return row

def change(rng, number, step, own):
    dice = rng.random()
    name = records.ThreadName("demo", rng.choice(sorted(roots)))
    if dice < 0.5 or not own:
        row = post(rng, f"{label}-{number}-{step}".ljust(16, "."), own)
        own.extend([] if row is None else [row])
        return row
    if dice < 0.6:
        # Each voter and each follower is one thread's alone.
        comment = rng.choice([*roots[name.id], *[row.id for row in own]])
        voter, value = f"v:{label}{number}", rng.choice([-1, 0, 1])
        request = sample_threads.request(network=f"{label}{number}")
        return wish(
            lambda: cast_vote.vote(comment, voter, value, request),
            "vote", comment, voter, value,
        )
    if dice < 0.7:
        follower, follows = f"f:{label}{number}", rng.random() < 0.7
        def step():
            if follows:
                reader_follows.follow(name, follower, now=sample_threads.START)
            else:
                reader_follows.unfollow(name, follower, now=sample_threads.START)
        return wish(step, "follow", name.id, f"~{follower}", int(follows))
    if dice < 0.73:
        names = rng.choice([[], ["news"], ["news/local", "sport"]])
        tried(lambda: recategorize.change(name, names, now=sample_threads.START))
        return None
    row = own.pop(rng.randrange(len(own)))
    if dice < 0.87:
        return tried(lambda: own_comment.edit(
            row.id, author_id=row.author.id, body=f"edited {step}", revision=None,
            settings=sample_threads.SETTINGS, now=sample_threads.START,
        ))
    return tried(lambda: own_comment.retract(
        row.id, author_id=row.author.id, revision=None, now=sample_threads.START,
    ))

def work(number):
    rng, own = random.Random(f"{seed}{label}{number}"), []
    with store.context():
        gate.wait(60)
        for step in test_counting_processes.steps(plan, test_counting_processes.STEPS):
            row = change(rng, number, step, own)
            if row is not None:
                say("A", f"{row.id}.{row.revision}")

worker = background_worker.BackgroundWorker(store)
worker.start()
engine.install_faults(faults.Plan.parse(plan))
with ThreadPoolExecutor(test_counting_processes.THREADS) as pool:
    list(pool.map(work, range(test_counting_processes.THREADS)))
worker.stop(60)
"""


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[connection.Store]:
    """Open a store in a file that other processes share, and enter its context."""
    with inprocess.open_engine(path, indexes=INDEXES, concurrency="pessimistic") as engine:
        opened = connection.Store(inprocess.Channel(engine), project="test", deadline=60.0)
        with opened.context():
            yield opened


def _failing() -> list[dict[str, object]]:
    """Return faults with every status, before and after calls; they affect one in eight posts."""
    return [
        {"rpc": rpc, "probability": 0.004, "when": when, "status": status}
        for rpc in ("BeginTransaction", "Lookup", "Commit")
        for when in ("before", "after")
        for status in STATUSES
    ]


def _killed(point: str, call: int) -> list[dict[str, object]]:
    return [*_failing(), {"point": point, "call": call, "kill": True}]


def _start(
    path: Path, label: str, seed: int, roots: object, rules: object
) -> forked_programs.Program:
    plan = json.dumps({"seed": seed, "rules": rules})
    return forked_programs.start(CHANGING, path, label, seed, json.dumps(roots), plan)


def _said(child: forked_programs.Program) -> list[list[str]]:
    """Return a child's complete lines; the child may have died within a line."""
    lines = child.output(5 * programs.PATIENCE).splitlines(keepends=True)
    return [line.split() for line in lines if line.endswith("\n")]


def steps(plan: dict[str, Any], most: int) -> Iterable[int]:
    """Return the numbers of a thread's steps, without an end if the plan kills the process."""
    is_killed = any("kill" in rule for rule in plan["rules"])
    return itertools.count() if is_killed else range(most)


PLANS = [
    (_failing(), 0),
    *(
        (_killed(point, 40 + 25 * number), -signal.SIGKILL)
        for number, point in enumerate(sorted(faults.POINTS))
    ),
]


@pytest.mark.parametrize("plan", range(len(PLANS)))
def test_counters_and_events_are_exact_under_every_fault_plan(tmp_path: Path, plan: int) -> None:
    seconds = float(os.environ.get("COUNTING_SECONDS", "0"))
    end = time.monotonic() + seconds
    changes = 0
    for number in itertools.count():
        seed = 1 + plan + 100 * number
        path = tmp_path / f"{seed}.db"
        with _opened(path):
            changes += _round(path, seed, *PLANS[plan])
        path.unlink()
        if time.monotonic() >= end:
            break
        print(f"plan {plan}, seed {seed}: {changes} changes", flush=True)  # noqa: T201 - the long run prints


def _round(path: Path, seed: int, rules: object, status: int) -> int:
    """Run all processes concurrently; check the result; return the number of delivered changes."""
    site = site_settings.add(
        "demo",
        ["https://a.example"],
        scheme=sample_threads.SETTINGS.scheme,
        now=sample_threads.START,
    )
    roots = {
        thread: [sample_threads.post(site, f"{n}", thread=thread).id for n in range(6)]
        for thread in ("page", "other")
    }
    thread_count_rows.complete("demo")
    children = [_start(path, label, seed, roots, rules) for label in "ab"]
    said = [words for child in children for words in _said(child)]
    assert [child.returncode for child in children] == [status] * 2
    told = [words[1] for words in said if words[0] == "T"]
    told += _finish()
    stored_state.assert_sums()
    for thread in roots:
        name = records.ThreadName("demo", thread)
        assert repair.find_problems(sample_threads.SETTINGS.scheme, name) == []
        sharding.gather(name)
    stored_state.assert_sums()
    assert recount.site("demo", tell=print, fixes=False) == 0
    assert stored_state.listings().keys() == {"demo"}
    _assert_told(said, told)
    _assert_wishes(said, sorted(roots))
    return len(set(told))


def _finish() -> list[str]:
    """Finish the remaining work; return the ids of the events that this work delivers."""
    told: list[str] = []
    recorder = dispatcher.Sending("recorder", lambda event: told.append(event.id), outbox.COUNTED)
    now = sample_threads.START + timedelta(days=3650)
    recategorize.finish(now=now, steps=100)
    for comment in cast_vote.waiting_comments(now):
        cast_vote.count(comment.id, now=now)
    while stored_state.events():
        dispatcher.sweep(now=now, handlers=(*wiring.HANDLERS, recorder))
        now += retry_pauses.LONGEST_PAUSE
    return told


def _assert_told(said: list[list[str]], told: list[str]) -> None:
    """Check that the delivered events match the acknowledged changes and the stored comments."""
    stored = stored_state.said()
    assert {words[1] for words in said if words[0] == "A"} <= set(told)
    assert {f"{comment}.1" for comment in stored} <= set(told)
    for event in told:
        comment, _, revision = event.partition(".")
        assert revision.startswith("c") or 1 <= int(revision) <= stored[comment].revision
    keys = [(words[1], words[2]) for words in said if words[0] == "K"]
    assert len(dict(keys)) == len(set(keys))  # One comment per key, even for repeated posts
    assert {comment for _, comment in keys} <= stored.keys()


def _assert_wishes(said: list[list[str]], threads: list[str]) -> None:
    """Check that votes and followers have the last acknowledged value or a requested value."""
    allowed: dict[tuple[str, ...], set[int]] = {}
    for letter, *words in said:
        if letter in "ID":
            *key, value = words
            wanted = allowed.setdefault(tuple(key), {0})
            allowed[tuple(key)] = {int(value)} if letter == "D" else {*wanted, int(value)}
    stored = {("vote", *key): value for key, value in stored_state.votes().items()}
    for thread in threads:
        name = thread_followers.set_of(records.ThreadName("demo", thread))
        for _ in range(2):
            members = [("follow", thread, each) for each in membership.every(name, limit=50)]
            stored |= dict.fromkeys(members, 1)
            set_compaction.compact(name)
        stored_rows = stored_state.subscribers().get(name.text, set())
        assert stored_rows == {each for _, _, each in members}
        assert len(members) == sum(key[:2] == ("follow", thread) for key in stored)
    assert stored.keys() <= allowed.keys()
    retracted = {row.id for row in stored_state.said().values() if row.status == "retracted"}
    for key, values in allowed.items():  # type: ignore[assignment]
        if key[0] == "follow" or key[1] not in retracted:
            assert stored.get(key, 0) in values  # type: ignore[call-overload]
    for row in stored_state.said().values():
        cast = [value for key, value in stored.items() if key[:2] == ("vote", row.id)]
        assert (row.up, row.down) == (cast.count(1), cast.count(-1))
