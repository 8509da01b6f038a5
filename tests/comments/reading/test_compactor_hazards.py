"""Compaction never misleads readers in any of these hazardous step orders."""

import time
from collections.abc import Callable

import pytest

from comments.domain import presentation, records
from comments.posting import own_comment
from comments.reading.compaction import bucket_layout, compactor, leftovers
from comments.reading.materialized import (
    buckets,
    deltas,
    directories,
    first_page,
    thread_view,
    view_cache,
)
from comments.store import connection, reads, transactions
from comments.store.models import comment_rows
from comments.tree.bulk import job_writes
from comments.tree.lists import ordered_query
from datastore_emulator import inprocess, testing
from tests.support.threads import compaction, reader_processes, sample_threads

SCHEME = sample_threads.SETTINGS.scheme


@pytest.fixture(autouse=True)
def _entered(store: connection.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run all these tests inside the store, with buckets small enough for a short thread."""
    compaction.small_buckets(monkeypatch)


@pytest.fixture
def name(site: records.Site) -> records.ThreadName:
    return sample_threads.name_of(site)


@pytest.fixture
def ten_compacted(site: records.Site) -> dict[str, records.Comment]:
    """Ten comments, compacted and cleared."""
    rows = sample_threads.grow(site, {str(n): {f"{n}.1": {}} for n in range(5)})
    compaction.whole(sample_threads.name_of(site))
    return rows


def _prepare(name: records.ThreadName) -> compactor.PreparedBuckets:
    prepared = compactor.prepare(SCHEME, name)
    assert prepared is not None
    return prepared


def _edit(comment: records.Comment, body: str) -> None:
    own_comment.edit(
        comment.id,
        author_id=comment.author.id,
        body=body,
        revision=None,
        settings=sample_threads.SETTINGS,
        now=sample_threads.START,
    )


def _row(comment: records.Comment) -> comment_rows.CommentRow:
    row: comment_rows.CommentRow = reads.get(comment_rows.comment_key(comment.id))
    return row


def _assert_reader_right(name: records.ThreadName) -> None:
    """Check that a view and the ordered query have the same rows, total and subtree sizes."""
    rows = ordered_query.thread(name)
    found = compaction.with_view(name, lambda view: [entry.json for entry in view.rows()])
    assert found == [presentation.fragment(row) for row in rows]
    assert thread_view.view(name).total == len(rows)
    sizes = compaction.with_view(name, lambda view: [view.below(row.sort_hash) for row in rows])
    assert sizes == [
        sum(row.sort_hash.startswith(above.sort_hash) for row in rows) - 1 for above in rows
    ]


def _stored_buckets(name: records.ThreadName) -> set[str]:
    query = reads.Query("Bucket", ancestor=comment_rows.thread_key(name), keys_only=True)
    return {message.key.path[-1].name for message in reads.fetch(query)}


def _named(name: records.ThreadName) -> set[str]:
    directory = directories.load_directory(name)
    return {line.key for line in directory.lines}.union(directories.parts_of(name))


def test_a_switch_is_refused_after_another_compaction_and_clearing(
    site: records.Site, name: records.ThreadName, ten_compacted: dict[str, records.Comment]
) -> None:
    sample_threads.post(site, "mine")
    slow = _prepare(name)
    sample_threads.post(site, "theirs")
    compaction.whole(name)
    assert compactor.switch(slow) is None
    compaction.forget()
    _assert_reader_right(name)
    assert _stored_buckets(name) == _named(name)


def test_a_switch_is_refused_if_its_buckets_were_swept_before(
    site: records.Site,
    name: records.ThreadName,
    ten_compacted: dict[str, records.Comment],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(first_page, "ROWS", 1)  # The first page reads no missing bucket
    for number in range(4):
        sample_threads.post(site, f"new {number}")
    prepared = _prepare(name)
    assert prepared.written
    leftovers.delete_orphans(name, leftovers.orphans(name))
    assert compactor.switch(prepared) is None
    compaction.forget()
    _assert_reader_right(name)


def test_a_bucket_that_a_switch_named_since_the_sweep_is_not_deleted(
    site: records.Site, name: records.ThreadName, ten_compacted: dict[str, records.Comment]
) -> None:
    for number in range(4):
        sample_threads.post(site, f"new {number}")
    prepared = _prepare(name)
    found = leftovers.orphans(name)
    assert set(found) == set(prepared.written)
    assert compactor.switch(prepared) is not None
    leftovers.delete_orphans(name, found)
    compaction.forget()
    _assert_reader_right(name)


def test_a_refused_switch_leaves_no_bucket_behind(
    site: records.Site, name: records.ThreadName, ten_compacted: dict[str, records.Comment]
) -> None:
    for number in range(4):
        sample_threads.post(site, f"new {number}")
    first, second = _prepare(name), _prepare(name)
    folded = compactor.switch(first)
    assert folded is not None
    assert second.written
    assert compactor.switch(second) is None
    compactor.clear(folded)
    assert _stored_buckets(name) == _named(name)
    compaction.forget()
    _assert_reader_right(name)


def test_two_attempts_never_write_the_same_key(
    site: records.Site, name: records.ThreadName, ten_compacted: dict[str, records.Comment]
) -> None:
    for number in range(4):
        sample_threads.post(site, f"new {number}")
    first, second = _prepare(name), _prepare(name)
    assert first.written
    assert not set(first.written) & set(second.written)


def test_a_row_that_changed_between_compaction_and_clearing_keeps_its_flag(
    name: records.ThreadName, ten_compacted: dict[str, records.Comment]
) -> None:
    _edit(ten_compacted["1"], "first edit")
    folded = compactor.compact(SCHEME, name)
    assert folded is not None
    _edit(ten_compacted["1"], "second edit")
    compactor.clear(folded)
    assert _row(ten_compacted["1"]).unfolded
    compaction.forget()
    _assert_reader_right(name)


@pytest.mark.parametrize("verb", ["edit", "retract"])
@pytest.mark.parametrize("tail", [0, 100])
def test_a_change_after_clearing_counts_once(
    site: records.Site,
    name: records.ThreadName,
    verb: str,
    tail: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compactor, "TAIL_ROWS", tail)
    rows = sample_threads.grow(site, {"a": {"b": {}, "c": {}}, "d": {}})
    compaction.whole(name)
    assert {_row(row).shelved for row in rows.values()} == {True}
    for text in ("c", "d"):
        sample_threads.retract(rows[text]) if verb == "retract" else _edit(rows[text], "new")
        compaction.forget()
        _assert_reader_right(name)
    compaction.whole(name)
    assert _row(rows["d"]).shelved == (verb == "edit")
    compaction.forget()
    _assert_reader_right(name)


def test_a_reader_whose_bucket_was_deleted_reloads_and_reads_right(
    site: records.Site, name: records.ThreadName, ten_compacted: dict[str, records.Comment]
) -> None:
    view = thread_view.view(name)
    for row in ten_compacted.values():
        _edit(row, f"edit of {row.body}")
    compaction.whole(name)
    with pytest.raises(directories.DirectoryOutdated):
        list(view.rows())
    _assert_reader_right(name)


def test_a_newer_row_in_the_directory_replaces_an_older_one_in_the_delta() -> None:
    old = buckets.ListedEntry("AA", "id", 1, b"old")
    newer = buckets.ChangedEntry("AA", "id", 2, b"new", held=True)
    directory = buckets.Directory("v", buckets.DirectoryContent(tail=(newer,)))
    row = deltas.DeltaRow(
        old,
        is_listed=True,
        shelved=True,
        rewrites=False,
        changed=sample_threads.START,
        votes=(0, 0),
    )
    assert deltas.merge(directory, [row]) == [newer]


def test_a_cached_row_is_read_again_at_its_next_revision(
    name: records.ThreadName, ten_compacted: dict[str, records.Comment]
) -> None:
    for text in ("one", "two"):
        _edit(ten_compacted["1"], text)
        _assert_reader_right(name)


def test_a_directory_larger_than_one_entity_is_read_right(
    site: records.Site, name: records.ThreadName, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bucket_layout, "PART_BYTES", 50)
    sample_threads.grow(site, {str(n): {f"{n}.1": {}} for n in range(10)})
    for number in range(3):
        sample_threads.post(site, f"more {number}")
        compaction.whole(name)
        assert len(directories.parts_of(name)) > 1
        compaction.forget()
        _assert_reader_right(name)
        # The parts of earlier directories are deleted together with these directories.
        assert _stored_buckets(name) == _named(name)


def test_rows_stored_by_an_older_release_are_in_the_first_directory(
    site: records.Site, name: records.ThreadName
) -> None:
    rows = sample_threads.grow(site, {"a": {"b": {}}, "c": {}})

    def body() -> None:
        seen = {row.id: (row.revision, False) for row in rows.values()}
        # Older releases stored rows that are neither flagged nor in a bucket.
        transactions.apply(job_writes.compaction_writes(seen))

    transactions.transaction(body)
    sample_threads.post(site, "new")
    compaction.whole(name)
    _assert_reader_right(name)
    sample_threads.retract(rows["b"])
    _assert_reader_right(name)


def test_reading_writes_nothing_at_any_stage_of_a_compaction(
    site: records.Site,
    name: records.ThreadName,
    ten_compacted: dict[str, records.Comment],
    engine: inprocess.Engine,
) -> None:
    sample_threads.post(site, "new")
    prepared = _prepare(name)
    folded: list[compactor.CompactionResult] = []

    def switch() -> None:
        switched = compactor.switch(prepared)
        assert switched is not None
        folded.append(switched)

    steps: list[Callable[[], object]] = [switch, lambda: compactor.clear(folded[0]), lambda: None]
    for step in steps:
        with testing.meter(engine) as met:
            compaction.forget()
            _assert_reader_right(name)
        assert (met.writes, met.deletes) == (0, 0)
        step()


def test_compacted_rows_are_not_read_again_while_they_are_still_flagged(
    site: records.Site,
    name: records.ThreadName,
    ten_compacted: dict[str, records.Comment],
    engine: inprocess.Engine,
) -> None:
    for number in range(20):
        sample_threads.post(site, f"new {number}")
    folded = compactor.compact(SCHEME, name)
    assert folded is not None
    compaction.forget()
    with testing.meter(engine) as met:
        list(thread_view.view(name).rows())
    assert met.reads == 2 + len(folded.directory.lines)  # Directory, probe, and buckets


@pytest.mark.parametrize("verb", ["edit", "retract"])
def test_an_erased_text_is_in_no_stored_byte_after_compaction_and_clearing(
    site: records.Site, name: records.ThreadName, verb: str
) -> None:
    ann = records.Author(name="Ann", id="g:ann")
    in_bucket = sample_threads.post(site, "quetzalcoatlus one", author=ann)
    sample_threads.grow(site, {str(n): {} for n in range(6)})
    compaction.whole(name)
    in_tail = sample_threads.post(site, "quetzalcoatlus two", author=ann)
    compaction.whole(name)
    not_folded = sample_threads.post(site, "quetzalcoatlus three", author=ann)
    # The buckets of an unfinished compaction also contain the text.
    orphan = _attempt_that_is_left(site, name)
    assert _kinds_that_hold("quetzalcoatlus") == {"Comment", "Bucket", "BucketDirectory"}
    for row in (in_bucket, in_tail, not_folded):
        _edit(row, "nothing") if verb == "edit" else sample_threads.retract(row)
    found = leftovers.orphans(name)
    assert set(orphan.written) <= set(found)
    compaction.whole(name)
    leftovers.delete_orphans(name, found)
    assert _kinds_that_hold("quetzalcoatlus") == set()
    # After an edit, the first page still contains the author's name.
    held = {"Comment", "Bucket", "BucketDirectory"}
    assert _kinds_that_hold("Ann") == (held if verb == "edit" else set())
    _assert_reader_right(name)


def _attempt_that_is_left(
    site: records.Site, name: records.ThreadName
) -> compactor.PreparedBuckets:
    for number in range(6):
        sample_threads.post(site, f"later {number}")
    prepared = _prepare(name)
    assert prepared.written
    return prepared


def _kinds_that_hold(text: str) -> set[str]:
    """Return the kinds of all entities that contain a text, plain or compressed."""
    return {
        kind
        for kind in ("Comment", "Bucket", "BucketDirectory")
        for message in reads.fetch(reads.Query(kind))
        if text.encode() in message.SerializeToString() + reader_processes.decompressed(message)
    }


def test_the_list_of_cleared_rows_does_not_stay_in_the_directory(
    site: records.Site, name: records.ThreadName, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compactor, "MOST_CLEARING", 5)
    posted = [sample_threads.post(site, f"c{number}") for number in range(12)]
    folded = compactor.compact(SCHEME, name)
    assert folded is not None
    assert len(folded.directory.content.clearing) == 12
    _edit(posted[3], "changed before it was cleared")
    compactor.clear(folded)
    left = {each.id for each in directories.load_directory(name).content.clearing}
    # The list keeps the changed row and the rows that are cleared last: after a crash, their flags
    # lead a later compaction to the thread.
    assert posted[3].id in left
    assert len(left) == 1 + compactor.MOST_CLEARING
    assert _row(posted[3]).unfolded
    assert not any(_row(each).unfolded for each in posted if each is not posted[3])
    compaction.forget_directory(name)
    found = compaction.with_view(name, lambda view: ([row.json for row in view.rows()], view.total))
    rows = ordered_query.thread(name)
    assert found == ([presentation.fragment(row) for row in rows], len(rows))


def test_a_machine_that_slept_reads_its_directory_again(
    site: records.Site,
    name: records.ThreadName,
    ten_compacted: dict[str, records.Comment],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Advance only the clock that includes the time asleep."""
    asleep = 0.0
    real = time.clock_gettime

    def clock(which: int) -> float:
        return real(which) + asleep if which == time.CLOCK_BOOTTIME else real(which)

    monkeypatch.setattr(time, "clock_gettime", clock)
    compaction.forget()
    _assert_reader_right(name)
    sample_threads.post(site, "while it slept")
    sample_threads.retract(ten_compacted["1"])
    compaction.whole(name)
    asleep = view_cache.CACHE_MAX_AGE
    _assert_reader_right(name)
