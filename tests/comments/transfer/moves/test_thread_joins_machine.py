"""Moves, merges, splits and their undos give the result of a naive model of the trees."""

import contextlib
import dataclasses
from collections.abc import Callable
from datetime import timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from comments import errors
from comments.domain import records
from comments.domain.ids import sorthash
from comments.events import backlog
from comments.sites import site_settings
from comments.store import connection, reads
from comments.threads import thread_aliases, thread_info
from comments.transfer.moves import join_plan, move_journal, move_plan, thread_joins, thread_moves
from comments.tree.counters import totals
from comments.tree.lists import ordered_query, slugs
from comments.upkeep.integrity import recount, repair
from datastore_emulator import inprocess
from tests.support import dying_programs
from tests.support.histories import counter_oracle
from tests.support.threads import sample_threads, sample_votes

NOW = sample_threads.START
IDS = [f"page-{number}" for number in range(4)]
ids = st.sampled_from(IDS)
LEVELS = 3


@dataclasses.dataclass
class Said:
    """A comment of the model: its stored thread, the comment that it answers, and its minute."""

    thread: str
    answers: str | None
    minute: int


@dataclasses.dataclass
class Done:
    """An operation of the model, with what its undo must know."""

    id: str
    kind: str
    source: str
    target: str
    moved: set[str] = dataclasses.field(default_factory=set)
    led: set[str] = dataclasses.field(default_factory=set)
    answers: str | None = None
    is_new: bool = False


