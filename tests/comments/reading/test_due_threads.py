"""A thread's rows store when its compaction is due, so all processes agree on the time."""

import math
from datetime import UTC, datetime, timedelta

import pytest

from comments.domain import records
from comments.events import backlog
from comments.moderation import decisions
from comments.posting import own_comment
from comments.reading.compaction import compactor, due_threads
from comments.store import connection, ownership, reads, transactions
from comments.store.models import comment_rows
from comments.tree import changes
from comments.tree.lists import ordered_query
from comments.upkeep import scheduler
from datastore_emulator import inprocess, testing
from tests.support.threads import compaction, sample_threads

NAME = records.ThreadName("demo", "page")
NOW = sample_threads.START
LATER = NOW + timedelta(seconds=backlog.FOLD_AFTER)
MOMENT = timedelta(microseconds=1)


@pytest.fixture(autouse=True)
def _entered(store: connection.Store) -> None:
    """Run all these tests inside the store."""


def _row(comment: records.Comment) -> comment_rows.CommentRow:
    row: comment_rows.CommentRow = reads.get(comment_rows.comment_key(comment.id))
    return row


def _score(comment: records.Comment, up: int, now: datetime) -> None:
    def body() -> None:
        transactions.apply(*changes.count_votes(comment.id, (up, 0), now=now).writes)

    transactions.transaction(body)


def test_a_fully_compacted_thread_is_not_due(site: records.Site) -> None:
    assert due_threads.find(LATER) == []
    assert due_threads.wait(NAME, LATER) == math.inf
    sample_threads.post(site, "text")
    compaction.whole(NAME)
    assert due_threads.find(LATER) == []
    assert due_threads.wait(NAME, LATER) == math.inf


def test_a_comment_is_due_after_its_delay(site: records.Site) -> None:
    comment = sample_threads.post(site, "text")
    sample_threads.post(site, "later", now=NOW + timedelta(seconds=9))
    assert due_threads.wait(NAME, NOW) == backlog.FOLD_AFTER
    assert due_threads.find(LATER - MOMENT) == []
    assert due_threads.find(LATER) == [NAME]
    assert due_threads.wait(NAME, LATER) == 0
    compaction.whole(NAME)
    assert _row(comment).fold_by is None


def test_a_full_batch_is_due_at_once(site: records.Site) -> None:
    for number in range(backlog.FOLD_ROWS - 1):
        sample_threads.post(site, f"{number}")
    sample_threads.post(site, "elsewhere", thread="other")
    assert due_threads.find(NOW) == []
    sample_threads.post(site, "one more")
    assert due_threads.find(NOW) == [NAME]
    assert due_threads.wait(NAME, NOW) == 0


@pytest.mark.parametrize("is_compacted", [False, True])
@pytest.mark.parametrize("verb", ["edit", "retract", "reject"])
def test_the_removal_of_a_text_is_due_at_once(
    site: records.Site, verb: str, *, is_compacted: bool
) -> None:
    """The removal is due even if the posting process's clock was a year ahead."""
    comment = sample_threads.post(site, "text", now=NOW + timedelta(days=365))
    sample_threads.post(site, "other")
    if is_compacted:
        compaction.whole(NAME)
    assert due_threads.find(NOW) == []
    if verb == "edit":
        own_comment.edit(
            comment.id,
            author_id=comment.author.id,
            body="new",
            revision=None,
            settings=sample_threads.SETTINGS,
            now=NOW,
        )
    elif verb == "retract":
        sample_threads.retract(comment)
    else:
        actor = records.Actor("cli", "the command line")
        decisions.decide("demo", comment.id, records.Verb.REJECT, actor, now=NOW)
    assert due_threads.find(NOW) == [NAME]


def test_a_score_is_due_a_delay_after_the_first_vote(site: records.Site) -> None:
    comment = sample_threads.post(site, "text")
    _score(comment, 1, NOW + timedelta(seconds=9))
    assert due_threads.find(LATER) == [NAME]
    compaction.whole(NAME)
    for seconds in (20, 30):
        _score(comment, seconds, NOW + timedelta(seconds=seconds))
    assert due_threads.find(LATER + timedelta(seconds=20) - MOMENT) == []
    assert due_threads.find(LATER + timedelta(seconds=20)) == [NAME]


def test_an_import_is_due_at_once(site: records.Site) -> None:
    end = datetime.max.replace(tzinfo=UTC)
    sample_threads.store_imported(
        NAME, sample_threads.node("a", created=end), sample_threads.node("b", "a")
    )
    assert due_threads.find(NOW) == [NAME]


