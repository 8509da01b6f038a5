"""Deep reply chains and long threads keep their order and their shape."""

import hashlib
from datetime import timedelta

import pytest

from benchmarks.threads import shapes
from comments.domain import records
from comments.store import connection
from comments.store.models import comment_rows
from comments.tree.lists import listed_comments, ordered_query
from comments.upkeep.integrity import repair
from tests.support.threads import sample_threads

pytestmark = pytest.mark.slow

SCHEME = sample_threads.SETTINGS.scheme
BATCH = 200


@pytest.fixture(autouse=True)
def _entered(store: connection.Store) -> None:
    """Run all these tests inside the store."""


def _fill(name: records.ThreadName, shape: shapes.Shape) -> list[str]:
    """Store a thread with this shape; return the ids in the shape's order."""
    ids = [
        comment_rows.comment_id(hashlib.sha256(str(n).encode()).digest()) for n in range(len(shape))
    ]
    nodes = [
        records.ImportedComment(
            id=ids[place],
            reply_to=None if parent is None else ids[parent],
            author=records.Author("Ann"),
            body=str(place),
            html=f"<p>{place}</p>",
            renderer="test",
            status=records.Status.APPROVED,
            created=sample_threads.START + timedelta(seconds=place),
            source=f"test:{place}",
        )
        for place, parent in enumerate(shape)
    ]
    for start in range(0, len(nodes), BATCH):
        sample_threads.store_imported(name, *nodes[start : start + BATCH])
    return ids


def test_a_chain_of_2000_answers_stays_within_the_levels(site: records.Site) -> None:
    """A walk that calls itself for each answer would exceed Python's limit of 1,000 calls."""
    name = sample_threads.name_of(site)
    chain: shapes.Shape = [None, *range(1_999)]
    ids = _fill(name, chain)
    rows = ordered_query.thread(name)
    assert [row.id for row in rows] == ids
    assert max(row.level for row in rows) == SCHEME.levels - 1
    assert [row.reply_to for row in rows] == [None, *ids[:-1]]
    assert repair.find_problems(SCHEME, name) == []
    page = ordered_query.around(name, ids[1_400], limit=50, secret="x" * 20)
    assert ids[1_400] in {row.id for row in page.comments}
    assert len(listed_comments.with_ancestors(ids[-1])[1]) == SCHEME.levels - 1


def test_a_long_thread_has_the_order_of_a_walk_over_its_links(site: records.Site) -> None:
    name = sample_threads.name_of(site)
    _fill(name, shapes.repeated(shapes.grown(1_000), 3_000))
    rows = ordered_query.thread(name)
    assert len(rows) == 3_000
    assert [row.id for row in rows] == sample_threads.walk(rows)
    assert repair.find_problems(SCHEME, name) == []
