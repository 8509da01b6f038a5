"""After any history of posts, raw changes, compactions and deaths, one repair mends everything.

Two processes with warm caches read. Without a raw change since the last repair, a check finds
nothing and both processes show the ordered query's result, whatever else has happened. After a
repair, both are true again at once.

REPAIR_EXAMPLES sets the number of histories; the default takes a few seconds.
"""

import contextlib
import os
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    rule,
    run_state_machine_as_test,
)

from comments import errors
from comments.domain import records
from comments.posting import own_comment
from comments.reading.compaction import compactor, leftovers
from comments.reading.materialized import ranking, view_cache
from comments.store import reads
from comments.store.models import comment_rows, conversion
from comments.upkeep.integrity import recount, repair
from tests.support import datastores, prepared_stores
from tests.support.histories import counter_oracle
from tests.support.threads import (
    compaction,
    raw_changes,
    reader_processes,
    sample_threads,
    sample_votes,
)

pytestmark = [pytest.mark.slow, pytest.mark.embedded]

EXAMPLES = int(os.environ.get("REPAIR_EXAMPLES", "8"))
SCHEME = sample_threads.SETTINGS.scheme
NAME = records.ThreadName("demo", "page")
PLACES = st.integers(0, 30)
KINDS = [
    "text", "body", "status", "hash", "level", "score", "deletion", "insertion", "parent",
]  # fmt: skip


class Killed(BaseException):
    """An error that simulates the end of a process before a commit."""


