"""Moves end after a kill at any commit, and lose no post of readers who write in the meantime."""

import contextlib
import itertools
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import flask
import pytest
from flask.testing import FlaskClient

from comments.domain import records
from comments.sites import site_settings
from comments.store import connection
from comments.threads import thread_info
from comments.transfer.moves import move_journal, move_plan, thread_moves
from datastore_emulator import inprocess
from tests.support import dying_programs
from tests.support.threads import sample_threads

pytestmark = [pytest.mark.slow, pytest.mark.embedded]

NOW = sample_threads.START
THREADS = move_journal.AT_ONCE + 2
PAIRS = [(f"old-{number}", f"new-{number}") for number in range(THREADS)]
WRITERS = 20
DONE = move_journal.MoveState.DONE


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[None]:
    with (
        inprocess.open_engine(path, indexes=dying_programs.INDEXES) as engine,
        connection.Store(inprocess.Channel(engine), project="test").context(),
    ):
        yield


def _move(pairs: Sequence[tuple[str, str]] = PAIRS) -> None:
    site = site_settings.get("demo")
    plan = move_plan.of_list(site, pairs)
    thread_moves.run_to_end(
        thread_moves.begin(site, plan, "test", sample_threads.ADA, now=datetime.now(UTC))
    )


def _undo() -> None:
    done = [move for move in move_journal.of_site("demo") if move.state is DONE]
    move = max(done, key=lambda move: move.began)
    thread_moves.run_to_end(
        thread_moves.undo("demo", move.id, sample_threads.ADA, now=datetime.now(UTC))
    )


def _shown() -> set[str]:
    names = [records.ThreadName("demo", old) for old, _ in PAIRS]
    return {row.shown_id.partition("-")[0] for row in map(thread_info.fresh, names) if row}


@pytest.mark.parametrize("step", [_move, _undo])
def test_another_process_finishes_a_move_that_was_killed_at_any_commit(
    tmp_path: Path, step: Callable[[], None]
) -> None:
    before, after = ("old", "new") if step is _move else ("new", "old")
    for call in itertools.count(1):
        path = tmp_path / f"{call}.db"
        with _opened(path):
            site = site_settings.add("demo", [], scheme=sample_threads.SETTINGS.scheme, now=NOW)
            for old, _ in PAIRS:
                sample_threads.post(site, old, thread=old)
            if step is _undo:
                _move()
        rule = {"rpc": "Commit", "call": call, "when": "before", "kill": True}
        status, _ = dying_programs.run(path, [rule], step)
        with _opened(path):
            states = {move.state for move in move_journal.of_site("demo")}
            begun = states & {move_journal.MoveState.RUNNING, move_journal.MoveState.UNDOING}
            assert begun or _shown() == {after if status == 0 else before}
            thread_moves.finish(100)
            assert _shown() == {after if begun or status == 0 else before}
            assert all(sample_threads.listed(site, old) == [old] for old, _ in PAIRS)
        if status == 0:
            assert call >= 3 + (THREADS > move_journal.AT_ONCE)
            return
        assert status == -signal.SIGKILL


def test_posts_beside_moves_all_reach_their_threads(
    app: flask.Flask, client: FlaskClient, site: records.Site, store: connection.Store
) -> None:
    for old, _ in PAIRS:
        sample_threads.post(site, f"first in {old}", thread=old)
    headers = {"Origin": site.origins[0]}

    def write(writer: int) -> list[int]:
        """Post and read by both ids, and return the statuses of the posts."""
        caller, statuses = app.test_client(), []
        for number, (old, new) in enumerate(PAIRS):
            name = (old, new)[(writer + number) % 2] if number % 3 else old
            sent = {"name": f"writer {writer}", "body": f"{writer} in {old}"}
            path = f"/api/v1/sites/demo/comments?thread={name}"
            statuses.append(caller.post(path, json=sent, headers=headers).status_code)
            shown = caller.get(path).json
            assert shown is not None
            bodies = [comment["html"] for comment in shown["comments"]]
            assert all(f" in {old}<" in body for body in bodies)
        return statuses

    _move()
    with ThreadPoolExecutor(WRITERS + 1) as pool:
        writing = [pool.submit(write, writer) for writer in range(WRITERS)]

        def turn() -> None:
            """Move the threads on and back. The ids that the writers use lead to them all along."""
            with store.context():
                for number in range(3):
                    _move([(new, f"{new}-{number}") for _, new in PAIRS])
                    _undo()

        pool.submit(turn).result()
        statuses = [status for task in writing for status in task.result()]
    assert statuses == [201] * (WRITERS * THREADS)
    for old, _ in PAIRS:
        assert len(sample_threads.listed(site, old)) == WRITERS + 1
