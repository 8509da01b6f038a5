"""Recounting votes repairs rows with vote counts that differ from the stored votes."""

import pytest

from comments.domain import records
from comments.domain.counters.counting import Scope
from comments.posting import own_comment
from comments.store import ownership, reads, transactions
from comments.store.models import comment_rows, vote_rows
from comments.upkeep.integrity.recount import Difference
from tests.support import prepared_stores
from tests.support.histories import counter_drift
from tests.support.threads import sample_votes


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> prepared_stores.Beginning:
    return prepared_stores.grown(tmp_path_factory, counter_drift.grown)


def _plant_votes(comment_id: str, **values: int) -> None:
    """Write wrong vote counts directly to a comment's row."""
    row = reads.get(comment_rows.comment_key(comment_id))
    row.populate(**values)
    transactions.transaction(lambda: transactions.apply(ownership.Writes("tree", put=(row,))))


def test_a_row_that_drifted_from_its_votes_is_shown_repaired_and_not_found_again(
    counted_rows: dict[str, records.Comment],
) -> None:
    one, two, other = (counted_rows[text] for text in ("1", "2", "3"))
    for comment in (one, two):
        for voter in ("ann", "bob", "cid"):
            sample_votes.vote(comment, voter, -1 if voter == "cid" else 1)
    sample_votes.count_all()
    assert counter_drift.recount_all() == []
    counter_drift.lose_vote(one.id, "bob")
    _plant_votes(two.id, score=7)
    sample_votes.vote(other, "ann")  # An uncounted vote is not a fault
    found = [
        Difference(Scope("comment", one.id), "up", 2, 1),
        Difference(Scope("comment", one.id), "score", 1, 0),
        Difference(Scope("comment", two.id), "score", 7, 1),
    ]
    assert counter_drift.recount_all(fixes=False) == found
    assert counter_drift.recount_all() == found
    assert counter_drift.recount_all() == []
    assert (sample_votes.stored(one.id), sample_votes.stored(two.id)) == ((1, 1, 0), (2, 1, 1))
    sample_votes.count_all()
    assert counter_drift.recount_all() == []
    sample_votes.assert_counted()


def test_votes_left_behind_by_a_retraction_are_found_and_deleted(
    counted_rows: dict[str, records.Comment],
) -> None:
    row = counted_rows["2.1"]
    sample_votes.vote(row, "ann")
    sample_votes.vote(row, "bob")
    own_comment.retract(row.id, author_id=row.author.id, revision=None, now=counter_drift.NOW)
    lost = ownership.Writes("votes", delete=(vote_rows.votes_due_key(row.id),))
    transactions.transaction(lambda: transactions.apply(lost))
    assert counter_drift.recount_all() == [Difference(Scope("comment", row.id), "votes", 2, 0)]
    assert counter_drift.recount_all() == []
    sample_votes.count_all()
    sample_votes.assert_counted()