class Joins(RuleBasedStateMachine):
    """A site whose threads get comments, move, merge, split, and move back."""

    def __init__(self) -> None:
        super().__init__()
        self._context = contextlib.ExitStack()
        engine = inprocess.open_engine(None, indexes=dying_programs.INDEXES, history=0)
        self._context.callback(engine.close)
        store = connection.Store(inprocess.Channel(engine), project="test")
        backlog.BACKLOG.of(store)
        self._context.enter_context(store.context())
        self._said: dict[str, Said] = {}
        self._ids: dict[str, str] = {}  # Ids of comments by their texts
        self._leads: dict[str, str] = {}
        self._shows: dict[str, str] = {}
        self._done: list[Done] = []
        self._seen: dict[tuple[str, str], str] = {}  # Texts by the ids of pages and slugs

    @initialize()
    def add_site(self) -> None:
        site_settings.add("demo", [], scheme=sorthash.Scheme(levels=LEVELS), now=NOW)
        self._stale = site_settings.get("demo")

    # --- The model --------------------

    def _below(self, roots: set[str]) -> set[str]:
        reached = set(roots)
        for text, said in self._said.items():  # In the order of times
            if said.answers in reached:
                reached.add(text)
        return reached

    def _tree(self, thread: str) -> list[tuple[int, str]]:
        """Return the levels and texts of a thread's comments in reading order."""
        here = [text for text, said in self._said.items() if said.thread == thread]
        places: dict[str, tuple[str | None, int]] = {}
        for text in here:
            above = self._said[text].answers
            if above is None:
                places[text] = (None, 0)
            elif places[above][1] == LEVELS - 1:
                places[text] = places[above]
            else:
                places[text] = (above, places[above][1] + 1)
        order: list[tuple[int, str]] = []

        def walk(parent: str | None) -> None:
            for text in here:
                if places[text][0] == parent:
                    order.append((places[text][1], text))
                    walk(text)

        walk(None)
        return order

    def _move_all(self, texts: set[str], target: str) -> None:
        for text in texts:
            self._said[text].thread = target

    # --- Operations --------------------

    @rule(thread=ids, is_stale=st.booleans(), data=st.data())
    def post(self, thread: str, is_stale: bool, data: st.DataObject) -> None:
        """Post or reply at an id, also in a process that has not heard of the moves."""
        site = self._stale if is_stale else site_settings.get("demo")
        stored = self._leads.get(thread, thread)
        here = [text for text, said in self._said.items() if said.thread == stored]
        above = data.draw(st.sampled_from([None, *here]))
        text = f"c{len(self._said)}"
        minute = len(self._said)
        posted = sample_threads.post(
            site, text, None if above is None else self._ids[above],
            now=NOW + timedelta(minutes=minute),
            thread=thread_aliases.stored_id(site, thread),
        )  # fmt: skip
        self._leads.setdefault(thread, thread)
        self._shows.setdefault(stored, stored)
        self._said[text], self._ids[text] = Said(stored, above, minute), posted.id

    @rule(data=st.data(), number=st.integers(0, 2))
    def vote(self, data: st.DataObject, number: int) -> None:
        if self._said:
            text = data.draw(st.sampled_from(sorted(self._said)))
            comment = sample_votes.comment(self._ids[text])
            sample_votes.vote(comment, f"voter{number}")

    @rule(old=ids, new=ids)
    def move(self, old: str, new: str) -> None:
        site = site_settings.get("demo")
        stored = self._leads.get(old)
        if stored is None or self._shows[stored] == new or self._leads.get(new, stored) != stored:
            return
        plan = move_plan.of_list(site, [(old, new)])
        begun = thread_moves.begin(site, plan, "a test", sample_threads.ADA, now=NOW)
        assert thread_moves.run_to_end(begun).moved == 1
        made = {new} - self._leads.keys()
        self._done.append(
            Done(begun.id, "move", self._shows[stored], new, led=made, moved={stored})
        )
        self._leads[new], self._shows[stored] = stored, new

    @rule(source=ids, into=ids)
    def merge(self, source: str, into: str) -> None:
        site = site_settings.get("demo")
        old, new = (self._leads.get(name, name) for name in (source, into))
        moved = {text for text, said in self._said.items() if said.thread == old}
        if old == new or old not in self._shows or new not in self._shows or not moved:
            _refused(lambda: join_plan.of_merge(site, source, into))
            return
        plan = join_plan.of_merge(site, source, into)
        begun = thread_moves.run_to_end(thread_joins.begin(site, plan, sample_threads.ADA, now=NOW))
        assert begun.state is move_journal.MoveState.DONE
        assert plan.comments == len(moved)
        led = {name for name, stored in self._leads.items() if stored == old}
        self._done.append(Done(begun.id, "merge", old, new, moved, led))
        self._move_all(moved, new)
        self._leads.update(dict.fromkeys(led, new))
        self._done[-1].answers = self._shows.pop(old)

    @rule(data=st.data(), page=ids)
    def split(self, data: st.DataObject, page: str) -> None:
        if not self._said:
            return
        site = site_settings.get("demo")
        text = data.draw(st.sampled_from(sorted(self._said)))
        old, new = self._said[text].thread, self._leads.get(page, page)
        moved = self._below({text})
        rest = {each for each, said in self._said.items() if said.thread == old} - moved
        if old == new or not rest:
            _refused(lambda: join_plan.of_split(site, self._ids[text], page))
            return
        plan = join_plan.of_split(site, self._ids[text], page)
        begun = thread_joins.begin(site, plan, sample_threads.ADA, now=NOW)
        is_new = new not in self._shows
        assert (plan.comments, plan.is_new) == (len(moved), is_new)
        self._done.append(
            Done(begun.id, "split", old, new, {text}, set(), self._said[text].answers, is_new)
        )
        self._said[text].answers = None
        self._leads.setdefault(page, new)
        self._shows.setdefault(new, new)
        self._move_all(moved, new)

    @rule(data=st.data())
    def undo(self, data: st.DataObject) -> None:
        if not self._done:
            return
        done = data.draw(st.sampled_from(self._done))
        run = {"move": self._undo_move, "merge": self._undo_merge, "split": self._undo_split}
        is_possible = run[done.kind](done)
        if not is_possible:
            _refused(lambda: thread_moves.undo("demo", done.id, sample_threads.ADA, now=NOW))
            return
        self._done.remove(done)
        begun = thread_moves.undo("demo", done.id, sample_threads.ADA, now=NOW)
        assert thread_moves.run_to_end(begun).state is move_journal.MoveState.UNDONE

    def _undo_move(self, done: Done) -> bool:
        (stored,) = done.moved
        if self._shows.get(stored) == done.target:
            self._shows[stored] = done.source
            for name in done.led:
                del self._leads[name]
                self._forget(name)
        return True

    def _undo_merge(self, done: Done) -> bool:
        is_led = self._leads.get(done.source) == done.target
        if done.target not in self._shows or done.source in self._shows or not is_led:
            return False
        if self._shows[done.target] in done.led:
            return False
        back = self._below(done.moved)
        self._move_all({t for t in back if self._said[t].thread == done.target}, done.source)
        for name in done.led:
            if self._leads.get(name) == done.target:
                self._leads[name] = done.source
                self._forget(name, back)
        self._shows[done.source] = done.answers or done.source
        return True

    def _undo_split(self, done: Done) -> bool:
        if done.target not in self._shows or done.source not in self._shows:
            return False
        (text,) = done.moved
        back = {t for t in self._below(done.moved) if self._said[t].thread == done.target}
        self._move_all(back, done.source)
        if text in back and done.answers and self._said[done.answers].thread == done.source:
            self._said[text].answers = done.answers
        if done.is_new and not any(said.thread == done.target for said in self._said.values()):
            del self._shows[done.target]
            for name in [name for name, to in self._leads.items() if to == done.target]:
                del self._leads[name]
                self._forget(name)
        return True

    def _forget(self, page: str, kept: frozenset[str] | set[str] = frozenset()) -> None:
        """Expect no longer that links with a page's id lead to comments, except to `kept`."""
        self._seen = {
            key: text for key, text in self._seen.items() if key[0] != page or text in kept
        }

    # --- Laws --------------------

    @invariant()
    def agrees(self) -> None:
        site = site_settings.get("demo")
        assert thread_aliases.stored_ids(site, IDS) == [self._leads.get(name, name) for name in IDS]
        counts = totals.listed_counts("demo", list(self._shows))
        for stored, count in zip(self._shows, counts, strict=True):
            name = records.ThreadName("demo", stored)
            rows = ordered_query.thread(name)
            assert [(row.level, row.body) for row in rows] == self._tree(stored)
            assert count == len(rows)
            info = thread_info.fresh(name)
            assert info is not None
            assert info.shown_id == self._shows[stored]
            assert repair.find_problems(site.scheme, name) == []
        stored_threads = {
            message.key.path[-1].name for message in reads.fetch(reads.Query("Thread"))
        }
        assert stored_threads == {f"demo/{stored}" for stored in self._shows}
        counter_oracle.assert_counted()

    @invariant()
    def slugs_lead_to_the_comments_that_had_them(self) -> None:
        site = site_settings.get("demo")
        for page, stored in self._leads.items():
            for row in ordered_query.thread(records.ThreadName("demo", stored)):
                assert self._seen.setdefault((page, row.slug), row.body) == row.body
        for (page, slug), text in self._seen.items():
            stored = self._leads[page]
            given = records.ThreadName("demo", page)
            address = slug if stored == page else slugs.address_from(given, slug)
            found = slugs.find(
                site.scheme, records.ThreadName("demo", stored), address, field="slug"
            )
            assert (page, slug, found.body) == (page, slug, text)

    def teardown(self) -> None:
        sample_votes.count_all()
        counter_oracle.assert_all_counted()
        told: list[recount.Difference] = []
        assert recount.site("demo", tell=told.append, fixes=False) == 0, told
        self._context.close()


def _refused(call: Callable[[], object]) -> None:
    with contextlib.suppress(errors.MoveRefused):
        call()
        raise AssertionError("not refused")


TestJoins = Joins.TestCase
TestJoins.settings = settings(max_examples=10, stateful_step_count=20)
