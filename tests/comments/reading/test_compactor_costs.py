"""Compaction writes about one entity per change; held comments cost readers nothing."""

import pytest
from google.cloud.datastore_v1.types import datastore as rpc_types

from benchmarks.threads import shapes
from comments.domain import records
from comments.events import backlog
from comments.store import connection, reads
from comments.store.models import comment_rows
from datastore_emulator import inprocess, testing
from tests.support.threads import compaction, growing_thread, paced_thread, sample_threads

pytestmark = pytest.mark.embedded

_CommitRequest = rpc_types.CommitRequest.pb()

MOST = 1.2  # Amortized writes per change: buckets, directories, rankings, cleared rows


@pytest.mark.slow
def test_compaction_writes_little_more_than_one_entity_per_change() -> None:
    """Replay a thread with a realistic shape (`benchmarks/threads/shapes.py`)."""
    spent, lines = growing_thread.replay(
        shapes.grown(700), edits=0.1, votes=0.5, at_once=backlog.FOLD_ROWS
    )
    assert spent.changes > 700 * 1.48
    assert lines > 2
    assert spent.writes <= MOST * spent.changes


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, 2])
def test_compaction_at_a_threads_own_pace_costs_the_same_with_any_number_of_processes(
    processes: int,
) -> None:
    """The product's workers compact as time passes, not after a fixed number of changes."""
    at = [paced_thread.EVERY * place for place in range(250)]
    spent = paced_thread.replay(shapes.grown(250), at, edits=0.1, votes=0.5, processes=processes)
    assert spent.changes > 250 * 1.5
    assert spent.compactions > spent.changes / backlog.FOLD_ROWS
    assert spent.writes <= MOST * spent.changes


@pytest.mark.slow
def test_a_thousand_held_comments_cost_a_reader_nothing(
    store: connection.Store,
    site: records.Site,
    engine: inprocess.Engine,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compaction.small_buckets(monkeypatch)
    name = sample_threads.name_of(site)
    sample_threads.grow(site, {str(number): {f"{number}.1": {}} for number in range(5)})
    compaction.whole(name)

    def cost() -> tuple[int, ...]:
        compaction.forget()
        with testing.meter(engine) as met:
            compaction.with_view(name, lambda view: list(view.rows()))
        return met.reads, met.writes, met.small, met.index_entries

    sample_threads.post(site, "new")
    before = cost()
    _hold(name, range(2))
    _copy(engine, comment_rows.comment_id(b"spam 00000000000"), 1_000)
    held = reads.Query("Comment", where=(("status", "=", records.Status.SPAM.value),))
    assert reads.count(held) == 1_002
    assert cost() == before


def _hold(name: records.ThreadName, numbers: range) -> None:
    nodes = [
        records.ImportedComment(
            id=comment_rows.comment_id(f"spam {number:011d}".encode()),
            reply_to=None,
            author=records.Author("Spam"),
            body="buy",
            html="<p>buy</p>",
            renderer="test",
            status=records.Status.SPAM,
            created=sample_threads.START,
            source=f"test:{number}",
        )
        for number in numbers
    ]
    sample_threads.store_imported(name, *nodes)


def _copy(engine: inprocess.Engine, comment_id: str, times: int) -> None:
    """Store copies of a comment in commits of 500."""
    (row,) = reads.lookup("Comment", [comment_id])
    commit = inprocess.Channel(engine).unary_unary(
        f"{connection.SERVICE}Commit",
        request_serializer=_CommitRequest.SerializeToString,
        response_deserializer=rpc_types.CommitResponse.pb().FromString,
    )
    for first in range(0, times, 500):
        request = _CommitRequest(project_id="test", mode=_CommitRequest.Mode.NON_TRANSACTIONAL)
        for number in range(first, first + 500):
            copy = request.mutations.add().upsert
            copy.CopyFrom(row)
            copy.key.path[-1].name = comment_rows.comment_id(f"copy {number:011d}".encode())
        commit(request)