def test_rows_without_a_stored_deadline_are_due_at_once(site: records.Site) -> None:
    row = _row(sample_threads.post(site, "text"))
    row.fold_by = None
    transactions.transaction(lambda: transactions.apply(ownership.Writes("tree", put=(row,))))
    assert due_threads.find(NOW) == [NAME]


def test_a_look_is_one_query_and_one_read_per_undue_thread(
    site: records.Site, engine: inprocess.Engine
) -> None:
    for thread in ("old", "older"):
        sample_threads.post(site, "text", thread=thread, now=NOW - timedelta(days=1))
    sample_threads.post(site, "text", thread="new")
    with testing.meter(engine) as cost:
        assert {name.id for name in due_threads.find(NOW)} == {"old", "older"}
    # The query costs three reads, the thread that is not due one, and the threads' names two.
    assert cost.reads == 3 + 1 + 2
    assert cost.writes == 0


def test_a_thread_that_another_process_compacted_is_not_compacted_again(site: records.Site) -> None:
    seconds = [0.0]
    waiting = backlog.Backlog(lambda: seconds[0])
    waiting.open()
    mine = scheduler.Scheduler(now=lambda: NOW + timedelta(seconds=seconds[0]))
    sample_threads.post(site, "mine")
    waiting.add(NAME)
    compaction.whole(NAME)
    seconds[0] = 90.0
    sample_threads.post(site, "theirs", now=NOW + timedelta(seconds=90))
    seconds[0] = backlog.FOLD_AFTER
    assert list(mine.due_names(waiting)) == []
    assert waiting.next_due == backlog.FOLD_AFTER + 90
    seconds[0] += 90
    assert list(mine.due_names(waiting)) == [NAME]
    assert mine.round([NAME]).compacted == 1
    compactor.clear(mine.uncleared_compactions[0].result)
    waiting.add(NAME)
    seconds[0] += backlog.FOLD_AFTER
    assert list(mine.due_names(waiting)) == []
    assert waiting.next_due == math.inf


def test_changes_during_the_grace_are_left_until_they_are_due(
    site: records.Site, engine: inprocess.Engine
) -> None:
    sample_threads.post(site, "first")
    assert compactor.compact(sample_threads.SETTINGS.scheme, NAME) is not None
    late = sample_threads.post(site, "late", now=LATER)
    end = LATER + timedelta(seconds=backlog.FOLD_AFTER)
    for now, left in ((LATER, backlog.FOLD_AFTER), (end - timedelta(seconds=1), 1.0), (end, 0.0)):
        with testing.meter(engine) as cost:
            folded = compactor.compact(sample_threads.SETTINGS.scheme, NAME, now=now, only_due=True)
        assert folded is not None
        assert folded.left == left
        assert bool(cost.writes) == (not left)
    assert folded is not None
    compactor.clear(folded)
    assert not _row(late).unfolded
    assert [row.unfolded for row in map(_row, ordered_query.thread(NAME))] == [False, False]


def test_a_process_returns_to_the_changes_it_left(site: records.Site) -> None:
    waiting = backlog.BACKLOG.put(connection.current(), backlog.Backlog(lambda: 0.0))
    waiting.open()
    mine = scheduler.Scheduler(now=lambda: LATER)
    sample_threads.post(site, "first")
    assert compactor.compact(sample_threads.SETTINGS.scheme, NAME) is not None
    sample_threads.post(site, "late", now=LATER)
    waiting.close()
    waiting.open()
    assert due_threads.find(LATER) == [
        NAME
    ]  # Compacted but uncleared, as a dead process might leave it
    assert mine.round([NAME]) == scheduler.RoundSummary(1, 0, 1)
    assert waiting.next_due == backlog.FOLD_AFTER


@pytest.mark.slow
@pytest.mark.parametrize("rows", [backlog.FOLD_ROWS - 1, backlog.FOLD_ROWS])
def test_many_changes_are_not_left(site: records.Site, rows: int) -> None:
    sample_threads.post(site, "first")
    compaction.whole(NAME)
    for number in range(rows):
        sample_threads.post(site, f"{number}")
    folded = compactor.compact(sample_threads.SETTINGS.scheme, NAME, now=NOW, only_due=True)
    assert folded is not None
    assert (folded.left == 0) == (rows == backlog.FOLD_ROWS)


def test_a_compaction_reports_an_unavailable_store(
    site: records.Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = [0.0]
    waiting = backlog.Backlog(lambda: seconds[0])
    waiting.open()
    waiting.add(NAME, within=0.0)
    monkeypatch.setattr(due_threads, "wait", _away)
    assert list(scheduler.Scheduler().due_names(waiting)) == [NAME]


def _away(*_: object) -> float:
    raise ConnectionError
