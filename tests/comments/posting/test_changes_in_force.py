"""A change of what decides about posts applies to every post that begins after the change.

Two processes with four writers each post to one thread without a break. A third process, like a
command or another worker, changes one setting after another. Every post that begins after the
change was made is treated by the new setting.
"""

import contextlib
import os
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest

from comments.domain import records
from comments.domain.records import Policy
from comments.moderation import bans
from comments.moderation.policy import policy_changes
from comments.moderation.policy.rules import Action, Rule
from comments.sites import site_settings
from comments.store import connection, reads
from datastore_emulator import inprocess
from tests.conftest import ROOT
from tests.support import forked_programs, programs
from tests.support.threads import sample_threads

pytestmark = [pytest.mark.slow, pytest.mark.embedded]

WRITERS = 4  # In each of the two processes.
ROUNDS = int(os.environ.get("POLICY_ROUNDS", "7"))
POSTS = 8  # Of each process, in each half of a round.
ADA = records.Actor("cli", "Ada")
THREAD = records.ThreadName("demo", "page")

POSTING = """
import dataclasses, sys, threading, time
from comments import app
from comments.store import connection
from datastore_emulator import inprocess
from tests.comments.posting import test_changes_in_force
from tests.support.threads import sample_threads

path, label = sys.argv[1:]
engine = inprocess.open_engine(
    path, indexes=test_changes_in_force.ROOT / "index.yaml", concurrency="pessimistic", history=0
)
store = connection.Store(inprocess.Channel(engine), project="test", deadline=60.0)
made = app.create_app(dataclasses.replace(sample_threads.SETTINGS, proof_of_work=0), store)
is_over = threading.Event()

def write(name):
    client, number, token = made.test_client(), 0, ""
    while not is_over.is_set():
        number += 1
        began = time.monotonic()
        said = client.post(
            "/api/v1/sites/demo/comments?thread=page",
            json={"body": f"Text {number} of {name}.", "name": name, "website": "https://a.example"},
            headers={"Authorization": f"Bearer {token}"} if token else {},
            environ_base={"REMOTE_ADDR": "9.9.9.9"},
        )
        answer = said.get_json()
        token = token or answer.get("token", "")
        result = answer.get("code") or answer.get("status") or answer["comment"]["status"]
        sys.stdout.write(f"{began} {result}\\n")
        sys.stdout.flush()

writers = [
    threading.Thread(target=write, args=(f"{label}{number}",))
    for number in range(test_changes_in_force.WRITERS)
]
for each in writers:
    each.start()
sys.stdin.readline()
is_over.set()
for each in writers:
    each.join()
"""


class Post(NamedTuple):
    """A post that has been answered: when it began, and its status or the code of its refusal."""

    began: float
    result: str


class Observer:
    """The answers to the posts of the processes, as they arrive."""

    def __init__(self, processes: list[forked_programs.Program]) -> None:
        self._posts = defaultdict[int, list[Post]](list)
        self._changed = threading.Condition()
        self._readers = [
            threading.Thread(target=self._read, args=each, daemon=True)
            for each in enumerate(processes)
        ]
        for each in self._readers:
            each.start()

    def _read(self, number: int, process: forked_programs.Program) -> None:
        for line in process.stdout:
            began, _, result = line.strip().partition(" ")
            with self._changed:
                self._posts[number].append(Post(float(began), result))
                self._changed.notify_all()

    def after(self, moment: float) -> list[Post]:
        """Return the posts that began after a moment, at least `POSTS` of each process."""

        def found() -> list[list[Post]]:
            return [[each for each in self._posts[n] if each.began > moment] for n in (0, 1)]

        def is_enough() -> bool:
            return all(len(each) >= POSTS for each in found())

        with self._changed:
            assert self._changed.wait_for(is_enough, programs.PATIENCE)
            return [post for each in found() for post in each]

    def join(self) -> None:
        """Wait for the ends of the processes' outputs."""
        for each in self._readers:
            each.join()


class Switch(NamedTuple):
    """A change, the change that takes it back, and the result of posts in between."""

    change: Callable[[], object]
    back: Callable[[], object]
    result: str


def _policy(policy: Policy) -> None:
    policy_changes.set_policy("demo", ADA, now=datetime.now(UTC), policy=policy)


def _rule(*, is_on: bool) -> None:
    rule = Rule(id="r", action=Action.REJECT, words=("text",), is_on=is_on)
    policy_changes.put_rule("demo", rule, ADA, now=datetime.now(UTC))


def _ban() -> None:
    bans.ban(
        "demo", _an_author(), bans.BanScope(network_days=1), ADA,
        secret=sample_threads.SETTINGS.secret, now=datetime.now(UTC),
    )  # fmt: skip


def _an_author() -> str:
    (row,) = reads.fetch(reads.Query("Comment", order=("created",), limit=1))
    return str(row.properties["author_id"].string_value)


def _state(state: records.ThreadState) -> None:
    policy_changes.set_thread(THREAD, ADA, now=datetime.now(UTC), state=state)


def _options(**options: bool) -> None:
    site_settings.change("demo", options=options)


def _budget(posts: int) -> None:
    site_settings.change("demo", budget={"posts": posts, "then": "read-only"})


SWITCHES = [
    Switch(lambda: _policy(Policy.ALL), lambda: _policy(Policy.OFF), "pending"),
    Switch(lambda: _rule(is_on=True), lambda: _rule(is_on=False), "comment-refused"),
    Switch(
        _ban,
        lambda: policy_changes.unban("demo", _an_author(), ADA, now=datetime.now(UTC)),
        "author-banned",
    ),
    Switch(lambda: _policy(Policy.READ_ONLY), lambda: _policy(Policy.OFF), "read-only"),
    Switch(
        lambda: _state(records.ThreadState.CLOSED),
        lambda: _state(records.ThreadState.OPEN),
        "thread-closed",
    ),
    Switch(lambda: _options(guests=False), lambda: _options(guests=True), "guests-off"),
    Switch(lambda: _budget(1), lambda: _budget(0), "budget-spent"),
]


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "store.db"
    with inprocess.open_engine(
        path, indexes=ROOT / "index.yaml", concurrency="pessimistic", history=0
    ) as engine:
        store = connection.Store(inprocess.Channel(engine), project="test", deadline=60.0)
        with store.context():
            scheme = sample_threads.SETTINGS.scheme
            site_settings.add(
                "demo", ["https://a.example"], scheme=scheme, now=sample_threads.START
            )
            yield path


def test_a_change_applies_to_every_post_that_begins_after_it(file: Path) -> None:
    wrong, seen = [], 0
    with contextlib.ExitStack() as running:
        started = [forked_programs.start(POSTING, file, label) for label in "ab"]
        processes = [running.enter_context(each) for each in started]
        observer = Observer(processes)
        moment = time.monotonic()
        for number in range(ROUNDS):
            switch = SWITCHES[number % len(SWITCHES)]
            for change, result in ((switch.change, switch.result), (switch.back, "approved")):
                observer.after(moment)
                change()
                moment = time.monotonic()
                found = observer.after(moment)
                seen += len(found)
                wrong += [(number, result, each.result) for each in found if each.result != result]
        for each in processes:
            each.stdin.close()
        observer.join()
    told = f"{ROUNDS} rounds, {seen} posts after a change, {len(wrong)} treated otherwise"
    sys.stdout.write(f"{told}\n")
    assert wrong == []
    assert [each.returncode for each in processes] == [0, 0]
