"""Compact a thread that grows at a given pace, on the product's schedule.

The processes that store the comments have the product's backlog and upkeep. They share a clock that
jumps from one due step to the next. A compaction is due after 64 changes, when the first change is
`backlog.FOLD_AFTER` old, one second after an edit, and at each periodic check of the store. Flags
are cleared after the grace period, so compactions overlap. Each edit comes 30 seconds to ten
minutes after its comment, and each new score within an hour.
"""

import contextlib
import random
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from benchmarks.threads import shapes
from comments.events import backlog
from comments.sites import site_settings
from comments.store import connection
from comments.upkeep import background_worker, scheduler
from datastore_emulator import inprocess, testing
from tests.support import programs
from tests.support.threads.growing_thread import NAME, SETTINGS, START, Replay

EVERY = 27.0  # Seconds between comments


class Spent(NamedTuple):
    """A thread's number of changes, its compactions' writes, and its number of compactions."""

    changes: int
    writes: int
    compactions: int


class _Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now

    def time(self) -> datetime:
        """The current time."""
        return START + timedelta(seconds=self.now)


class _Process:
    """A process that stores comments and compacts, with its worker's state for the thread."""

    def __init__(self, engine: inprocess.Engine, clock: _Clock, first: float) -> None:
        self.store = connection.Store(inprocess.Channel(engine), project="bench", deadline=60.0)
        self._engine = engine
        self._clock = clock
        self._next_look = first
        self._backlog = backlog.BACKLOG.put(self.store, backlog.Backlog(clock))
        self._backlog.open()
        self._upkeep = scheduler.Scheduler(clock=clock, now=clock.time)
        self.writes = self.compactions = 0

    @property
    def next_step(self) -> float:
        """Return the time of the next step: compacting, clearing flags or checking the store."""
        return min(self._backlog.next_due, self._upkeep.next_clearing, self._next_look)

    def step(self) -> None:
        """Take the due step as a worker does."""
        self._backlog.take_events()  # Compaction does not depend on notifications
        with self.store.context(), testing.meter(self._engine) as met:
            if self._next_look <= self._clock():
                self._next_look = self._clock() + background_worker.LOOK_EVERY
                for name in scheduler.find_due_work(self._clock.time()):
                    self._backlog.add(name, changes=0, within=0.0)
            done = self._upkeep.round(self._upkeep.due_names(self._backlog))
        self.writes += met.writes
        self.compactions += done.compacted


class _Event(NamedTuple):
    at: float
    place: int
    kind: str


def _events(at: Sequence[float], chance: random.Random, edits: float, votes: float) -> list[_Event]:
    """Return a thread's posts, edits and votes in order of time."""
    events = []
    for place, came in enumerate(at):
        events.append(_Event(came, place, "post"))
        if chance.random() < edits:
            events.append(_Event(came + chance.uniform(30, 600), place, "edit"))
        if chance.random() < votes:
            events.append(_Event(came + chance.uniform(10, 3_600), place, "vote"))
    return sorted(events)


def _until(moment: float, clock: _Clock, processes: Sequence[_Process]) -> None:
    """Let the processes take all steps that are due before a given time."""
    while True:
        first = min(processes, key=lambda process: process.next_step)
        if first.next_step > moment:
            break
        clock.now = max(clock.now, first.next_step)
        first.step()
    clock.now = moment


def replay(
    shape: shapes.Shape,
    at: Sequence[float],
    *,
    edits: float,
    votes: float,
    processes: int,
) -> Spent:
    """Let a thread grow at the given pace until nothing is due; return its changes and writes."""
    clock, chance = _Clock(), random.Random(1)
    with contextlib.ExitStack() as stack:
        engine = stack.enter_context(
            inprocess.open_engine(None, indexes=programs.ROOT / "index.yaml")
        )
        spread = background_worker.LOOK_EVERY / processes
        found = [_Process(engine, clock, spread * (n + 1)) for n in range(processes)]
        with found[0].store.context():
            site = site_settings.add(
                "bench", ["https://bench.example"], scheme=SETTINGS.scheme, now=START
            )
        thread = Replay(shape, engine, edits=edits, votes=votes)
        events = _events(at, chance, edits, votes)
        for event in events:
            _until(event.at, clock, found)
            with chance.choice(found).store.context():
                if event.kind == "post":
                    thread.post(site, event.place, shape[event.place], clock.time())
                elif event.kind == "edit":
                    thread.edit(event.place)
                else:
                    thread.vote(clock.time())
                    backlog.note_changes(NAME)
        _until(clock.now + 2 * backlog.FOLD_AFTER, clock, found)
        return Spent(
            len(events),
            sum(process.writes for process in found),
            sum(process.compactions for process in found),
        )
