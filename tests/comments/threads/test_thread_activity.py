"""Test the time of a thread's newest comment, by which moderators see the threads of a site."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comments.domain import records
from comments.moderation import thread_list
from comments.store import connection, ownership, reads, transactions
from comments.store.models import comment_rows
from comments.threads import activity
from comments.transfer.formats import flatthread
from comments.upkeep.migrations import upgrades
from tests.support.importing.samples import flatthread as samples
from tests.support.threads import sample_exports, sample_threads
from tests.support.threads.sample_threads import START

PAGE = records.ThreadName("demo", "page")
SECRET = "a secret of the tests"


@pytest.fixture(autouse=True)
def _entered(store: connection.Store) -> None:
    """Run all these tests inside the store."""


def _row(name: records.ThreadName = PAGE) -> comment_rows.ThreadRow:
    row: comment_rows.ThreadRow = reads.get(comment_rows.thread_key(name))
    return row


def _active(name: records.ThreadName = PAGE) -> datetime | None:
    return _row(name).active


def _listed(text: str = "") -> list[str]:
    found = thread_list.active_threads(thread_list.ThreadFilter("demo", text), secret=SECRET)
    return [each.name.id for each in found.threads]


def test_a_root_sets_the_time_and_replies_set_it_once_in_a_while(site: records.Site) -> None:
    first = sample_threads.post(site, "1", now=START)
    sample_threads.post(site, "2", now=START + timedelta(seconds=5))
    assert _active() == START + timedelta(seconds=5)
    soon = START + timedelta(seconds=4) + activity.PACE
    sample_threads.post(site, "1.1", first.id, now=soon)
    assert _active() == START + timedelta(seconds=5)  # The reply did not write the thread's row.
    late = START + timedelta(seconds=5) + activity.PACE
    sample_threads.post(site, "1.2", first.id, now=late)
    assert _active() == late
    assert _row().child_count == 2
    # A process with a clock that is behind does not turn the time back.
    sample_threads.post(site, "3", now=START)
    assert _active() == late


@given(st.lists(st.integers(0, 5_000), min_size=1))
def test_the_time_is_never_more_than_the_pace_too_early(steps: list[int]) -> None:
    thread = comment_rows.ThreadRow(key=comment_rows.thread_key_of("demo/page"))
    stored, newest = None, START
    for step in steps:
        created = START + timedelta(seconds=step)
        newest = max(newest, created) if stored is not None else created
        thread.active = stored
        if activity.advance(thread, created):
            stored = thread.active
        assert stored is not None
        assert stored <= newest < stored + activity.PACE


def test_a_thread_with_a_new_reply_moves_to_the_front(site: records.Site) -> None:
    rows = [
        sample_threads.post(site, "x", thread=f"t{n}", now=START + timedelta(hours=n))
        for n in range(3)
    ]
    assert _listed() == ["t2", "t1", "t0"]
    sample_threads.post(site, "y", rows[0].id, thread="t0", now=START + timedelta(hours=9))
    assert _listed() == ["t0", "t2", "t1"]


def test_an_upgrade_finds_the_newest_comment_that_readers_see(site: records.Site) -> None:
    for number, name in enumerate(("page", "other", "empty")):
        first = sample_threads.post(site, "x", thread=name, now=START + timedelta(hours=number))
        more = sample_threads.post(
            site, "y", first.id, thread=name, now=START + timedelta(hours=number, minutes=3)
        )
        if name == "empty":
            sample_threads.retract(more)
            sample_threads.retract(first)
        _forget(records.ThreadName("demo", name))
    assert _listed() == []
    upgrades.begin()
    upgrades.go_on(steps=None)
    assert _active() == START + timedelta(minutes=3)
    assert _active(records.ThreadName("demo", "empty")) == START + timedelta(hours=2)
    assert _listed() == ["empty", "other", "page"]


def _forget(name: records.ThreadName) -> None:
    """Write a thread's row as an older release did."""

    def body() -> None:
        row = _row(name)
        row.active = None
        transactions.apply(ownership.Writes("tree", put=(row,)))

    transactions.transaction(body)


def test_an_imported_thread_is_as_old_as_its_newest_comment(
    store: connection.Store, tmp_path: Path
) -> None:
    path = sample_exports.saved(tmp_path / "disqus.xml", *sample_exports.threads_of([2, 30]))
    for _ in range(2):
        with sample_exports.plan_of(path) as plan:
            sample_exports.write(plan)
        for number, size in ((1, 2), (2, 30)):
            found = _active(records.ThreadName("garden", f"garden.example/page{number}"))
            assert found == datetime(2015, 1, 1, 0, size - 1, tzinfo=UTC)


def test_an_import_into_a_known_thread_is_no_activity(
    store: connection.Store, tmp_path: Path
) -> None:
    path, lines = tmp_path / "disqus.xml", sample_exports.threads_of([2])
    before = None
    for more in ([], [sample_exports.post("new", "1000", created="2019-05-05T00:00:00Z")]):
        with sample_exports.plan_of(sample_exports.saved(path, *lines, *more)) as plan:
            sample_exports.write(plan)
        found = _active(records.ThreadName("garden", "garden.example/page1"))
        before = before or found
    assert found == before


def test_an_imported_thread_without_comments_is_as_old_as_in_its_export(
    store: connection.Store, tmp_path: Path
) -> None:
    path = tmp_path / "export.jsonl"
    empty = samples.thread(samples.EMPTY, created="2015-03-04T00:00:00Z")
    path.write_bytes(samples.lines(samples.HEADER, empty, {"kind": "end"}))
    with sample_exports.planned_by(flatthread.read, path) as plan:
        sample_exports.write(plan)
    found = _active(records.ThreadName("garden", samples.EMPTY))
    assert found == datetime(2015, 3, 4, tzinfo=UTC)
