"""Merges, splits and undos end after a kill at any commit, and lose no post of other processes."""

import itertools
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from comments import app as apps
from comments import config
from comments.domain import records
from comments.notifications import reader_follows, thread_followers
from comments.sites import site_settings
from comments.store import connection
from comments.transfer.moves import join_plan, move_journal, thread_joins, thread_moves
from comments.tree.lists import ordered_query
from comments.upkeep.integrity import repair
from datastore_emulator import inprocess
from tests.support import datastores, dying_programs
from tests.support.histories import counter_oracle
from tests.support.threads import sample_threads

pytestmark = [pytest.mark.slow, pytest.mark.embedded]

NOW = sample_threads.START
WRITERS = 20
ROUNDS = 2
THREADS = ("a", "b", "c")
APART, MERGED = [["a", "a2"], ["b"], []], [["a", "b", "a2"], [], []]
SPLIT = [["a2"], ["b"], ["a"]]


def _merge() -> None:
    _run(join_plan.of_merge(site_settings.get("demo"), "b", "a"))


def _split() -> None:
    """Split the first comment of "a" off."""
    first = ordered_query.thread(records.ThreadName("demo", "a"))[0]
    _run(join_plan.of_split(site_settings.get("demo"), first.id, "c"))


def _run(plan: join_plan.JoinPlan) -> None:
    site = site_settings.get("demo")
    begun = thread_joins.begin(site, plan, sample_threads.ADA, now=datetime.now(UTC))
    thread_moves.run_to_end(begun)


def _undo() -> None:
    (move,) = (m for m in move_journal.of_site("demo") if m.state is move_journal.MoveState.DONE)
    thread_moves.run_to_end(
        thread_moves.undo("demo", move.id, sample_threads.ADA, now=datetime.now(UTC))
    )


def _trees() -> list[list[str]]:
    names = [records.ThreadName("demo", thread) for thread in THREADS]
    return [[row.body for row in ordered_query.thread(name)] for name in names]


@pytest.mark.parametrize(
    ("prepare", "step", "before", "after"),
    [
        (None, _merge, APART, MERGED),
        (_merge, _undo, MERGED, APART),
        (None, _split, APART, SPLIT),
        (_split, _undo, SPLIT, APART),
    ],
)
def test_another_process_finishes_what_was_killed_at_any_commit(
    tmp_path: Path, prepare: Callable[[], None] | None, step: Callable[[], None],
    before: list[list[str]], after: list[list[str]],
) -> None:  # fmt: skip
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
            if prepare:
                prepare()
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
            assert followers == (0 if state == MERGED else 1)
        if status == 0:
            assert state == after
            return
        assert status == -signal.SIGKILL


class Writer:
    """A reader in a process of its own caches, who posts and reads until the changes end.

    `first` contains the ids of the first comments by their texts, `seen` the sets of them that each
    thread may show, and `posted` the ids of the stored comments, with the ids that they answer.
    """

    def __init__(
        self, client: FlaskClient, first: dict[str, str], seen: dict[str, list[set[str]]]
    ) -> None:
        self._client, self._first, self._seen = client, first, seen
        self.posted: dict[str, str | None] = {}

    def work(self, start: int, ended: threading.Event) -> None:
        for turn in itertools.count(start):
            name = list(self._seen)[turn % 2]
            answered = self._first["b" if name == "b" else "x"]
            self.post(name, answered if turn % 3 else None)
            shown = self.read(name, ("limit=all", "order=oldest&limit=200")[turn // 2 % 2])
            assert len({*shown}) == len(shown)
            assert {*shown} & {*self._first.values()} in self._seen[name]
            if ended.is_set():
                return

    def post(self, thread: str, parent: str | None = None) -> None:
        # Equal texts of the same second would be copies, and a merge would hide one.
        body = f"{thread} {len(self.posted)} {id(self)}"
        sent: dict[str, Any] = {"name": "Ann", "body": body}
        path = f"/api/v1/sites/demo/comments?thread={thread}"
        answer = self._client.post(path, json=sent if parent is None else sent | {"parent": parent})
        assert answer.status_code == 201, answer.text
        self.posted[answer.get_json()["comment"]["id"]] = parent

    def read(self, thread: str, query: str) -> list[str]:
        path = f"/api/v1/sites/demo/comments?thread={thread}&{query}"
        return [comment["id"] for comment in self._client.get(path).get_json()["comments"]]


@pytest.mark.parametrize(
    ("step", "seen"),
    [
        (_merge, {"a": ["x xx a", "x xx a b bb"], "b": ["b bb", "x xx a b bb"]}),
        (_split, {"a": ["x xx a", "a"], "c": ["", "x xx"]}),
    ],
)
def test_readers_see_the_state_before_or_after_and_no_post_is_lost(
    site: records.Site, settings: config.Settings, datastore: datastores.Datastore,
    store: connection.Store, step: Callable[[], None], seen: dict[str, list[str]],
) -> None:  # fmt: skip
    first: dict[str, str] = {}
    for text in ("x", "xx", "a", "b", "bb"):
        above = first.get(text[:-1])
        first[text] = sample_threads.post(site, text, above, thread="b" if "b" in text else "a").id
    allowed = {
        name: [{first[text] for text in state.split()} for state in states]
        for name, states in seen.items()
    }
    clients = [apps.create_app(settings, datastore.connect()).test_client for _ in range(2)]
    writers = [Writer(clients[number % 2](), first, allowed) for number in range(WRITERS)]
    ended = threading.Event()

    def change() -> None:
        with store.context():
            for _ in range(ROUNDS):
                step()
                _undo()
            step()

    with ThreadPoolExecutor(WRITERS + 1) as pool:
        writing = [pool.submit(each.work, start, ended) for start, each in enumerate(writers)]
        try:
            pool.submit(change).result()
        finally:
            ended.set()
        for task in writing:
            task.result()
    posted = {key: parent for writer in writers for key, parent in writer.posted.items()}
    posted |= {first[text]: first.get(text[:-1]) for text in first}
    _check(site, posted)


def _check(site: records.Site, posted: dict[str, str | None]) -> None:
    """Check that all comments are stored once, in the trees of a naive model."""
    thread_joins.expire(datetime.now(UTC) + timedelta(hours=1))
    names = [records.ThreadName("demo", thread) for thread in THREADS]
    trees = [ordered_query.thread(name) for name in names]
    rows = {row.id: row for tree in trees for row in tree}
    assert sum(map(len, trees)) == len(rows)
    assert {key: row.reply_to for key, row in rows.items()} == posted
    for name, tree in zip(names, trees, strict=True):
        assert [row.id for row in tree] == list(_walk(tree, None))
        assert repair.find_problems(site.scheme, name) == []
    counter_oracle.assert_counted()


def _walk(tree: Sequence[records.Comment], above: str | None) -> Iterator[str]:
    for row in sorted(tree, key=lambda row: row.number):
        if row.reply_to == above:
            yield row.id
            yield from _walk(tree, row.id)
