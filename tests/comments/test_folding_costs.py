"""Claims about what folding writes: about one entity for each change, votes and edits counted."""

import pytest

from benchmarks import folding as replays
from benchmarks import shapes
from comments import tasks

MOST = 1.2  # writes for each change, amortised: buckets, directories, rankings, cleared rows


@pytest.mark.slow
@pytest.mark.parametrize(("edits", "votes"), [(0.1, 0.5), (0.3, 0.0)])
def test_folding_writes_little_more_than_once_for_each_change(edits: float, votes: float) -> None:
    """A thread of the shape that real ones have, grown with them (`benchmarks/shapes.py`)."""
    spent, lines = replays.replay(
        shapes.grown(700), edits=edits, votes=votes, at_once=tasks.FOLD_ROWS
    )
    assert spent.changes > 700 * (1 + 0.8 * (edits + votes))
    assert lines > 2
    assert spent.writes <= MOST * spent.changes
