"""Admission counts exactly as an oracle does, in random histories of posts, retries and faults.

The histories contain good posts, repeated texts, used proofs, replies to missing comments, retries
with and without changes, commits that fail before or after they are applied, and time that passes.
"""

import dataclasses
import itertools
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from comments import errors
from comments.domain import records
from comments.domain.moderation import classifier_verdicts
from comments.limits.site_request import SiteRequest
from comments.posting import admission, new_comment
from comments.store import connection
from datastore_emulator import inprocess
from tests.support import prepared_stores
from tests.support.people import api_requests, proof_solver
from tests.support.store_interceptors import Commits
from tests.support.threads import sample_threads

pytestmark = [pytest.mark.slow, pytest.mark.embedded]

PER_NETWORK, PER_AUTHOR, PER_THREAD, SAME_TEXTS = 3, 2, 4, 2
RULES = dataclasses.replace(
    sample_threads.SETTINGS,
    posts_per_network=PER_NETWORK,
    posts_per_author=PER_AUTHOR,
    posts_per_thread=PER_THREAD,
    same_texts=SAME_TEXTS,
    proof_of_work=2,
    form_seconds=0,
)
WINDOW, KEEPS = timedelta(minutes=10), timedelta(hours=1)
TEXTS = ("Short", "A text that is long enough to be told from others.", "Another one of the kind.")
MISSING = "a" * 26


class Said(NamedTuple):
    """A post as the history repeats it."""

    network: str
    author: str
    text: str
    thread: str
    is_lost: bool
    key: str | None


class Window:
    """A limit's fixed window."""

    def __init__(self) -> None:
        self.began: datetime | None = None
        self.count = 0

    def is_full(self, most: int, now: datetime) -> bool:
        return self.began is not None and now - self.began < WINDOW and self.count >= most

    def add(self, now: datetime) -> None:
        if self.began is None or now - self.began >= WINDOW:
            self.began, self.count = now, 0
        self.count += 1


class Oracle:
    """Decide about each post, and count it, with dictionaries and lists."""

    def __init__(self) -> None:
        self.windows: dict[object, Window] = {}
        # The time and a value (an id, a proof or a text) of each counted post, by row.
        self.marks: dict[object, list[tuple[datetime, object]]] = {}
        self.stored: dict[str, Said] = {}

    def answer(self, said: Said, proof: str, now: datetime) -> str:
        """Return "new", "repeated" or an error's code."""
        name = f"{said.author}/{said.thread}/{said.key}"
        if said.key and name in self.stored:
            return "repeated" if self.stored[name][2:5] == said[2:5] else "idempotency-key-reused"
        if not (said.key and self._has(("id", name), now)):
            refused = self._refusal(said, proof, now)
            if refused:
                return refused
            self._count(said, name, proof, now)
        if said.is_lost:
            return "parent-not-found"
        if self._window("thread", said.thread).is_full(PER_THREAD, now):
            return "too-many-posts"
        self._window("thread", said.thread).add(now)
        self.stored[name if said.key else f"{len(self.stored)}"] = said
        return "new"

    def _refusal(self, said: Said, proof: str, now: datetime) -> str:
        if self._has(("proof", proof), now):
            return "proof-spent"
        text = said.text if len(said.text) >= 24 else ""
        for kind, who, most in (
            ("network", said.network, PER_NETWORK),
            ("author", said.author, PER_AUTHOR),
        ):
            if not who:
                continue
            if self._window(kind, who).is_full(most, now):
                return "too-many-posts"
            if text and self._has((kind, who, text), now):
                return "duplicate"
        is_again = self._has(("newcomers", text), now, SAME_TEXTS)
        return "duplicate" if not said.author and text and is_again else ""

    def _count(self, said: Said, name: str, proof: str, now: datetime) -> None:
        text = said.text if len(said.text) >= 24 else ""
        seen: list[object] = [("proof", proof), ("id", name)]
        for kind, who in (("network", said.network), ("author", said.author)):
            if who:
                self._window(kind, who).add(now)
                seen.append((kind, who, text))
        if not said.author:
            seen.append(("newcomers", text))
        for each in seen:
            self.marks.setdefault(each, []).append((now, each))

    def _window(self, *row: str) -> Window:
        return self.windows.setdefault(row, Window())

    def _has(self, mark: object, now: datetime, times: int = 1) -> bool:
        return sum(now - at < KEEPS for at, _ in self.marks.get(mark, ())) >= times


