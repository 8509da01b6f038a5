"""Upkeep works if each cron call runs in a new process without state that ends with the call.

Calls share only the store. A call clears the rows that it compacted, after a grace period on its
own clock. If a call dies while it waits, the next call does all the remaining work.
"""

import threading
from collections.abc import Iterator
from datetime import timedelta

import pytest

from comments.domain import records
from comments.reading.compaction import compactor, leftovers
from comments.reading.materialized import directories, ranking, view_cache
from comments.store import connection, ownership, reads, transactions
from comments.store.models import comment_rows
from comments.threads import comment_flags
from comments.tree import placement
from comments.upkeep import scheduler
from tests.support import datastores
from tests.support.threads import compaction, reader_processes, sample_threads

SCHEME = sample_threads.SETTINGS.scheme
NAME = records.ThreadName("demo", "page")
CANARY = "quetzalcoatlus"


class Died(Exception):
    """An error that simulates the end of a waiting instance."""


class Instance(reader_processes.Reader):
    """An instance that lives for one call. Its waits advance its own and the readers' clocks."""

    def __init__(
        self,
        datastore: datastores.Datastore,
        others: list[reader_processes.Reader],
        *,
        age: float = 0.0,
    ) -> None:
        super().__init__(datastore)
        self.others = others
        self.waited: list[float] = []
        self.clock = 5e6
        self.upkeep = scheduler.Scheduler(
            clock=lambda: self.clock,
            now=lambda: sample_threads.START + timedelta(seconds=age),
        )

    def call(self) -> scheduler.RoundSummary:
        for each in self.others:  # Read each directory just before a new one replaces it
            each.now += view_cache.CACHE_MAX_AGE
            each.assert_current(NAME)
        done = self.do(lambda: self.upkeep.compact_and_clear(scheduler.find_due_work(), self.wait))
        for each in self.others:  # Read with a cached directory while it may be used
            each.assert_current(NAME)
        return done

    def wait(self, seconds: float) -> None:
        """Wait like `time.sleep`; let the readers read before and after their clocks advance."""
        self.waited.append(seconds)
        self.clock += seconds
        for each in self.others:
            each.assert_current(NAME)
            each.now += seconds
            each.assert_current(NAME)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use small buckets; compact without a delay, because the comments' time never advances."""
    compaction.small_buckets(monkeypatch, 3)
    for module in (placement, comment_flags):
        monkeypatch.setattr(module, "IN_TIME", timedelta(0))


@pytest.fixture
def others(datastore: datastores.Datastore) -> list[reader_processes.Reader]:
    """Two processes that only read."""
    return [reader_processes.Reader(datastore, ahead=ahead) for ahead in (0.0, 600.0)]


@pytest.fixture
def said(store: connection.Store, site: records.Site) -> records.Comment:
    """A comment for the test to retract, in a thread that was never compacted."""
    sample_threads.grow(site, {f"{n}": {f"{n}.1": {}} for n in range(4)})
    return sample_threads.post(site, CANARY)


def _holders(text: str) -> Iterator[str]:
    """Yield the kinds of the stored rows that contain a text."""
    for kind in ("Comment", "Bucket", "BucketDirectory", "Ranking"):
        for message in reads.fetch(reads.Query(kind)):
            if text.encode() in message.SerializeToString() + reader_processes.decompressed(
                message
            ):
                yield kind


def test_instances_of_one_call_each_compact_clear_and_erase(
    said: records.Comment, datastore: datastores.Datastore, others: list[reader_processes.Reader]
) -> None:
    first = Instance(datastore, others)
    assert first.call() == scheduler.RoundSummary(1, 1, 0)
    assert first.waited == [compactor.GRACE]
    assert {*_holders(CANARY)} > {"Comment"}
    sample_threads.retract(said)
    assert Instance(datastore, others).call() == scheduler.RoundSummary(1, 1, 0)
    assert [*_holders(CANARY)] == []
    assert scheduler.find_due_work() == []
    assert leftovers.orphans(NAME) == []
    idle = Instance(datastore, others)
    assert idle.call() == scheduler.RoundSummary(0, 0, 0)
    assert idle.waited == []


def test_a_call_that_dies_while_waiting_leaves_everything_to_the_next(
    said: records.Comment,
    datastore: datastores.Datastore,
    others: list[reader_processes.Reader],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Instance(datastore, others).call()
    sample_threads.retract(said)

    def die(_seconds: float) -> None:
        raise Died

    for _ in range(3):
        dying = Instance(datastore, others)
        monkeypatch.setattr(dying, "wait", die)
        with pytest.raises(Died):
            dying.call()
        # No row was cleared before its grace period, and nothing that readers use was deleted.
        assert scheduler.find_due_work() == [NAME]
        for each in others:
            each.assert_current(NAME)
    assert Instance(datastore, others).call() == scheduler.RoundSummary(1, 1, 0)
    assert [*_holders(CANARY)] == []
    assert scheduler.find_due_work() == []
    for each in others:
        each.assert_current(NAME)


def test_the_next_call_waits_the_whole_grace_by_its_own_clock(
    said: records.Comment, datastore: datastores.Datastore, others: list[reader_processes.Reader]
) -> None:
    """The call waits even if, by a different process's clock, the switch happened long ago."""
    assert compactor.compact(SCHEME, NAME) is not None
    late = Instance(datastore, others)
    late.call()
    assert late.waited == [compactor.GRACE]
    assert scheduler.find_due_work() == []


def test_of_several_concurrent_calls_one_waits(
    said: records.Comment, datastore: datastores.Datastore, others: list[reader_processes.Reader]
) -> None:
    instance = Instance(datastore, [])
    answered: list[scheduler.RoundSummary] = []
    waited: list[float] = []

    def wait(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 1:
            # A second request calls the same process during the wait.
            again = threading.Thread(target=visit_again)
            again.start()
            again.join()
        instance.clock += seconds

    def visit_again() -> None:
        with instance.store.context():
            answered.append(instance.upkeep.compact_and_clear([], wait))

    done = instance.do(lambda: instance.upkeep.compact_and_clear(scheduler.find_due_work(), wait))
    assert (done, answered) == (scheduler.RoundSummary(1, 1, 0), [scheduler.RoundSummary(0, 0, 1)])
    assert len(waited) == 1
    assert scheduler.find_due_work() == []


def test_rankings_are_deleted_when_cursors_expire_although_no_instance_lives_that_long(
    said: records.Comment, datastore: datastores.Datastore, others: list[reader_processes.Reader]
) -> None:
    """Even an instance with a clock ten minutes ahead deletes no bucket too early."""
    term = ranking.KEPT + ranking.SKEW
    for votes in (1, 2):
        _vote(said, votes)
        Instance(datastore, others).call()
    assert len(_rankings()) == 2
    Instance(datastore, others, age=ranking.KEPT + ranking.SKEW - 1).call()
    assert len(_rankings()) == 2
    Instance(datastore, others, age=term).call()
    best = directories.load_directory(NAME).content.best
    assert best is not None
    assert _rankings() == [best.ranking]
    for each in others:
        each.assert_current(NAME)


def _rankings() -> list[str]:
    stored = reads.fetch(reads.Query("Ranking", keys_only=True))
    return [message.key.path[-1].name for message in stored]


def _vote(row: records.Comment, votes: int) -> None:
    def body() -> None:
        stored = reads.get(comment_rows.comment_key(row.id))
        stored.up += votes
        stored.revision += 1
        stored.unfolded = True
        transactions.apply(ownership.Writes("tree", put=(stored,)))

    transactions.transaction(body)
