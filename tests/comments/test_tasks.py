"""Claims about the backlog: when a thread is due, once, and who keeps one."""

import math
from datetime import timedelta

import pytest

from comments import datastore, errors, posting, reading, records, tasks
from tests import trees
from tests.comments.conftest import Clock

NAME = records.ThreadName("demo", "page")
OTHER = records.ThreadName("demo", "other")


@pytest.fixture
def waiting(clock: Clock) -> tasks.Backlog:
    made = tasks.Backlog(clock)
    made.open()
    return made


def test_a_thread_is_due_when_enough_of_it_changed(waiting: tasks.Backlog) -> None:
    for _ in range(tasks.FOLD_ROWS - 1):
        waiting.add(NAME)
    assert waiting.take() == []
    waiting.add(NAME)
    assert waiting.take() == [NAME]
    assert waiting.take() == []


def test_a_thread_is_due_some_time_after_its_first_change(
    waiting: tasks.Backlog, clock: Clock
) -> None:
    waiting.add(NAME)
    clock.now += tasks.FOLD_AFTER - 1
    waiting.add(NAME)
    waiting.add(OTHER)
    assert waiting.take() == []
    clock.now += 1
    assert waiting.take() == [NAME]


def test_an_erasure_does_not_wait_for_company(waiting: tasks.Backlog, clock: Clock) -> None:
    waiting.add(OTHER)
    waiting.add(NAME)
    waiting.add(NAME, within=tasks.ERASE_AFTER)
    clock.now += tasks.ERASE_AFTER
    assert waiting.take() == [NAME]


def test_without_a_worker_nothing_is_kept(clock: Clock) -> None:
    waiting = tasks.Backlog(clock)
    waiting.add(NAME)
    assert len(waiting) == 0
    assert not waiting.wait(math.inf)


@pytest.fixture
def due(store: datastore.Store, clock: Clock) -> tasks.Backlog:
    """The backlog of the store."""
    made = store.kept(tasks.HOLDINGS, lambda: tasks.Backlog(clock))
    made.open()
    return made


def test_what_people_do_puts_the_thread_into_the_backlog_and_reading_does_not(
    due: tasks.Backlog, clock: Clock, site: records.Site
) -> None:
    row = trees.post(site, "text", key="0123456789abcdef")
    assert len(due) == 1
    clock.now += tasks.FOLD_AFTER
    assert due.take() == [NAME]
    later = trees.START + timedelta(seconds=1)
    trees.post(site, "text", key="0123456789abcdef", now=later)  # a repeat changes nothing
    reading.page(trees.SETTINGS.scheme, NAME, reading.Asked(10, None, trees.SETTINGS.secret))
    assert len(due) == 0
    for verb in ("edit", "retract"):
        if verb == "edit":
            posting.edit(
                row.id,
                author_id=row.author.id,
                body="new",
                revision=None,
                settings=trees.SETTINGS,
                now=trees.START,
            )
        else:
            posting.retract(row.id, author_id=row.author.id, revision=None, now=trees.START)
        clock.now += tasks.ERASE_AFTER
        assert due.take() == [NAME]


def test_what_was_refused_is_not_in_the_backlog(due: tasks.Backlog, site: records.Site) -> None:
    with pytest.raises(errors.NotFound):
        trees.post(site, "text", "a" * 26)
    assert len(due) == 0
