"""Declared counters stay exact while eight writers work, commits fail and processes die."""

import contextlib
import itertools
import random
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from comments import errors
from comments.domain import records
from comments.domain.counters import declared_counters
from comments.events import dispatcher, outbox, retry_pauses
from comments.posting import cast_vote, own_comment
from comments.sites import site_settings
from comments.store import connection
from comments.tree.bulk import recategorize
from comments.tree.counters.declared import declarations, declared_backfill
from comments.upkeep import wiring
from comments.upkeep.integrity import recount
from datastore_emulator import faults, inprocess
from tests.support import dying_programs, forked_programs
from tests.support.histories import counter_oracle, declared_oracle
from tests.support.threads import sample_threads, sample_votes

pytestmark = [pytest.mark.slow, pytest.mark.embedded]

WRITERS = 4  # Per process; there are two.
SEED = 1
STEPS = 6  # Per writer.
NAMES = ("news", "sport")
NOW = sample_threads.START + timedelta(days=1)
LATE = NOW + timedelta(days=3650)
FAULTS: list[dict[str, Any]] = [
    {"rpc": rpc, "probability": 0.03, "when": when, "status": status}
    for rpc in ("Lookup", "Commit")
    for when in ("before", "after")
    for status in ("ABORTED", "UNAVAILABLE")
]
DECLARED = [
    declared_counters.declare("votes", ["up >= 1"], ["day", "category"], "up"),
    declared_counters.declare("voices", ["status = approved"], ["thread", "author"]),
    declared_counters.declare("voices", ["status != approved"], ["category", "author"]),
    declared_counters.declare("voices", [], [], "score"),
]


@contextlib.contextmanager
def _opened(path: Path, seed: int = 0) -> Iterator[None]:
    """Open a store in a file that other processes share; with a seed, calls fail."""
    with inprocess.open_engine(path, indexes=dying_programs.INDEXES) as engine:
        if seed:
            plan = {"seed": seed, "rules": FAULTS}
            engine.install_faults(faults.Plan.parse(plan))
        store = connection.Store(inprocess.Channel(engine), project="test", deadline=10.0)
        with store.context(), _small_commits():
            yield


@contextlib.contextmanager
def _small_commits() -> Iterator[None]:
    """Let few numbers fit into one commit."""
    with (
        mock.patch.object(outbox, "MOST_ROWS", 20),
        mock.patch.object(declared_backfill, "AT_ONCE", 3),
    ):
        yield


def _tried(step: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Call a function, again if the store was busy; the call before may have been applied."""
    for _ in range(8):
        with contextlib.suppress(errors.Overloaded):
            return step(*arguments, **named)
    return None


def _deliver() -> None:
    dispatcher.deliver(counter_oracle.events(), now=NOW, handlers=wiring.HANDLERS)


def _write(path: Path, label: str, seed: int) -> None:
    """Post, vote, retract, recategorize and deliver in four threads of a process of its own."""
    with _opened(path, seed):
        store = connection.current()

        def work(number: int) -> None:
            with store.context():
                _changes(random.Random(f"{seed}{number}"), f"{label}{number}")

        with ThreadPoolExecutor(WRITERS) as pool:
            list(pool.map(work, range(WRITERS)))


def _changes(rng: random.Random, label: str) -> None:
    site = site_settings.get("demo")
    own: list[records.Comment] = []
    for step in range(STEPS):
        thread = rng.choice(["page", "other"])
        author = sample_threads.author(f"{rng.randrange(3)}")
        dice = rng.random()
        if dice < 0.6 or not own:
            text = f"{label}-{step}"
            filed = {"thread": thread, "author": author, "categories": NAMES}
            row = _tried(sample_threads.post, site, text, **filed)
            own += [row] if row else []
        elif dice < 0.75:
            _tried(sample_votes.vote, rng.choice(own), label)
            _tried(_count_votes)
        elif dice < 0.85:
            name = records.ThreadName("demo", thread)
            _tried(recategorize.change, name, rng.choice([[], ["news"], NAMES]), now=NOW)
        else:
            row = own.pop()
            taken = {"author_id": row.author.id, "revision": None, "now": NOW}
            _tried(own_comment.retract, row.id, **taken)
        if step % 3 == 2:
            _tried(_deliver)


def _count_votes() -> None:
    for comment in cast_vote.waiting_comments(LATE):
        cast_vote.count(comment.id, now=LATE)


def _finish() -> None:
    recategorize.finish(now=LATE, steps=100)
    _count_votes()
    now = LATE
    while counter_oracle.events():
        dispatcher.sweep(now=now, handlers=wiring.HANDLERS)
        now += retry_pauses.LONGEST_PAUSE


def _begin() -> records.Site:
    site = site_settings.add(
        "demo", ["https://a.example"], scheme=sample_threads.SETTINGS.scheme, now=NOW
    )
    return sample_threads.filing(site, *NAMES)


def test_counters_are_declared_changed_and_removed_while_eight_writers_work(
    tmp_path: Path,
) -> None:
    path = tmp_path / "store.db"
    with _opened(path):
        site = _begin()
        for number in range(6):
            sample_threads.post(site, f"{number}", categories=NAMES)
    children = [forked_programs.start(_write, path, each, SEED) for each in "ab"]
    with _opened(path, SEED):
        for declared in (*DECLARED, DECLARED[2], DECLARED[1]):
            _tried(_declare, declared)
            _tried(declared_backfill.complete, "demo")
            # A comparison during all of this finds no difference.
            assert not _tried(recount.site, "demo", tell=print, fixes=False)
        _tried(declarations.remove, "demo", "votes", now=NOW)
    assert [child.wait() for child in children] == [0, 0]
    with _opened(path):
        declarations.add("demo", DECLARED[0], now=NOW)
        declared_backfill.finish(now=LATE)
        assert recount.site("demo", tell=print, fixes=False) == 0
        _finish()
        declared_oracle.assert_counted()
        assert all(declared_oracle.stored().values())
        counter_oracle.assert_all_counted()


def _declare(declared: declared_counters.Declaration) -> None:
    try:
        declarations.change("demo", declared, now=NOW)
    except errors.NotFound:
        with contextlib.suppress(errors.Conflict):  # The commit whose answer was lost added it.
            declarations.add("demo", declared, now=NOW)


def _redeclare() -> None:
    """Change a counter and run its job, in a process of its own."""
    with _small_commits():
        declarations.change("demo", DECLARED[1], now=NOW)
        declared_backfill.complete("demo")


def test_another_process_finishes_a_job_that_was_killed_at_any_commit(tmp_path: Path) -> None:
    for call in itertools.count(1):
        path = tmp_path / f"{call}.db"
        with _opened(path):
            site = _begin()
            for number in range(4):
                author = sample_threads.author(f"{number}")
                sample_threads.post(site, f"{number}", author=author)
            declarations.add("demo", DECLARED[3], now=NOW)
            declared_backfill.complete("demo")
        rule = {"rpc": "Commit", "call": call, "when": "before", "kill": True}
        status, commits = dying_programs.run(path, [rule], _redeclare)
        with _opened(path):
            _finish()
            # Until then, the job may belong to a process that is still alive.
            declared_backfill.finish(now=NOW + declared_backfill.PATIENCE / 2)
            declared_backfill.finish(now=LATE)
            declared_oracle.assert_counted()
        if status == 0:
            assert int(commits) < call
            assert call > 5
            return
        assert (status, commits) == (-signal.SIGKILL, "")
