"""A merged view always equals the ordered query, however compactions interleave.

The state machine has a store and two processes with separate caches and clocks. Compactors stop at
any step, and writers commit minutes or hours late. After every step, each awake process reads the
whole thread and a page in some order and compares both with the ordered query.
"""

import contextlib
import itertools
import os
import time
from datetime import datetime, timedelta

import pytest
from hypothesis import HealthCheck, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from comments import errors
from comments.domain import records
from comments.moderation import decisions
from comments.posting import cast_vote, own_comment
from comments.reading.compaction import compactor, leftovers
from comments.reading.materialized import ranking
from comments.sites import site_settings
from comments.store import ownership, reads, transactions
from comments.store.models import comment_rows
from comments.tree.lists import ordered_query
from comments.upkeep.integrity import repair
from datastore_emulator import inprocess
from tests.conftest import ROOT
from tests.support import datastores
from tests.support.threads import compaction, compaction_actors, sample_threads, sample_votes
from tests.support.threads.compaction_actors import NAME, SCHEME

MODERATOR = records.Actor("cli", "the command line")


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the size limits so small that even a short history creates and splits buckets."""
    compaction.small_buckets(monkeypatch, 4, 3)
    monkeypatch.setattr(compactor, "MOST_CLEARING", 2)
    monkeypatch.setattr(ranking, "TOP_ROWS", 4)


class Machine(RuleBasedStateMachine):
    """A state machine in which writers, compactors and readers act in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.stack = contextlib.ExitStack()
        self.engine = self.stack.enter_context(
            inprocess.open_engine(None, indexes=ROOT / "index.yaml")
        )
        self.processes = [
            compaction_actors.Process(datastores.Embedded(self.engine), ahead)
            for ahead in (0.0, 600.0)
        ]
        self.compactions: list[compaction_actors.Compaction] = []
        self.late: list[compaction_actors.Late] = []
        self.comments: list[str] = []
        self.shown: dict[str, object] = {}
        self.dozing: set[int] = set()
        self.step = 0
        self.newest = sample_threads.START
        with self.processes[0].store.context():
            self.site = site_settings.add(
                "demo", ["https://a.example"], scheme=SCHEME, now=sample_threads.START
            )
            # Compact once to give readers a directory from the start.
            self._post(None)
            assert compactor.compact(SCHEME, NAME) is not None

    def teardown(self) -> None:
        for late in self.late:
            late.drop()
        self.stack.close()

    def _post(self, parent: str | None) -> None:
        with contextlib.suppress(errors.Conflict, errors.NotFound):
            posted = sample_threads.post(self.site, f"c{len(self.comments)}", parent)
            self.comments.append(posted.id)

    def _owner(self, comment_id: str) -> str:
        return str(reads.get(comment_rows.comment_key(comment_id)).author_id)

    def _pick(self, pick: int) -> str:
        return self.comments[pick % len(self.comments)]

    @rule(pick=st.integers(0, 99), is_root=st.booleans(), by=st.integers(0, 1))
    def post(self, pick: int, *, is_root: bool, by: int) -> None:
        with self.processes[by].store.context():
            self._post(None if is_root else self._pick(pick))

    @rule(pick=st.integers(0, 99), by=st.integers(0, 1))
    def retract(self, pick: int, by: int) -> None:
        comment_id = self._pick(pick)
        with self.processes[by].store.context():
            row = reads.get(comment_rows.comment_key(comment_id))
            if row.listed and row.status != records.Status.RETRACTED:
                self.newest = max(self.newest, self._now)
            own_comment.retract(
                comment_id, author_id=row.author_id or "", revision=None, now=self._now
            )

    @rule(pick=st.integers(0, 99), verb=st.sampled_from(records.Verb), by=st.integers(0, 1))
    def judge(self, pick: int, verb: records.Verb, by: int) -> None:
        comment_id = self._pick(pick)
        with self.processes[by].store.context():
            before = reads.get(comment_rows.comment_key(comment_id))
            with contextlib.suppress(errors.Conflict):
                row = decisions.decide("demo", comment_id, verb, MODERATOR, now=self._now)
                if row.revision != before.revision and (row.listed or before.listed):
                    self.newest = max(self.newest, self._now)

    @property
    def _now(self) -> datetime:
        """The processes' clocks differ, so later steps may have earlier times."""
        return sample_threads.START + timedelta(seconds=self.step * 97 % 1200)

    @rule(pick=st.integers(0, 99), by=st.integers(0, 1), text=st.integers(0, 9))
    def edit(self, pick: int, by: int, text: int) -> None:
        comment_id = self._pick(pick)
        with self.processes[by].store.context():
            before = reads.get(comment_rows.comment_key(comment_id))
            refusals: list[type[Exception]] = [errors.NotFound, errors.Forbidden]
            if before.status in {records.Status.REJECTED, records.Status.HIDDEN}:
                refusals.append(errors.Conflict)
            with contextlib.suppress(*refusals):
                own_comment.edit(
                    comment_id,
                    author_id=before.author_id or "g:nobody",
                    body=f"edited {text}",
                    revision=None,
                    settings=sample_threads.SETTINGS,
                    now=self._now,
                )
            # Note the time now: no process reads while both doze, and the comment may be unlisted
            # by the next read.
            row = reads.get(comment_rows.comment_key(comment_id))
            if row.revision != before.revision and row.listed:
                self.newest = max(self.newest, self._now)

    @precondition(lambda self: len(self.late) < 3)
    @rule(pick=st.integers(0, 99), verb=st.sampled_from(("post", "answer", "retract", "reject")))
    def write_and_commit_later(self, pick: int, verb: str) -> None:
        comment_id = self._pick(pick)
        number = len(self.comments) + 1000 * (1 + len(self.late))

        def post() -> None:
            parent = None if verb == "post" else comment_id
            posted = sample_threads.post(
                self.site, f"late {number}", parent, now=sample_threads.START
            )
            self.comments.append(posted.id)

        def retract() -> None:
            owner = self._owner(comment_id)
            own_comment.retract(
                comment_id, author_id=owner, revision=None, now=sample_threads.START
            )

        def reject() -> None:
            reject = records.Verb.REJECT
            decisions.decide("demo", comment_id, reject, MODERATOR, now=sample_threads.START)

        late = {"retract": retract, "reject": reject}.get(verb, post)
        self.late.append(compaction_actors.Late(datastores.Embedded(self.engine), late))

    @precondition(lambda self: self.late)
    @rule(pick=st.integers(0, 9))
    def commit_late(self, pick: int) -> None:
        self.late.pop(pick % len(self.late)).commit()

    @rule(by=st.integers(0, 1))
    def start_folding(self, by: int) -> None:
        with self.processes[by].store.context():
            prepared = compactor.prepare(SCHEME, NAME)
        if prepared is not None:
            self.compactions.append(compaction_actors.Compaction(self.processes[by], prepared))

    @precondition(lambda self: any(each.folded is None for each in self.compactions))
    @rule(pick=st.integers(0, 19))
    def switch(self, pick: int) -> None:
        if pick >= 10:
            return  # Compactions overlap only if preparing and switching are far apart
        waiting = [each for each in self.compactions if each.folded is None]
        compaction_run = waiting[pick % len(waiting)]
        with compaction_run.process.store.context():
            compaction_run.folded = compactor.switch(compaction_run.prepared)
        compaction_run.may_clear = compaction_run.process.now + compactor.GRACE
        if compaction_run.folded is None:
            self.compactions.remove(compaction_run)

    @precondition(lambda self: any(each.folded is not None for each in self.compactions))
    @rule(pick=st.integers(0, 9))
    def clear_when_the_grace_is_over(self, pick: int) -> None:
        waiting = [each for each in self.compactions if each.folded is not None]
        compaction_run = waiting[pick % len(waiting)]
        assert compaction_run.folded is not None
        self._wait_until(compaction_run)
        with compaction_run.process.store.context():
            compactor.clear(compaction_run.folded)
        self.compactions.remove(compaction_run)

    def _wait_until(self, compaction_run: compaction_actors.Compaction) -> None:
        self.pass_time(max(0.0, compaction_run.may_clear - compaction_run.process.now))

    @rule(pick=st.integers(0, 9))
    def stop_for_good(self, pick: int) -> None:
        if self.compactions:
            del self.compactions[pick % len(self.compactions)]

    @rule(by=st.integers(0, 1))
    def sweep(self, by: int) -> None:
        with self.processes[by].store.context():
            found = leftovers.orphans(NAME)
            self.pass_time(compactor.GRACE)
            leftovers.delete_orphans(NAME, found)

    @rule(seconds=st.sampled_from((1.0, 20.0, 59.0, 61.0, 20_000.0)))
    def pass_time(self, seconds: float) -> None:
        for process in self.processes:
            process.now += seconds

    @rule(pick=st.integers(0, 99), by=st.integers(0, 1), value=st.sampled_from((-1, 0, 1)))
    def vote(self, pick: int, by: int, value: int) -> None:
        """Vote and count immediately; votes on hidden comments are refused."""
        comment_id, refused = self._pick(pick), (errors.NotFound, errors.Forbidden, errors.Conflict)
        with self.processes[by].store.context(), contextlib.suppress(*refused):
            sample_votes.vote(
                sample_votes.comment(comment_id), f"voter {by}", value, now=sample_threads.START
            )
            cast_vote.count(comment_id, now=sample_threads.START)

    @rule(pick=st.integers(0, 99), status=st.sampled_from(records.Status), size=st.integers(1, 4))
    def import_a_chain(self, pick: int, status: records.Status, size: int) -> None:
        """Import a comment of any status below any comment, with approved replies below it."""
        reply_to = self._pick(pick) if pick % 3 else None
        nodes = []
        for number in range(size):
            comment_id = comment_rows.comment_id(f"{len(self.comments) + number:016d}".encode())
            nodes.append(
                records.ImportedComment(
                    id=comment_id,
                    reply_to=reply_to,
                    author=records.Author("Ann", id=f"g:import {comment_id}"),
                    body="imported",
                    html="<p>imported</p>",
                    renderer="test",
                    status=records.Status.APPROVED if number else status,
                    created=sample_threads.START,
                    source="test",
                )
            )
            reply_to = comment_id
        with self.processes[0].store.context():
            sample_threads.store_imported(NAME, *nodes)
        self.comments += [node.id for node in nodes]

    @rule(pick=st.integers(0, 99), field=st.sampled_from(("slug", "level")))
    def damage_and_repair(self, pick: int, field: str) -> None:
        with self.processes[0].store.context():
            self._damage(self._pick(pick), field, {"slug": "damaged", "level": 99}[field])
            assert repair.fix(SCHEME, NAME)

    @rule(pick=st.integers(0, 99))
    def damage_and_repair_a_place(self, pick: int) -> None:
        """Remove a comment's parent; the repair makes it a root and rehashes its descendants."""
        with self.processes[0].store.context():
            self._damage(self._pick(pick), "parent", None)
            repair.fix(SCHEME, NAME)

    def _damage(self, comment_id: str, field: str, value: object) -> None:
        def body() -> None:
            row = reads.get(comment_rows.comment_key(comment_id))
            setattr(row, field, value)
            transactions.apply(ownership.Writes("tree", put=(row,)))

        transactions.transaction(body)

    @rule(by=st.integers(0, 1))
    def doze_or_wake(self, by: int) -> None:
        """Toggle whether a process reads after each step or only after it wakes."""
        self.dozing ^= {by}

    @invariant()
    def every_process_reads_the_floor(self) -> None:
        self.step += 1
        for by, process in enumerate(self.processes):
            if by in self.dozing:
                continue
            with process.store.context():
                rows = ordered_query.thread(NAME)
                seen = (moment for row in rows for moment in (row.created, row.edited))
                self.newest = records.newest([self.newest, *seen]) or self.newest
                assert ordered_query.last_change(NAME) == self.newest
                compaction_actors.assert_view(rows, self.shown)  # type: ignore[arg-type]
                compaction_actors.assert_page(rows, self.step)  # type: ignore[arg-type]


# For the long run, set FOLDING_SECONDS=600 and pass -s to pytest.
@pytest.mark.embedded
@pytest.mark.slow
def test_views_equal_the_ordered_query_after_any_history() -> None:
    seconds = float(os.environ.get("FOLDING_SECONDS", "0"))
    end = time.monotonic() + seconds
    for number in itertools.count(1):
        _run(number, examples=200 if seconds else 8)
        if time.monotonic() >= end:
            break
        print(f"seed {number}: {number * 200} examples", flush=True)  # noqa: T201 - the long run prints


def _run(number: int, *, examples: int) -> None:
    run = settings(
        max_examples=examples,
        stateful_step_count=50,
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    run_state_machine_as_test(seed(number)(Machine), settings=run)
