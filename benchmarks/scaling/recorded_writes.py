"""Record every key that the product writes: entities, and the entries of every index.

`recorded` runs the product on an engine in memory: its HTTP API posts, replies, edits and votes in
many threads, its background work delivers events, counts votes, and compacts threads. An
interceptor sees each commit, and `Recorder` derives the index entries that a Datastore writes for
it: entries of new values, and entries of old values that are removed. The engine's meter counts the
billed operations of the same run, so the costs in docs/scaling.md have the same source.
"""

import collections
import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from benchmarks.serving import gunicorn_process
from benchmarks.threads import loading, shapes
from comments import app as apps
from comments import config
from comments.domain import records
from comments.events import dispatcher
from comments.jobs import wiring
from comments.posting import cast_vote
from comments.reading.compaction import compactor
from comments.sites import site_settings
from comments.store import connection
from emulator import inprocess, protobufs, testing
from emulator.encoding import entities, indexes, keys
from emulator.execution import automatic_indexes, cost_meter

SITE = "bench"
ROWS = "rows"  # The key space of a kind's entities; index entries are in that of their index.
_RECENT = 200  # Readers vote on one of this many newest comments.
_EDITS = 0.1  # The share of posts that are edited.
_INDEXES = gunicorn_process.ROOT / "index.yaml"

# Keys by key space, in the order in which they were written.
Keys = dict[str, list[bytes]]


class Bill(msgspec.Struct):
    """The billed operations of a part of the run."""

    reads: int = 0
    writes: int = 0
    deletes: int = 0
    empty: int = 0  # Additional reads by the strict interpretation of the price.

    def add(self, cost: cost_meter.Cost) -> None:
        """Add what the meter counted."""
        self.reads += cost.reads
        self.writes += cost.writes
        self.deletes += cost.deletes
        self.empty += cost.empty


class Recording(msgspec.Struct):
    """What the product wrote in each interval, and what the run cost.

    `later` is the bill of the background work for all posts, edits and votes. `idle` is the bill of
    both cron calls when nothing is left to do; App Engine makes these calls every minute.
    """

    posts: int
    votes: int
    edits: int
    threads: int
    intervals: list[Keys]
    posting: Bill
    voting: Bill
    editing: Bill
    later: Bill
    idle: Bill


class Recorder:
    """An interceptor that records the keys of each commit."""

    def __init__(self) -> None:
        self._composites: dict[str, list[indexes.Index]] = {}
        for index in automatic_indexes.read_file(_INDEXES):
            self._composites.setdefault(index.kind, []).append(index)
        self._stored: dict[bytes, indexes.Values] = {}
        self._partition = entities.request_partition(loading.PROJECT, "")
        self.keys: Keys = {}

    def __call__(self, method: str, request: Any, proceed: Any) -> bytes:
        """Pass a call on, and record it if it was a commit that succeeded."""
        answer: bytes = proceed()
        if method == "Commit":
            for mutation in request.mutations:
                self._record(mutation)
        return answer

    def _record(self, mutation: Any) -> None:
        operation = mutation.WhichOneof("operation")
        changed = getattr(mutation, operation)
        key = changed if operation == "delete" else changed.key
        kind, path = key.path[-1].kind, keys.encode_path(key)
        self._note(f"{kind} {ROWS}", path)
        before = self._stored.pop(path, {})
        after: indexes.Values = {}
        if operation != "delete":
            after = indexes.indexed_values(changed, self._partition)
            self._stored[path] = after
        composites = self._composites.get(kind, ())
        for entries in indexes.differing(kind, path, before, after, composites):
            for code, listed in entries.items():
                for entry in listed:
                    self._note(index_name(indexes.decode(code)), entry)

    def _note(self, space: str, key: bytes) -> None:
        self.keys.setdefault(space, []).append(key)

    def insert(self, entity: protobufs.Entity) -> None:
        """Record a new entity without storing it."""
        request = protobufs.CommitRequest()
        request.mutations.add().insert.CopyFrom(entity)
        self("Commit", request, lambda: b"")

    def taken(self) -> Keys:
        """Return the keys since the last call."""
        found, self.keys = self.keys, {}
        return found


def index_name(index: indexes.Index) -> str:
    """Return an index as text, for example `Comment thread, created desc`."""
    parts = [f"{name} desc" if descends else name for name, descends in index.properties]
    return f"{index.kind} {', '.join(parts)}"


