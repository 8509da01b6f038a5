"""Compaction writes about one entity per change, and votes and edits count as changes."""

import pytest

from benchmarks.threads import shapes
from comments.events import backlog
from tests.support.threads import growing_thread, paced_thread

pytestmark = pytest.mark.embedded

MOST = 1.2  # amortized writes per change: buckets, directories, rankings, cleared rows


@pytest.mark.slow
@pytest.mark.parametrize(("edits", "votes"), [(0.1, 0.5), (0.3, 0.0)])
def test_compaction_writes_little_more_than_one_entity_per_change(
    edits: float, votes: float
) -> None:
    """Replay a thread with a realistic shape (`benchmarks/threads/shapes.py`)."""
    spent, lines = growing_thread.replay(
        shapes.grown(700), edits=edits, votes=votes, at_once=backlog.FOLD_ROWS
    )
    assert spent.changes > 700 * (1 + 0.8 * (edits + votes))
    assert lines > 2
    assert spent.writes <= MOST * spent.changes


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, 2])
def test_compaction_at_a_threads_own_pace_costs_the_same_with_any_number_of_processes(
    processes: int,
) -> None:
    """The product's workers compact as time passes, not after a fixed number of changes."""
    at = [paced_thread.EVERY * place for place in range(400)]
    spent = paced_thread.replay(shapes.grown(400), at, edits=0.1, votes=0.5, processes=processes)
    assert spent.changes > 400 * 1.5
    assert spent.compactions > spent.changes / backlog.FOLD_ROWS
    assert spent.writes <= MOST * spent.changes
