"""Merges end after a kill at any commit, and lose no post of readers who write in the meantime."""

import itertools
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import flask
import pytest
from flask.testing import FlaskClient

from comments.domain import records
from comments.notifications import reader_follows, thread_followers
from comments.sites import site_settings
from comments.store import connection
from comments.transfer.moves import join_plan, move_journal, thread_joins, thread_moves
from comments.tree.lists import ordered_query
from datastore_emulator import inprocess
from tests.support import dying_programs
from tests.support.histories import counter_oracle
from tests.support.threads import sample_threads

pytestmark = [pytest.mark.slow, pytest.mark.embedded]

NOW = sample_threads.START
WRITERS = 20
POSTS = 4


def _merge() -> None:
    site = site_settings.get("demo")
    plan = join_plan.of_merge(site, "b", "a")
    begun = thread_joins.begin(site, plan, sample_threads.ADA, now=datetime.now(UTC))
    thread_moves.run_to_end(begun)


def _undo() -> None:
    (move,) = (m for m in move_journal.of_site("demo") if m.state is move_journal.MoveState.DONE)
    thread_moves.run_to_end(
        thread_moves.undo("demo", move.id, sample_threads.ADA, now=datetime.now(UTC))
    )


def _trees() -> list[list[str]]:
    names = [records.ThreadName("demo", thread) for thread in ("a", "b")]
    return [[row.body for row in ordered_query.thread(name)] for name in names]


@pytest.mark.parametrize("step", [_merge, _undo])
def test_another_process_finishes_a_merge_that_was_killed_at_any_commit(
    tmp_path: Path, step: Callable[[], None]
) -> None:
    apart, merged = [["a", "a2"], ["b"]], [["a", "b", "a2"], []]
    before, after = (apart, merged) if step is _merge else (merged, apart)
    for call in itertools.count(1):
        path = tmp_path / f"{call}.db"
        with (
            inprocess.open_engine(path, indexes=dying_programs.INDEXES) as engine,
            connection.Store(inprocess.Channel(engine), project="test").context(),
        ):
            site = site_settings.add("demo", [], scheme=sample_threads.SETTINGS.scheme, now=NOW)
            for text in ("a", "b", "a2"):
                sample_threads.post(site, text, thread=text[0], now=datetime.now(UTC))
            name = records.ThreadName("demo", "b")
            reader_follows.follow(name, "g:ann", now=NOW)
            if step is _undo:
                _merge()
        rule = {"rpc": "Commit", "call": call, "when": "before", "kill": True}
        status, _ = dying_programs.run(path, [rule], step)
        with (
            inprocess.open_engine(path, indexes=dying_programs.INDEXES) as engine,
            connection.Store(inprocess.Channel(engine), project="test").context(),
        ):
            state = _trees()
            assert state in (before, after)
            thread_moves.finish(100)
            assert _trees() == state
            counter_oracle.assert_counted()
            followers = thread_followers.count(records.ThreadName("demo", "b")).all
            assert followers == (0 if state == merged else 1)
        if status == 0:
            assert state == after
            return
        assert status == -signal.SIGKILL


def test_readers_beside_a_merge_see_the_state_before_or_after_and_no_post_is_lost(
    app: flask.Flask, client: FlaskClient, site: records.Site, store: connection.Store
) -> None:
    first = {name: sample_threads.post(site, f"first {name}", thread=name) for name in ("a", "b")}
    headers = {"Origin": site.origins[0]}

    def write(writer: int) -> list[int]:
        caller, statuses = app.test_client(), []
        for number in range(POSTS):
            name = "ab"[(writer + number) % 2]
            path = f"/api/v1/sites/demo/comments?thread={name}"
            sent = {"name": f"w{writer}", "body": f"{name} {writer} {number}"}
            statuses.append(caller.post(path, json=sent, headers=headers).status_code)
            shown = caller.get(f"{path}&limit=200").get_json()
            ids = [comment["id"] for comment in shown["comments"]]
            assert len(set(ids)) == len(ids)
            assert first[name].id in ids
        return statuses

    def turn() -> None:
        with store.context():
            _merge()

    with ThreadPoolExecutor(WRITERS + 1) as pool:
        writing = [pool.submit(write, writer) for writer in range(WRITERS)]
        pool.submit(turn).result()
        statuses = [status for task in writing for status in task.result()]
    assert statuses == [201] * (WRITERS * POSTS)
    assert sum(map(len, _trees())) == WRITERS * POSTS + 2
    counter_oracle.assert_counted()
