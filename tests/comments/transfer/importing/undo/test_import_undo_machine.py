"""Undos are exact in random histories of imports, posts, votes, decisions and compactions.

Undos run step by step, are interrupted, and alternate with everything else. The oracle is naive: it
remembers what people wrote and which imports are in force. At any time, what people wrote is stored
unchanged, an undone import has left nothing but tombstones that other comments needed at its end,
and recounts, repairs and pages show no difference.
"""

import tempfile
from datetime import timedelta
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from comments import errors
from comments.domain import records
from comments.domain.ids import imported_ids
from comments.domain.records import Status, Verb
from comments.events import backlog
from comments.moderation import decisions
from comments.posting import own_comment
from comments.reading.compaction import compactor, leftovers
from comments.sites import site_settings
from comments.store import connection
from comments.transfer.checking import import_batches
from comments.transfer.importing import import_journal, import_undo
from comments.tree.bulk import bulk_removal
from datastore_emulator import inprocess
from tests.support import programs
from tests.support.histories import counter_oracle
from tests.support.threads import compaction, sample_exports, sample_threads, sample_votes
from tests.support.threads import undone_imports as undone
from tests.support.threads.undone_imports import NOW, comment

pytestmark = [pytest.mark.slow, pytest.mark.embedded]

INDEXES = programs.ROOT / "index.yaml"
OLDER = [
    comment("1"),
    comment("2", "1"),
    comment("3", "2"),
    comment("4", "2", status=Status.SPAM),
    comment("5", status=Status.RETRACTED),
    comment("6", "5", up=2),
    comment("7", page="tulips", pinned=True),
]
# A later export of the same system, with new replies to the comments of the first one.
NEWER = [*OLDER, comment("8", "3"), comment("9", "5"), comment("10", "7", page="tulips")]
FILES = {"older": OLDER, "newer": NEWER}
PAGES = ("garden.example/roses", "garden.example/tulips", "garden.example/other")
VERBS = (Verb.APPROVE, Verb.REJECT, Verb.SPAM, Verb.HIDE, Verb.PIN, Verb.RESTORE)


