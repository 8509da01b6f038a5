"""Imports store every comment once and in order, and they can be resumed."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from comments import errors
from comments.domain import records
from comments.domain.ids import sorthash
from comments.domain.records import Status
from comments.store import reads
from comments.store.models import comment_rows
from comments.transfer import import_source
from comments.transfer.checking import checked_import, import_batches
from comments.transfer.importing import import_writer
from comments.tree.lists import ordered_query
from comments.upkeep.integrity import repair
from datastore_emulator import inprocess, testing
from tests.conftest import ROOT
from tests.support import datastores
from tests.support.threads import sample_exports
from tests.support.threads.sample_exports import (
    NOW,
    ROSES,
    SCHEME,
    THREAD,
    entities,
    plan_of,
    planned,
    post,
    rows,
    source_ids,
    write,
)

INDEXES = ROOT / "index.yaml"


def test_an_import_stores_everything_in_order(garden: records.Site) -> None:
    with planned("disqus.xml") as plan:
        steps: list[int] = []
        summary = import_writer.write(plan, scheme=SCHEME, now=NOW, progress=steps.append)
        assert summary == import_writer.ImportSummary(added=12, present=0, threads=2)
        assert sum(steps) == 12
        assert source_ids([row for row in rows() if row.thread == ROSES.id], plan) == (
            ["108", "101", "103", "104", "105", "102", "106", "107", "109"]
        )
        listed = source_ids(list(ordered_query.thread(ROSES)), plan)
    # 104 was retracted but is kept because of its reply; 106 is spam.
    assert listed == ["108", "101", "103", "104", "105", "102", "107", "109"]
    assert repair.find_problems(SCHEME, ROSES) == []


def test_extreme_dates_are_kept(garden: records.Site) -> None:
    with planned("disqus.xml") as plan:
        write(plan)
    years = {row.created.year for row in rows()}
    assert {1900, 9999} <= years


def test_importing_again_adds_nothing_and_changes_nothing(garden: records.Site) -> None:
    with planned("disqus.xml") as plan:
        write(plan)
        before = rows()
        assert write(plan) == import_writer.ImportSummary(added=0, present=12, threads=2)
    assert rows() == before


def test_a_later_export_is_appended(garden: records.Site, export: Callable[..., Path]) -> None:
    first = [post("1", minute=5), post("2", "1", minute=9)]
    with plan_of(export(THREAD, *first)) as plan:
        write(plan)
    more = [post("3", "1", minute=7), post("4", minute=1)]
    with plan_of(export(THREAD, *first, *more)) as plan:
        assert write(plan).added == 2
        # Numbers are never reused, so later imports come last regardless of their dates.
        assert source_ids(rows(), plan) == ["1", "2", "3", "4"]


@pytest.mark.slow
def test_more_siblings_than_two_digits_hold_keep_their_order(
    garden: records.Site, export: Callable[..., Path]
) -> None:
    replies = [post(str(n), "1", minute=n % 1440) for n in range(2, 2_600)]
    with plan_of(export(THREAD, post("1"), *replies)) as plan:
        write(plan)
        expected = sorted(range(2, 2_600), key=lambda n: (n % 1440, n))
        assert source_ids(rows(), plan) == ["1", *map(str, expected)]


def test_a_refused_file_leaves_nothing_behind(
    garden: records.Site, export: Callable[..., Path]
) -> None:
    with pytest.raises(errors.BadImport):
        plan_of(export(THREAD, post("1"), post("2", created="soon")))
    with planned("disqus.xml") as plan:
        assert plan.report.comments == 12
    assert entities() == 0


class Killed(BaseException):
    """An error that simulates the end of the process."""


@pytest.mark.parametrize("after", [1, 2, 3])
def test_an_interrupted_import_is_completed_by_another_run(
    garden: records.Site, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    monkeypatch.setattr(import_batches, "BATCH", 3)
    done: list[int] = []

    def kill(count: int) -> None:
        done.append(count)
        if len(done) == after:
            raise Killed

    with planned("disqus.xml") as plan, pytest.raises(Killed):
        import_writer.write(plan, scheme=SCHEME, now=NOW, progress=kill)
    assert len(rows()) == sum(done)
    with planned("disqus.xml") as plan:
        assert write(plan) == import_writer.ImportSummary(
            added=12 - sum(done), present=sum(done), threads=2
        )
        order = source_ids([row for row in rows() if row.thread == ROSES.id], plan)
    assert order == ["108", "101", "103", "104", "105", "102", "106", "107", "109"]
    assert all(repair.find_problems(SCHEME, name) == [] for name in repair.threads("garden"))


def imported_in_pieces(
    datastore: datastores.Datastore, path: Path, pieces: int
) -> list[records.Comment]:
    """Return the comments in a fresh store after `pieces` killed runs and a complete run."""
    scheme = sorthash.Scheme(levels=3)
    with datastore.connect().context(), plan_of(path, levels=3) as plan:
        for piece in range(pieces):
            # Each run stores one batch more than the previous run.
            left = iter(range(piece))
            with pytest.raises(StopIteration):
                import_writer.write(
                    plan,
                    scheme=scheme,
                    now=NOW,
                    progress=lambda _, left=left: next(left),  # type: ignore[misc]
                )
        write(plan, levels=3)
        return rows()


def test_an_interrupted_import_ends_like_an_uninterrupted_one(
    new_datastore: Callable[[], datastores.Datastore],
    monkeypatch: pytest.MonkeyPatch,
    export: Callable[..., Path],
) -> None:
    links = {n: None if n % 7 == 0 else str(n // 3) for n in range(40)}
    path = export(THREAD, *(post(str(n), links[n], minute=n) for n in links))
    monkeypatch.setattr(import_batches, "BATCH", 4)
    interrupted, whole = (imported_in_pieces(new_datastore(), path, each) for each in (10, 0))
    assert interrupted == whole


def test_comments_already_stored_in_another_thread_refuse_the_import_before_it_starts(
    garden: records.Site, export: Callable[..., Path]
) -> None:
    with plan_of(export(THREAD, post("1"))) as plan:
        write(plan)
    other = THREAD.replace("roses", "tulips")
    before = entities()
    path = export(other, post("0"), post("1"), post("2", "1"))
    with plan_of(path) as plan, pytest.raises(errors.BadImport) as caught:
        write(plan)
    assert caught.value.message.startswith(f"{path}:4: comment 1 belongs to thread ")
    assert entities() == before


def test_stored_comments_are_read_once_to_check_their_threads(
    garden: records.Site, engine: inprocess.Engine, export: Callable[..., Path]
) -> None:
    with plan_of(export(THREAD, post("1"))) as plan:
        write(plan)
    with planned("disqus.xml") as plan:
        with testing.meter(engine) as cost:
            import_writer.check(plan)
        # One read finds that no import is being undone, and one that the site has threads. The two
        # pages are read, and the one that exists costs two queries, with its one comment.
        assert cost.reads == 2 + plan.report.comments + 2 + 3
        with testing.meter(engine) as cost:
            import_writer.check(plan)
        assert cost.reads == 0
        assert write(plan).added == plan.report.comments


def test_the_first_import_of_a_website_reads_no_comments_to_check_their_threads(
    garden: records.Site, engine: inprocess.Engine
) -> None:
    with planned("disqus.xml") as plan:
        with testing.meter(engine) as cost:
            import_writer.check(plan)
        assert (cost.reads, cost.writes) == (0, 0)
        assert write(plan).added == plan.report.comments


def test_votes_edits_and_the_first_three_pins_of_a_thread_are_kept(
    garden: records.Site, tmp_path: Path
) -> None:
    def read(_: Path) -> Iterator[import_source.Item]:
        yield import_source.SourceThread("1", 1, "/roses")
        for n in range(5):
            yield import_source.SourceComment(
                "disqus",
                str(n),
                n + 2,
                "1",
                None,
                Status.PENDING if n == 0 else Status.APPROVED,
                NOW + timedelta(minutes=n),
                "Ada",
                f"text {n}",
                edited=NOW + timedelta(hours=n),
                up=n,
                down=1,
                pinned=True,
            )

    path = tmp_path / "export"
    path.touch()
    with checked_import.plan(
        read, path, site=garden, scheme=SCHEME, secret=sample_exports.SECRET
    ) as plan:
        write(plan)
    found = rows()
    assert {row.thread for row in found} == {ROSES.id}
    assert [(row.up, row.down, row.score) for row in found] == [(n, 1, n - 1) for n in range(5)]
    assert [row.edited for row in found] == [NOW + timedelta(hours=n) for n in range(5)]
    assert [row.pinned for row in found] == [False, True, True, True, False]
    pinned = ordered_query.pinned_comments(ROSES, thread_details(ROSES).pins)
    assert [row.id for row in pinned.comments] == [row.id for row in found[1:4]]
    assert repair.find_problems(SCHEME, ROSES) == []


def thread_details(name: records.ThreadName) -> comment_rows.ThreadRow:
    thread: comment_rows.ThreadRow = reads.get(comment_rows.thread_key(name))
    return thread