class Machine(RuleBasedStateMachine):
    """A thread with writers, compactors, another client, and processes that die."""

    def __init__(self) -> None:
        super().__init__()
        self.stack = contextlib.ExitStack()
        # A process that dies here is not a real one, so a pessimistic engine would keep its locks.
        self.engine = self.stack.enter_context(prepared_stores.opened(None, "optimistic"))
        self.readers = [
            reader_processes.Reader(datastores.Embedded(self.engine), ahead=each)
            for each in (0.0, 600.0)
        ]
        self.client = reader_processes.Reader(datastores.Embedded(self.engine))
        self.site = self.client.do(prepared_stores.demo)
        self.step = self.voters = 0
        self.folded: tuple[compactor.CompactionResult, list[str]] | None = None
        self.is_raw = False
        for place in (0, 1, 0, 2, 1, 0, 3, 5):
            self._post(place, is_root=place == 0)
        self._vote(0, 1)
        for _ in range(2):  # The second directory does not list all rows as being cleared
            self.client.do(lambda: compaction.whole(NAME))
            self._vote(2, 1)
        self.client.do(lambda: compaction.whole(NAME))

    def teardown(self) -> None:
        self.stack.close()

    def _ids(self) -> list[str]:
        """Return the comments by age: ids are random, and histories must be repeatable."""
        where = (("thread", "=", comment_rows.thread_key_name(NAME)),)
        found = map(
            conversion.comment_from_message, reads.fetch(reads.Query("Comment", where=where))
        )
        return [row.id for row in sorted(found, key=lambda row: row.created)]

    def _chosen(self, place: int) -> str | None:
        ids = self._ids()
        return ids[place % len(ids)] if ids else None

    def _write(self, body: Callable[[str], object], place: int) -> None:
        """Run `body` for a comment. A damaged comment may refuse it."""

        def run() -> None:
            chosen = self._chosen(place)
            with contextlib.suppress(errors.FlatthreadError):
                if chosen is not None:
                    body(chosen)

        self.client.do(run)

    @rule(place=PLACES, verb=st.sampled_from(["post", "reply", "retract", "vote up", "vote down"]))
    def write(self, place: int, verb: str) -> None:
        if verb in {"post", "reply"}:
            self._post(place, is_root=verb == "post")
        elif verb == "retract":
            self._retract(place)
        else:
            self._vote(place, 1 if verb == "vote up" else -1)

    def _post(self, place: int, *, is_root: bool) -> None:
        self.step += 1
        text, now = f"c{self.step}", sample_threads.START + timedelta(minutes=self.step)

        def run() -> None:
            parent = None if is_root else self._chosen(place)
            with contextlib.suppress(errors.FlatthreadError):
                sample_threads.post(self.site, text, parent, now=now)

        self.client.do(run)

    def _retract(self, place: int) -> None:
        def run(chosen: str) -> None:
            author = sample_votes.comment(chosen).author.id
            now = sample_threads.START + timedelta(minutes=self.step)
            own_comment.retract(chosen, author_id=author, revision=None, now=now)

        if not self.is_raw:  # A copied row has the author of another comment
            self._write(run, place)

    def _vote(self, place: int, value: int) -> None:
        self.voters += 1

        def run(chosen: str) -> None:
            sample_votes.vote(sample_votes.comment(chosen), f"v{self.voters}", value)
            sample_votes.count_waiting()

        self._write(run, place)

    @rule(
        changes=st.lists(st.tuples(PLACES, PLACES, st.sampled_from(KINDS)), min_size=1, max_size=3),
        then=st.sampled_from(["nothing", "repair", "repair and compact"]),
    )
    def change_raw(self, changes: Sequence[tuple[int, int, str]], then: str) -> None:
        """Change rows without the service; often repair the thread before anything else happens."""
        for change in changes:
            self._change_raw(*change)
        if then != "nothing":
            self.repair(compacts=then == "repair and compact")

    def _change_raw(self, place: int, other: int, kind: str) -> None:
        self.step += 1

        def run() -> None:
            chosen, second = self._chosen(place), self._chosen(other)
            if chosen is None or second is None:
                return
            self.is_raw = True
            text = f"raw {self.step}"
            changes: dict[str, dict[str, Any]] = {
                "text": {"body": text, "html": f"<p>{text}</p>\n"},
                "body": {"body": text},
                "status": {"status": ["approved", "rejected", "hidden"][other % 3]},
                "hash": {"sort_hash": sample_votes.comment(second).sort_hash},
                "level": {"level": other},
                "score": {"score": other},
                "parent": {"parent": second},
            }
            if kind == "deletion":
                raw_changes.delete_comments(chosen)
            elif kind == "insertion":
                made = f"{self.step:0>26}".translate(str.maketrans("0123456789", "abcdefghij"))
                now = sample_threads.START + timedelta(minutes=self.step)
                raw_changes.insert_copy(chosen, made, shelved=False, unfolded=False, created=now)
            else:
                raw_changes.comment(chosen, **changes[kind])

        self.client.do(run)

    @rule(clears=st.booleans())
    def compact(self, *, clears: bool) -> None:
        """Compact; without clearing, processes use different directories for a while."""

        def run() -> None:
            folded = compactor.compact(SCHEME, NAME)
            self.folded = None if folded is None else (folded, leftovers.orphans(NAME))

        self.client.do(run)
        if clears:
            self.clear()

    @rule()
    def clear(self) -> None:
        """Clear the last compaction when no process can use an earlier directory any longer."""
        if self.folded is None:
            return
        folded, orphans = self.folded
        self.folded = None
        for reader in self.readers:
            reader.now += compactor.GRACE
        self.client.do(lambda: compactor.clear(folded, orphans))

    @rule(
        commit=st.integers(1, 6),
        work=st.sampled_from([lambda: repair.fix(SCHEME, NAME),
                              lambda: compaction.rebuild(SCHEME, NAME),
                              lambda: compactor.compact(SCHEME, NAME)]),
    )  # fmt: skip
    def die(self, commit: int, work: Callable[[], object]) -> None:
        """Start a repair, a rebuild or a compaction in a process that dies before a commit."""
        commits = 0

        def seen(method: str, _request: object) -> None:
            nonlocal commits
            commits += method.endswith("Commit")
            if commits == commit:
                raise Killed

        with contextlib.suppress(Killed):
            reader_processes.Reader(datastores.Embedded(self.engine), seen=seen).do(work)

    @rule(compacts=st.booleans())
    def repair(self, *, compacts: bool) -> None:
        """Repair; check the pages at once, and the counters after a recount."""

        def run() -> None:
            repair.fix(SCHEME, NAME)
            recount.thread(NAME, tell=lambda _each: None, fixes=True)
            counter_oracle.assert_counted()
            repair.fix(SCHEME, NAME)  # A recount of votes may change comments
            assert repair.find_problems(SCHEME, NAME) == []

        self.client.do(run)
        self.is_raw = False
        if compacts:
            for reader in self.readers:
                reader.assert_current(NAME)
            self.compact(clears=True)

    @invariant()
    def nothing_is_found_without_a_raw_change(self) -> None:
        if not self.is_raw:
            assert self.client.do(lambda: repair.find_problems(SCHEME, NAME)) == []

    @invariant()
    def readers_see_the_stored_comments_without_a_raw_change(self) -> None:
        for reader in self.readers:
            if self.is_raw:
                with contextlib.suppress(errors.FlatthreadError):
                    reader.shown(NAME)  # Keeps its caches warm
            else:
                reader.assert_current(NAME)


def test_one_repair_mends_everything_after_any_history(monkeypatch: pytest.MonkeyPatch) -> None:
    compaction.small_buckets(monkeypatch, 3)
    monkeypatch.setattr(ranking, "TOP_ROWS", 3)
    monkeypatch.setattr(view_cache, "MOST_UNCOMPACTED", 8)
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
