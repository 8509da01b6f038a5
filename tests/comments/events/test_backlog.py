"""Each thread in a process's backlog becomes due at the right time and only once."""

import math
from datetime import timedelta

import pytest

from comments import errors
from comments.domain import records
from comments.events import backlog
from comments.posting import own_comment
from comments.reading import listings, thread_pages
from comments.store import connection
from tests.comments.conftest import Clock
from tests.support.threads import sample_threads

NAME = records.ThreadName("demo", "page")
OTHER = records.ThreadName("demo", "other")


@pytest.fixture
def waiting(clock: Clock) -> backlog.Backlog:
    made = backlog.Backlog(clock)
    made.open()
    return made


def test_a_thread_is_due_after_enough_changes(waiting: backlog.Backlog) -> None:
    for _ in range(backlog.FOLD_ROWS - 1):
        waiting.add(NAME)
    assert waiting.take() == []
    waiting.add(NAME)
    assert waiting.take() == [NAME]
    assert waiting.take() == []


def test_a_thread_is_due_some_time_after_its_first_change(
    waiting: backlog.Backlog, clock: Clock
) -> None:
    waiting.add(NAME)
    clock.now += backlog.FOLD_AFTER - 1
    waiting.add(NAME)
    waiting.add(OTHER)
    assert waiting.take() == []
    clock.now += 1
    assert waiting.take() == [NAME]


def test_an_erasure_does_not_wait_for_other_changes(waiting: backlog.Backlog, clock: Clock) -> None:
    waiting.add(OTHER)
    waiting.add(NAME)
    waiting.add(NAME, within=backlog.ERASE_AFTER)
    clock.now += backlog.ERASE_AFTER
    assert waiting.take() == [NAME]


def test_without_a_worker_nothing_is_kept(clock: Clock) -> None:
    waiting = backlog.Backlog(clock)
    waiting.add(NAME)
    assert len(waiting) == 0
    assert not waiting.wait(math.inf)


@pytest.fixture
def due(store: connection.Store, clock: Clock) -> backlog.Backlog:
    """The store's open backlog."""
    made = backlog.BACKLOG.put(store, backlog.Backlog(clock))
    made.open()
    return made


def test_changes_put_the_thread_into_the_backlog_and_reads_do_not(
    due: backlog.Backlog, clock: Clock, site: records.Site
) -> None:
    row = sample_threads.post(site, "text", key="0123456789abcdef")
    assert len(due) == 1
    clock.now += backlog.FOLD_AFTER
    assert due.take() == [NAME]
    later = sample_threads.START + timedelta(seconds=1)
    sample_threads.post(site, "text", key="0123456789abcdef", now=later)  # Changes nothing
    listings.page(
        sample_threads.SETTINGS.scheme,
        NAME,
        thread_pages.PageRequest(10, None, sample_threads.SETTINGS.secret),
    )
    assert len(due) == 0
    for verb in ("edit", "retract"):
        if verb == "edit":
            own_comment.edit(
                row.id,
                author_id=row.author.id,
                body="new",
                revision=None,
                settings=sample_threads.SETTINGS,
                now=sample_threads.START,
            )
        else:
            own_comment.retract(
                row.id, author_id=row.author.id, revision=None, now=sample_threads.START
            )
        clock.now += backlog.ERASE_AFTER
        assert due.take() == [NAME]


def test_a_refused_post_is_not_in_the_backlog(due: backlog.Backlog, site: records.Site) -> None:
    with pytest.raises(errors.NotFound):
        sample_threads.post(site, "text", "a" * 26)
    assert len(due) == 0
