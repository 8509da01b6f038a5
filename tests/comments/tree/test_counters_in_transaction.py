"""Stored counters are exact after every commit, cheap, and spread when writers conflict."""

import contextlib
import itertools
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from comments import errors
from comments.domain import records
from comments.domain.records import Status
from comments.posting import own_comment
from comments.store import connection, ownership, reads, transactions
from comments.store.models import comment_rows, counter_rows
from comments.threads import naming
from comments.tree import placement, values
from comments.tree.counters import sharding, totals
from comments.upkeep.integrity import repair
from datastore_emulator import inprocess, testing
from tests.support import datastores
from tests.support.histories import counter_oracle
from tests.support.store_interceptors import Calls
from tests.support.threads import sample_threads

NAME = records.ThreadName("demo", "page")


def _kinds(keys: Any) -> list[str]:
    return sorted(path[-2] for path in keys)


def test_every_change_leaves_every_counter_equal_to_its_recount(
    store: connection.Store, site: records.Site
) -> None:
    grown = sample_threads.grow(site, sample_threads.TREE)
    assert counter_oracle.of(NAME) == {"approved": 8, "listed": 8, "participants": 8}
    counter_oracle.assert_counted()
    sample_threads.retract(grown["1.1"])
    counter_oracle.assert_counted()
    assert counter_oracle.of(NAME) == {
        "approved": 7, "listed": 8, "participants": 7, "retracted": 1
    }  # fmt: skip
    for text in ("1.1.1", "1.1.2"):
        sample_threads.retract(grown[text])  # Retracting the last reply also removes the tombstone
    assert counter_oracle.of(NAME)["listed"] == 5
    counter_oracle.assert_counted()


def test_an_author_is_one_participant_until_their_last_comment_is_retracted(
    store: connection.Store, site: records.Site
) -> None:
    rows = [
        sample_threads.post(site, text, author=sample_threads.author("ann"))
        for text in ("one", "two")
    ]
    assert counter_oracle.of(NAME)["participants"] == 1
    sample_threads.retract(rows[0])
    assert counter_oracle.of(NAME)["participants"] == 1
    sample_threads.retract(rows[1])
    assert "participants" not in counter_oracle.of(NAME)
    counter_oracle.assert_counted()
    assert list(reads.fetch(reads.Query("Participation"))) == []


def test_a_repeated_post_is_counted_once(store: connection.Store, site: records.Site) -> None:
    for _ in range(2):
        sample_threads.post(site, "once", key="0123456789abcdef")
    assert counter_oracle.of(NAME) == {"approved": 1, "listed": 1, "participants": 1}


def test_an_edit_reads_and_writes_no_counter(
    store: connection.Store, site: records.Site, engine: inprocess.Engine
) -> None:
    row = sample_threads.post(site, "old")
    with testing.meter(engine) as cost:
        own_comment.edit(
            row.id,
            author_id=row.author.id,
            body="new",
            revision=None,
            settings=sample_threads.SETTINGS,
            now=sample_threads.START,
        )
    assert "Counter" not in _kinds(cost.keys_read | cost.keys_written)
    counter_oracle.assert_counted()


def test_with_spread_counters_replies_to_different_parents_write_no_row_in_common(
    store: connection.Store, site: records.Site, engine: inprocess.Engine
) -> None:
    parents = [sample_threads.post(site, f"{n}").id for n in range(8)]
    sharding.spread(NAME, 16)
    known = sharding.SHARDS.of(store)
    # All turns are in progress at the same time.
    turns = [sharding.TransactionShard(known, NAME) for _ in parents]
    written = []
    for parent, turn in zip(parents, turns, strict=True):
        with testing.meter(engine) as cost:
            _append(site, parent, turn)
        written.append(cost.keys_written)
    assert len(frozenset().union(*written)) == sum(len(keys) for keys in written)
    assert all("Thread" not in _kinds(keys) for keys in written)
    counter_oracle.assert_counted()