def recorded(shape: shapes.Shape, threads: int, intervals: int, seed: int = 1) -> Recording:
    """Run the product: each comment of a shape is posted in each of the threads, in turn."""
    recorder = Recorder()
    with inprocess.open_engine(
        None, indexes=_INDEXES, durability="fast", concurrency="pessimistic", history=0
    ) as engine:
        channel = inprocess.Channel(engine, recorder)
        store = connection.Store(channel, project=loading.PROJECT, deadline=600.0)
        traffic = Traffic(engine, store, random.Random(seed))
        recorder.taken()
        for part in _parts(shape, threads, intervals):
            traffic.post(part)
            traffic.work(threads)
            traffic.made.intervals.append(recorder.taken())
        traffic.rest()
        traffic.made.threads = threads
        return traffic.made


Place = tuple[int, int, int | None]  # The thread, the place of a comment there, and its parent's.


def _parts(shape: shapes.Shape, threads: int, intervals: int) -> Iterator[list[Place]]:
    places = [(thread, n, parent) for n, parent in enumerate(shape) for thread in range(threads)]
    size = -(-len(places) // intervals)
    for start in range(0, len(places), size):
        yield places[start : start + size]


class Traffic:
    """The readers of a new site, and the background work."""

    def __init__(
        self, engine: inprocess.Engine, store: connection.Store, chance: random.Random
    ) -> None:
        secret = gunicorn_process.SECRET
        self._settings = config.Settings(secret=secret, tasks_secret=secret)
        self._engine, self._store, self._chance = engine, store, chance
        self._client = apps.create_app(self._settings, store).test_client()
        self._ids: dict[tuple[int, int], str] = {}
        self._recent: collections.deque[str] = collections.deque(maxlen=_RECENT)
        self.made = Recording(0, 0, 0, 0, [], Bill(), Bill(), Bill(), Bill(), Bill())
        with store.context():
            scheme, now = self._settings.scheme, datetime.now(UTC)
            site_settings.add(SITE, ["http://localhost"], scheme=scheme, now=now)

    def post(self, places: Sequence[Place]) -> None:
        """Post comments, vote on earlier ones, and edit some."""
        for thread, place, parent in places:
            path = f"/api/v1/sites/{SITE}/comments?thread=page-{thread}"
            body = {"name": f"reader {self._chance.randrange(400)}", "body": f"comment {place}"}
            if parent is not None:
                body["parent"] = self._ids[thread, parent]
            with testing.meter(self._engine) as cost:
                made = _answer(self._client.post(path, json=body))
            self.made.posting.add(cost)
            self.made.posts += 1
            self._ids[thread, place] = made["comment"]["id"]
            one = f"/api/v1/comments/{made['comment']['id']}"
            if self._chance.random() < _EDITS:
                token = {"Authorization": f"Bearer {made['token']}"}
                with testing.meter(self._engine) as cost:
                    _answer(self._client.patch(one, json={"body": "edited"}, headers=token))
                self.made.editing.add(cost)
                self.made.edits += 1
            self._recent.append(made["comment"]["id"])
            self._vote(self._chance.choice(self._recent))

    def _vote(self, comment: str) -> None:
        # Each vote comes from a different network, because their number per network is limited.
        self.made.votes += 1
        number = self.made.votes
        sender = {"REMOTE_ADDR": f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"}
        with testing.meter(self._engine) as cost:
            _answer(
                self._client.put(
                    f"/api/v1/comments/{comment}/vote", json={"value": 1}, environ_base=sender
                )
            )
        self.made.voting.add(cost)

    def work(self, threads: int) -> None:
        """Deliver events, count votes and compact threads, as the background worker does."""
        later = datetime.now(UTC) + timedelta(hours=1)
        with self._store.context(), testing.meter(self._engine) as cost:
            handlers = wiring.handlers(self._settings)
            while dispatcher.sweep_fresh(now=later, handlers=handlers).delivered:
                pass
            for voted in cast_vote.waiting(later):
                cast_vote.count(voted.id, now=later)
            while dispatcher.sweep_fresh(now=later, handlers=handlers).delivered:
                pass
            for thread in range(threads):
                name = records.ThreadName(SITE, f"page-{thread}")
                folded = compactor.compact(self._settings.scheme, name)
                if folded is not None:
                    compactor.clear(folded)
        self.made.later.add(cost)

    def rest(self) -> None:
        """Make both cron calls with nothing left to do; the first round may finish some work."""
        cron = {"Authorization": f"Bearer {self._settings.tasks_secret}"}
        for _ in range(2):
            with testing.meter(self._engine) as cost:
                for path in ("/tasks/deliver", "/tasks/upkeep"):
                    _answer(self._client.get(path, headers=cron))
        self.made.idle.add(cost)


def _answer(response: Any) -> dict[str, Any]:
    if response.status_code not in {200, 201}:
        raise SystemExit(f"the product answered {response.status}: {response.data[:200]!r}")
    answer: dict[str, Any] = response.get_json()
    return answer
