"""A file can be imported again after the undo of its import."""

from pathlib import Path

import pytest

from comments.domain import records
from comments.store import transactions
from comments.tree import changes
from tests.support.histories import counter_oracle
from tests.support.threads import sample_threads
from tests.support.threads import undone_imports as undone
from tests.support.threads.undone_imports import EXPORT, NOW, ROSES, TULIPS, comment

pytestmark = pytest.mark.usefixtures("small_batches")


def test_the_same_file_can_be_imported_again_after_an_undo(
    garden: records.Site, path: Path
) -> None:
    undone.post(garden, "here before")
    first = undone.brought(path)
    undone.settle()
    before = undone.plain()
    undone.undo(first)
    undone.settle()
    second = undone.brought(path)
    assert (second.id != first.id, second.added) == (True, len(EXPORT))
    undone.assert_sound()
    undone.settle()
    undone.assert_sound()
    after = undone.plain()
    roots = {"number", "sort_hash", "slug", "author_email"}  # A thread that stayed counts on.
    roses = [key for key, row in after.items() if ROSES in row.get("thread_id", "")]
    for rows in (before, after):
        for key, row in rows.items():
            for name in roots if key in roses else {"author_email"}:
                row.pop(name, None)
    assert after == before
    undone.undo(second)
    undone.assert_sound()
    assert undone.bodies().keys().isdisjoint(undone.ids().values())


def test_a_comment_that_is_imported_again_with_another_text_is_shown_with_it(
    garden: records.Site, tmp_path: Path
) -> None:
    """A process that has read the removed comment does not show it instead."""
    undone.post(garden, "here before")
    undone.settle()
    first = undone.brought(undone.saved(tmp_path / "first", [comment("1")]))
    undone.assert_sound()
    undone.undo(first)
    undone.settle()
    other = [comment("1", body="another text")]
    undone.brought(undone.saved(tmp_path / "second", other))
    undone.assert_sound()
    assert sample_threads.listed(garden, ROSES) == ["here before", "another text"]


def test_another_import_fills_the_places_that_an_undo_kept(
    garden: records.Site, path: Path
) -> None:
    found = undone.brought(path)
    undone.settle()
    imported = undone.ids()
    undone.post(garden, "to an import", imported["4"])
    undone.post(garden, "a tulip", imported["10"], TULIPS)
    shown = sample_threads.listed(garden, ROSES), sample_threads.listed(garden, TULIPS)
    ended = undone.undo(found)
    assert ended.kept == 5
    again = undone.brought(path)
    undone.assert_sound()
    counter_oracle.assert_all_counted()
    assert again.added == len(EXPORT)
    assert undone.ids() == imported
    assert sample_threads.listed(garden, TULIPS) == shown[1]
    assert sorted(sample_threads.listed(garden, ROSES)) == sorted(shown[0])
    assert undone.undo(again).kept == 5
    undone.assert_sound()


def test_an_erased_comment_that_no_import_brought_back_stays_erased(
    garden: records.Site, path: Path
) -> None:
    """A comment that its author had erased is not restored by importing the file again."""
    found = undone.brought(path)
    one = undone.ids()["4"]
    transactions.transaction(
        lambda: transactions.apply(*changes.retract(one, now=NOW, check=lambda _: None).writes)
    )
    undone.brought(path)
    assert undone.bodies()[one] == ""
    undone.deliver()
    undone.assert_sound()
    undone.undo(found)
    assert one not in undone.bodies()
