"""A verification compares everything that an import stores, and changes nothing."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from comments.domain import records
from comments.domain.ids import sorthash
from comments.store.models import comment_rows
from comments.transfer.checking import checked_import
from comments.transfer.formats import wordpress
from comments.transfer.importing import import_journal
from comments.transfer.verification import verification_report
from comments.upkeep.integrity import repair
from tests.support.importing.verified_imports import named, verify
from tests.support.threads import raw_changes, sample_threads
from tests.support.threads.sample_exports import ROSES, THREAD, plan_of, planned, post, rows, write


@pytest.mark.parametrize("levels", [1, 2, 8])
@pytest.mark.parametrize(("name", "reader"), [("disqus.xml", None), ("wordpress.xml", wordpress)])
def test_an_import_is_what_its_file_has(
    garden: records.Site, name: str, reader: Any, levels: int
) -> None:
    sample_threads.shaped(garden, sorthash.Scheme(levels=levels))
    more = {} if reader is None else {"reader": reader.read}
    with planned(name, levels=levels, **more) as plan:
        write(plan, levels)
        found = verify(plan)
    assert found.differences == ()
    assert found.in_store == found.in_file
    assert found.in_file.comments == len(rows())
    assert found.in_file.threads == len(list(repair.threads("garden")))
    assert (found.other_comments, found.other_threads) == (0, 0)


def test_the_totals_count_the_file(plan: checked_import.CheckedImport) -> None:
    found = verify(plan)
    assert (found.in_file.comments, found.in_file.threads) == (12, 2)


def test_nothing_is_written(plan: checked_import.CheckedImport) -> None:
    before = rows(), import_journal.recent_imports("garden")
    verify(plan)
    assert (rows(), import_journal.recent_imports("garden")) == before


def test_what_the_import_leaves_out_is_counted(garden: records.Site) -> None:
    with planned("wordpress.xml", wordpress.read) as plan:
        write(plan)
        found = verify(plan)
    assert found.differences == ()
    lines = list(verification_report.lines(found))
    assert "Left out: items that are not comments (2)" in lines
    assert not [line for line in lines if "imported" in line or "skipped" in line]


def test_posts_are_counted_and_are_no_difference(
    garden: records.Site, plan: checked_import.CheckedImport
) -> None:
    sample_threads.post(garden, "a reply", plan.id_of("101"), thread=ROSES.id)
    sample_threads.post(garden, "elsewhere", thread="garden.example/new")
    found = verify(plan)
    assert found.differences == ()
    assert (found.other_comments, found.other_threads) == (2, 1)


def test_a_thread_that_kept_its_levels_is_compared_in_its_own_order(
    garden: records.Site, export: Callable[..., Path]
) -> None:
    replies = (post("2", "1", minute=1), post("3", "2", minute=9), post("4", "1", minute=5))
    path = export(THREAD, post("1"), *replies)
    sample_threads.shaped(garden, sorthash.Scheme(levels=2))
    with plan_of(path, levels=2) as plan:
        write(plan, levels=2)
        assert [row.number for row in rows()] == [0, 1, 2, 3]
    with plan_of(path, levels=8) as plan:
        assert [node.id for node in plan.threads[0].nodes] == ["1", "2", "3", "4"]
        assert verify(plan).differences == ()


@pytest.mark.embedded
def test_a_verification_needs_no_further_index(
    plan: checked_import.CheckedImport, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw_changes.delete_comments(plan.id_of("105"))
    raw_changes.comment(plan.id_of("101"), pinned=True)
    raw_changes.change(comment_rows.thread_key(ROSES), state="closed")

    def make(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr("datastore_emulator.execution.lazy_indexes.make", make)
    assert {field for _, field in named(verify(plan))} == {
        "comment", "pinned", "state",
    }  # fmt: skip