class Posting(RuleBasedStateMachine):
    """A state machine with one site, two threads, two networks and two known authors."""

    def __init__(self) -> None:
        super().__init__()
        self._opened = prepared_stores.opened(None)
        self._commits = Commits()
        channel = inprocess.Channel(self._opened.__enter__(), self._commits)
        self._store = connection.Store(channel, project="test")
        self._context = self._store.context()
        self._context.__enter__()
        self._site = prepared_stores.demo()
        self._oracle = Oracle()
        # Whole seconds, because rows store the times of posts in whole seconds.
        self._now = sample_threads.START.replace(microsecond=0)
        self._keys = itertools.count()
        self._last: list[tuple[Said, str, datetime]] = []

    def teardown(self) -> None:
        self._context.__exit__(None, None, None)
        stored = api_requests.stored(self._store, "Comment")
        self._opened.__exit__(None, None, None)
        assert stored == len(self._oracle.stored)

    @rule(
        network=st.sampled_from(["192.0.2.1", "198.51.100.1"]),
        author=st.sampled_from(["", "g:ann", "g:bob"]),
        text=st.sampled_from(TEXTS),
        thread=st.sampled_from(["page", "other"]),
        is_lost=st.integers(0, 4).map(lambda n: n == 0),
        faults=st.lists(st.sampled_from(["before", "after"]), max_size=2),
    )
    def post(self, faults: list[str], **said: Any) -> None:
        """Post with a new key and a new proof."""
        key = f"{next(self._keys)}".rjust(16, "-")
        self._send(Said(key=key, **said), self._proof(said["network"]), faults)

    @rule(
        back=st.integers(0, 5),
        text=st.none() | st.sampled_from(TEXTS),
        has_new_proof=st.booleans(),
        has_new_key=st.booleans(),
        faults=st.lists(st.sampled_from(["before", "after"]), max_size=2),
    )
    def repeat(
        self, back: int, text: str | None, faults: list[str], *, has_new_proof: bool,
        has_new_key: bool,
    ) -> None:  # fmt: skip
        """Post again: with the same key or a new one, the used proof or a new one."""
        if not self._last:
            return
        said, proof, made = self._last[-1 - back % len(self._last)]
        said = said._replace(text=text or said.text)
        if has_new_key:
            said = said._replace(key=f"{next(self._keys)}".rjust(16, "-"))
        is_expired = self._now - made >= KEEPS
        again = self._proof(said.network) if has_new_proof or is_expired else proof
        self._send(said, again, faults)

    @rule(minutes=st.sampled_from([1, 4, 9, 10, 30]))
    def wait(self, minutes: int) -> None:
        self._now += timedelta(minutes=minutes)

    def _request(self, network: str) -> SiteRequest:
        return SiteRequest(self._site, RULES, self._now, classifier_verdicts.Sender(network))

    def _proof(self, network: str) -> str:
        made = msgspec.to_builtins(admission.challenge(self._request(network)))
        return proof_solver.solved(made)

    def _send(self, said: Said, proof: str, faults: list[str]) -> None:
        self._last.append((said, proof, self._now))
        self._now += timedelta(seconds=1)  # Two requests never have the same time.
        self._commits.plan = list(faults)
        author = records.Author("Ann", id=said.author)
        sent = admission.Submission(
            said.thread, MISSING if said.is_lost else None, author, said.text, key=said.key,
            proof=proof,
        )  # fmt: skip
        try:
            posted = new_comment.post(sent, self._request(said.network))
            answer = "new" if posted.created else "repeated"
        except errors.CodedError as error:
            answer = error.code
        self._commits.plan = []
        expected = self._oracle.answer(said, proof, self._now)
        assert answer == expected, (said, answer, expected)


# A run of eight steps takes 0.1 seconds, and most mistakes need two.
Posting.TestCase.settings = settings(max_examples=40, stateful_step_count=12, deadline=None)
TestPosting = Posting.TestCase