@pytest.mark.slow
def test_a_busy_thread_is_spread_stays_exact_and_is_gathered_when_quiet(
    datastore: datastores.Datastore, open_store: connection.Store, site: records.Site
) -> None:
    """The writers are processes, because the threads of one process share transactions."""
    with open_store.context():
        parents = [sample_threads.post(site, f"{n}").id for n in range(8)]
    gate = threading.Barrier(8)

    def write(number: int) -> None:
        with datastore.connect().context():
            gate.wait(60)
            for n in range(12):
                sample_threads.post(site, f"{number}.{n}", parents[number])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(8)))
    with open_store.context():
        assert reads.get(comment_rows.thread_key(NAME)).shards > 1
        assert counter_oracle.of(NAME) == {"approved": 104, "listed": 104, "participants": 104}
        counter_oracle.assert_counted()
        sharding.gather(NAME)
        assert reads.get(comment_rows.thread_key(NAME)).shards == 1
        assert len(list(reads.fetch(reads.Query("Counter")))) == 1
        assert counter_oracle.of(NAME) == {"approved": 104, "listed": 104, "participants": 104}
        counter_oracle.assert_counted()
        assert repair.find_problems(sample_threads.SETTINGS.scheme, NAME) == []


def test_a_writer_with_an_outdated_number_of_shards_counts_in_the_first(
    store: connection.Store, site: records.Site
) -> None:
    parent = sample_threads.post(site, "parent")
    sharding.spread(NAME, 4)
    known = sharding.SHARDS.of(store)
    turns = [sharding.TransactionShard(known, NAME) for _ in range(3)]
    for turn in turns:
        turn.take()
    sharding.gather(NAME)
    known.learn(NAME, 4)  # Simulates a process that missed the gathering
    late = sharding.TransactionShard(known, NAME)
    _append(site, parent.id, late)
    assert counter_oracle.of(NAME)["approved"] == 2
    counter_oracle.assert_counted()
    late.end()
    assert known._busy[NAME].count == 1


def test_gathering_and_spreading_during_writes_loses_no_count(
    open_store: connection.Store, site: records.Site
) -> None:
    with open_store.context():
        parents = [sample_threads.post(site, f"{n}").id for n in range(4)]

    def write(number: int) -> None:
        with open_store.context():
            for n in range(25):
                sample_threads.post(site, f"{number}.{n}", parents[number])

    with ThreadPoolExecutor(4) as pool, open_store.context():
        writers = [pool.submit(write, number) for number in range(4)]
        seen = 0
        while not all(writer.done() for writer in writers):
            with contextlib.suppress(errors.Overloaded), connection.within(0.5):
                sharding.spread(NAME, 4)
                sharding.gather(NAME)
            assert counter_oracle.of(NAME)["approved"] >= seen
            seen = counter_oracle.of(NAME)["approved"]
        sharding.gather(NAME)
        assert counter_oracle.of(NAME)["approved"] == 104
        counter_oracle.assert_counted()


def test_a_new_process_finds_spread_counters_and_gathers_them_when_quiet(
    store: connection.Store, site: records.Site
) -> None:
    sample_threads.grow(site, sample_threads.TREE)
    sharding.spread(NAME, 4)
    known = sharding.Shards(clock=lambda: now[0])
    sharding.SHARDS.put(store, known)
    now = [1000.0]
    sharding.notice_spread()
    assert sharding.gather_quiet() == 0
    now[0] += sharding.QUIET
    assert sharding.gather_quiet() == 1
    assert reads.get(comment_rows.thread_key(NAME)).shards == 1
    counter_oracle.assert_counted()


def test_without_rows_for_many_threads_counts_cost_one_read_each(
    store: connection.Store, site: records.Site, engine: inprocess.Engine, calls: Calls
) -> None:
    for number in range(50):
        sample_threads.post(site, "text", thread=f"page {number}")
    ids = [f"page {number}" for number in range(50)]
    calls.names.clear()
    with testing.meter(engine) as cost:
        found = totals.listed_counts("demo", [*ids, "never seen", "page 7"])
    assert found == [1] * 50 + [0, 1]
    assert calls.names == ["Lookup", "Lookup"]
    assert cost.reads == 1 + 51
    calls.names.clear()
    assert totals.listed_counts("demo", ids) == [1] * 50
    assert calls.names == ["Lookup"]  # For a minute, the process knows that there are no such rows


