"""Moves and their undos give the result of a naive model, in which each thread has a set of ids."""

import contextlib
import dataclasses

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from comments.domain import records
from comments.events import backlog
from comments.sites import site_settings
from comments.store import connection
from comments.threads import thread_aliases, thread_info
from comments.transfer.moves import move_plan, thread_moves
from comments.tree.counters import totals
from datastore_emulator import inprocess
from tests.support import dying_programs
from tests.support.threads import sample_threads

NOW = sample_threads.START
IDS = [f"page-{number}" for number in range(6)]
ids = st.sampled_from(IDS)


@dataclasses.dataclass
class Move:
    """A move of the model: for each thread, its id before and after, and whether the id is new."""

    id: str
    changes: list[tuple[str, str, str, bool]]


class Moves(RuleBasedStateMachine):
    """A site whose threads get comments, move in lists, and move back.

    The model maps each id to the stored thread to which the id leads, and each thread to the id
    that it shows and to its comments.
    """

    def __init__(self) -> None:
        super().__init__()
        self._context = contextlib.ExitStack()
        engine = inprocess.open_engine(None, indexes=dying_programs.INDEXES, history=0)
        self._context.callback(engine.close)
        store = connection.Store(inprocess.Channel(engine), project="test")
        backlog.BACKLOG.of(store)
        self._context.enter_context(store.context())
        self._leads: dict[str, str] = {}
        self._shows: dict[str, str] = {}
        self._comments: dict[str, list[str]] = {}
        self._moves: list[Move] = []

    @initialize()
    def add_site(self) -> None:
        site_settings.add("demo", [], scheme=sample_threads.SETTINGS.scheme, now=NOW)
        self._stale = site_settings.get("demo")

    @rule(thread=ids, is_stale=st.booleans())
    def post(self, thread: str, is_stale: bool) -> None:
        """Post to an id, also in a process that has not heard of the moves."""
        site = self._stale if is_stale else site_settings.get("demo")
        body = f"{sum(map(len, self._comments.values()))}"
        sample_threads.post(site, body, thread=thread_aliases.stored_id(site, thread))
        stored = self._leads.setdefault(thread, thread)
        self._shows.setdefault(stored, stored)
        self._comments.setdefault(stored, []).append(body)

    @rule(pairs=st.lists(st.tuples(ids, ids), min_size=1, max_size=4))
    def move(self, pairs: list[tuple[str, str]]) -> None:
        site = site_settings.get("demo")
        targets = [self._leads.get(old, old) for old, _ in pairs]
        if len(set(targets)) < len(targets):
            return
        plan = move_plan.of_list(site, pairs)
        changes = []
        taken: set[str] = set()
        for old, new in pairs:
            stored = self._leads.get(old)
            if stored is None or self._shows[stored] == new or new in taken:
                continue
            if self._leads.get(new, stored) != stored:
                continue
            taken.add(new)
            changes.append((stored, self._shows[stored], new, new not in self._leads))
        assert [(move.stored, move.old, move.new) for move in plan.moves] == [
            change[:3] for change in changes
        ]
        if changes:
            begun = thread_moves.begin(site, plan, "a test", sample_threads.ADA, now=NOW)
            assert thread_moves.run_to_end(begun).moved == len(changes)
            self._moves.append(Move(begun.id, changes))
            for stored, _, new, _ in changes:
                self._leads[new] = stored
                self._shows[stored] = new

    @rule(data=st.data())
    def undo(self, data: st.DataObject) -> None:
        if not self._moves:
            return
        move = data.draw(st.sampled_from(self._moves))
        self._moves.remove(move)
        begun = thread_moves.undo("demo", move.id, sample_threads.ADA, now=NOW)
        restored = 0
        for stored, old, new, is_new in move.changes:
            if self._shows[stored] == new:
                restored += 1
                self._shows[stored] = old
                if is_new:
                    del self._leads[new]
        assert thread_moves.run_to_end(begun).restored == restored

    @invariant()
    def agrees(self) -> None:
        site = site_settings.get("demo")
        stored = thread_aliases.stored_ids(site, IDS)
        assert stored == [self._leads.get(name, name) for name in IDS]
        counts = totals.listed_counts("demo", stored)
        assert counts == [len(self._comments.get(name, ())) for name in stored]
        for name, comments in self._comments.items():
            info = thread_info.fresh(records.ThreadName("demo", name))
            assert info is not None
            assert info.shown_id == self._shows[name]
            assert sample_threads.listed(site, name) == comments

    def teardown(self) -> None:
        self._context.close()


TestMoves = Moves.TestCase
TestMoves.settings = settings(max_examples=10, stateful_step_count=20)