class Undos(RuleBasedStateMachine):
    """A state machine with one site, three pages and two exports."""

    def __init__(self) -> None:
        super().__init__()
        self._engine = inprocess.open_engine(None, indexes=INDEXES, history=0)
        store = connection.Store(inprocess.Channel(self._engine), project="test")
        backlog.BACKLOG.of(store)
        self._context = store.context()
        self._context.__enter__()
        self._clock = undone.Clock.current()
        self._small = [
            mock.patch.object(compactor, "BUCKET_ROWS", 3),
            mock.patch.object(compactor, "TAIL_ROWS", 1),
            mock.patch.object(import_batches, "BATCH", 3),
            mock.patch.object(bulk_removal, "AT_ONCE", 2),
        ]
        for each in self._small:
            each.start()
        self._own: dict[str, tuple[str, str | None]] = {}  # The texts and links of people.
        self._tombstones: set[str] = set()  # What undone imports have left.
        self._before: dict[str, records.Comment] = {}  # All rows at the previous check.
        self._folded: list[tuple[compactor.CompactionResult, list[str]]] = []
        self._number = 0
        folder = Path(tempfile.mkdtemp())
        self._files = {name: undone.saved(folder / name, each) for name, each in FILES.items()}

    @initialize()
    def add_site(self) -> None:
        self._site = site_settings.add(
            "garden", sample_exports.SITE.origins, scheme=undone.SCHEME, now=NOW
        )

    def _rows(self) -> dict[str, records.Comment]:
        return {row.id: row for row in sample_exports.rows()}

    @rule(name=st.sampled_from(sorted(FILES)))
    def bring(self, name: str) -> None:
        is_undoing = any(each.is_being_undone for each in import_journal.all_imports("garden"))
        try:
            undone.brought(self._files[name])
        except errors.ImportRefused:
            assert is_undoing

    @rule(data=st.data(), page=st.sampled_from(PAGES))
    def post(self, data: st.DataObject, page: str) -> None:
        rows = self._rows().values()
        shown = [row.id for row in rows if row.status is Status.APPROVED and row.thread == page]
        self._number += 1
        above = data.draw(st.sampled_from([None, *sorted(shown)]))
        # The key makes the id of the comment the same in each run.
        key = f"the {self._number}th comment"
        author = sample_threads.author("bob")
        row = sample_threads.post(
            self._site, key, above, thread=page, now=NOW, author=author, key=key
        )
        self._own[row.id] = (row.body, above)

    @precondition(lambda self: self._own)
    @rule(data=st.data(), retracts=st.booleans())
    def change(self, data: st.DataObject, *, retracts: bool) -> None:
        one = data.draw(st.sampled_from(sorted(self._own)))
        try:
            if retracts:
                own_comment.retract(one, author_id="g:bob", revision=None, now=NOW)
                self._own[one] = ("", self._own[one][1])
            else:
                text = f"{self._own[one][0]}!"
                own_comment.edit(
                    one, author_id="g:bob", body=text, revision=None,
                    settings=sample_threads.SETTINGS, now=NOW,
                )  # fmt: skip
                self._own[one] = (text, self._own[one][1])
        except errors.FlatthreadError:
            row = self._rows()[one]
            assert row.status is not Status.APPROVED

    @rule(data=st.data(), verb=st.sampled_from(VERBS))
    def judge(self, data: st.DataObject, verb: Verb) -> None:
        rows = sorted(self._rows())
        if rows:
            one = data.draw(st.sampled_from(rows))
            decisions.decide_many("garden", [one], verb, sample_threads.ADA, now=NOW)

    @rule(data=st.data(), voter=st.sampled_from(["eve", "kim"]), value=st.sampled_from([1, -1, 0]))
    def vote(self, data: st.DataObject, voter: str, value: int) -> None:
        shown = [row for row in self._rows().values() if row.status is Status.APPROVED]
        if shown:
            row = data.draw(st.sampled_from(sorted(shown, key=lambda row: row.id)))
            sample_votes.vote(row, voter, value, now=NOW)

    @rule()
    def count(self) -> None:
        sample_votes.count_waiting(NOW + timedelta(days=1))

    @rule()
    def deliver(self) -> None:
        undone.deliver()

    @rule(data=st.data())
    def fold(self, data: st.DataObject) -> None:
        names = sorted(undone.threads(), key=lambda name: name.id)
        if names:
            name = data.draw(st.sampled_from(names))
            folded = compactor.compact(undone.SCHEME, name)
            if folded is not None:
                self._folded.append((folded, leftovers.orphans(name)))

    @precondition(lambda self: self._folded)
    @rule()
    def clear(self) -> None:
        self._clock.now += compactor.GRACE
        for folded, orphans in self._folded:
            compactor.clear(folded, orphans)
        self._folded = []

    @rule(data=st.data(), steps=st.integers(1, 4))
    def begin(self, data: st.DataObject, steps: int) -> None:
        found = [
            each.id for each in import_journal.recent_imports("garden") if each.undoing is None
        ]
        if found:
            one = data.draw(st.sampled_from(sorted(found)))
            undone.begin(import_journal.get("garden", one))
            import_undo.go_on("garden", one, now=NOW, steps=steps)

    @rule(steps=st.integers(1, 8))
    def go_on(self, steps: int) -> None:
        import_undo.finish(now=NOW, steps=steps)

    @invariant()
    def nothing_differs(self) -> None:
        if self._number % 2:
            compaction.forget()
        undone.assert_sound()

    @invariant()
    def people_keep_what_they_wrote(self) -> None:
        rows = self._rows()
        mine = {key: (rows[key].body, rows[key].reply_to) for key in self._own if key in rows}
        assert mine == self._own

    @invariant()
    def only_imports_in_force_are_stored(self) -> None:
        """Check the comments of undone imports, and that all others are stored.

        A later undo leaves the tombstones of an earlier one, even if it removes what needs them.
        """
        added, leaving = set[str](), set[str]()
        for each in import_journal.all_imports("garden"):
            for _, batch in import_journal.batches("garden", each.id):
                (added if each.undoing is None else leaving).update(batch.ids)
        rows = self._rows()
        assert added <= rows.keys()
        imported = {_id(each.id) for each in NEWER}
        left = imported.intersection(rows) - added - leaving
        assert all(rows[key].body == rows[key].author.name == "" for key in left)
        # The last step may have ended one undo, and then another that removed what needed the rest.
        needed = _needed(self._before, left) | _needed(rows, left)
        assert left <= needed | self._tombstones
        self._tombstones, self._before = left, rows

    def teardown(self) -> None:
        try:
            for each in import_journal.recent_imports("garden"):
                if each.undone is None:
                    undone.undo(each)
                    self.only_imports_in_force_are_stored()
            undone.settle()
            self.nothing_differs()
            self.people_keep_what_they_wrote()
            counter_oracle.assert_all_counted()
            stored = {row.thread for row in self._rows().values()}
            assert {name.id for name in undone.threads()} == stored
            assert undone.batches() == 0
        finally:
            for patch in self._small:
                patch.stop()
            self._context.__exit__(None, None, None)
            self._engine.close()


def _id(source: str) -> str:
    return imported_ids.comment_id("garden", "disqus", source)


def _needed(rows: dict[str, records.Comment], left: set[str]) -> set[str]:
    """Return the comments that others need, by following all links (the oracle)."""
    found: set[str] = set()
    for row in rows.values():
        if row.id in left:
            continue
        waiting = [row]
        while waiting:
            each = waiting.pop()
            for link in (each.parent, each.reply_to):
                if link is not None and link not in found:
                    found.add(link)
                    waiting.append(rows[link])
    return found & left


TestUndos = Undos.TestCase
TestUndos.settings = settings(max_examples=10, stateful_step_count=30)