def test_counts_of_a_spread_thread_are_from_one_moment(
    store: connection.Store, site: records.Site
) -> None:
    parents = [sample_threads.post(site, f"{n}").id for n in range(4)]
    sharding.spread(NAME, 4)
    known = sharding.SHARDS.of(store)
    turns = [sharding.TransactionShard(known, NAME) for _ in parents]
    for parent, turn in zip(parents, turns, strict=True):
        _append(site, parent, turn)
    assert len(list(reads.fetch(reads.Query("Counter")))) == 4
    sample_threads.post(site, "text", thread="other")
    assert totals.listed_counts("demo", ["page", "other"]) == [8, 1]


def test_imports_count_by_the_same_formula(store: connection.Store, site: records.Site) -> None:
    nodes = [
        sample_threads.node("spam", None, Status.SPAM),
        sample_threads.node("reply", "spam", Status.APPROVED),
        sample_threads.node("held", "reply", Status.PENDING, author="g:ann"),
        sample_threads.node("voted", None, Status.APPROVED, author="g:ann", up=5, down=2),
    ]
    for _ in range(2):
        sample_threads.store_imported(NAME, *nodes)
        counter_oracle.assert_counted()
    assert counter_oracle.of(NAME) == {
        "approved": 2, "pending": 1, "spam": 1, "listed": 3, "participants": 1,
        "up": 5, "down": 2, "score": 3,
    }  # fmt: skip


def test_an_import_that_lists_a_stored_comment_counts_it(
    store: connection.Store, site: records.Site
) -> None:
    sample_threads.store_imported(
        NAME,
        sample_threads.node("spam", None, Status.SPAM),
        sample_threads.node("more", "spam", Status.SPAM),
    )
    assert "listed" not in counter_oracle.of(NAME)
    sample_threads.store_imported(NAME, sample_threads.node("reply", "more", Status.APPROVED))
    assert counter_oracle.of(NAME)["listed"] == 3
    counter_oracle.assert_counted()


def test_a_repair_that_unlists_a_comment_counts_it(
    store: connection.Store, site: records.Site
) -> None:
    sample_threads.store_imported(NAME, sample_threads.node("spam", None, Status.SPAM))
    row = reads.get(comment_rows.comment_key(sample_threads.node("spam", None, Status.SPAM).id))
    row.listed = True
    transactions.transaction(lambda: transactions.apply(ownership.Writes("tree", put=(row,))))
    repair.fix(sample_threads.SETTINGS.scheme, NAME)
    assert counter_oracle.of(NAME)["listed"] == -1  # The damage itself was never counted


def test_only_their_owner_writes_counters(store: connection.Store, site: records.Site) -> None:
    sample_threads.post(site, "text")
    row = reads.get(counter_rows.thread_counter_key(NAME, 0))
    writes = ownership.Writes("tree", put=(row,))
    with pytest.raises(errors.UnownedWrite):
        transactions.transaction(lambda: transactions.apply(writes))


def _append(site: records.Site, parent: str, turn: sharding.TransactionShard) -> None:
    """Post like `posting`, but without ending the turn."""
    number = next(_numbers)
    draft = values.Draft(
        id=comment_rows.comment_id(f"{number}".encode().rjust(16)),
        name=NAME,
        reply_to=parent,
        author=sample_threads.author(f"{number}"),
        text=values.RenderedText("text", "text", ""),
        fingerprint=b"",
        created=sample_threads.START,
        brought=naming.encode(naming.Brought()),
    )

    def body() -> None:
        placed = placement.Placement(sample_threads.SETTINGS.scheme, [draft], turn)
        placed.fill(reads.get_multi(placed.keys))
        placed.place(draft, lambda *_: records.Ruling(records.Status.APPROVED))
        transactions.apply(*placed.writes())

    transactions.transaction(body)


_numbers: Iterator[int] = itertools.count()
