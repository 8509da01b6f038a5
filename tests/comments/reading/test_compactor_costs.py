"""Claims about what folding writes: about one entity for each change, votes and edits counted."""

import pytest

from benchmarks.threads import shapes
from comments.events import backlog
from tests.support.threads import growing_thread, paced_thread

MOST = 1.2  # writes for each change, amortised: buckets, directories, rankings, cleared rows


@pytest.mark.slow
@pytest.mark.parametrize(("edits", "votes"), [(0.1, 0.5), (0.3, 0.0)])
def test_folding_writes_little_more_than_once_for_each_change(edits: float, votes: float) -> None:
    """A thread of the shape that real ones have (`benchmarks/threads/shapes.py`)."""
    spent, lines = growing_thread.replay(
        shapes.grown(700), edits=edits, votes=votes, at_once=backlog.FOLD_ROWS
    )
    assert spent.changes > 700 * (1 + 0.8 * (edits + votes))
    assert lines > 2
    assert spent.writes <= MOST * spent.changes


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, 2])
def test_so_it_does_at_the_pace_of_a_thread_whoever_takes_its_comments(processes: int) -> None:
    """Folded by the product's workers, which see the time pass, and not after so many changes."""
    at = [paced_thread.EVERY * place for place in range(400)]
    spent = paced_thread.replay(shapes.grown(400), at, edits=0.1, votes=0.5, processes=processes)
    assert spent.changes > 400 * 1.5
    assert spent.foldings > spent.changes / backlog.FOLD_ROWS
    assert spent.writes <= MOST * spent.changes
