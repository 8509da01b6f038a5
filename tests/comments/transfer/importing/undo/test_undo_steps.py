"""An undo can be interrupted at any step, and readers see a consistent thread at each."""

from datetime import timedelta
from pathlib import Path

import pytest

from comments.domain import records
from comments.events import audit_log
from comments.transfer.importing import import_journal, import_undo, running_import
from comments.tree.bulk import bulk_removal
from tests.support.histories import counter_oracle
from tests.support.store_interceptors import Commits, InterceptorSlot
from tests.support.threads import compaction, sample_threads
from tests.support.threads import undone_imports as undone
from tests.support.threads.undone_imports import EXPORT, NOW, ROSES, TULIPS

pytestmark = pytest.mark.usefixtures("small_batches")


@pytest.mark.slow
def test_readers_see_no_removed_comment_at_any_step(
    garden: records.Site, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_removal, "AT_ONCE", 2)
    found = undone.brought(path)
    undone.settle()
    imported = undone.ids()
    undone.post(garden, "to an import", imported["2"])
    undone.settle()
    undone.begin(found)
    steps = shown = 0
    while True:
        done = import_undo.go_on("garden", found.id, now=NOW, steps=1)
        steps += 1
        undone.assert_sound()
        if steps % 3 == 0:
            compaction.forget()
            undone.assert_sound()
        if steps % 5 == 0 or not done.is_left:
            undone.settle()
        texts = sample_threads.listed(garden, ROSES)
        assert len(texts) <= (shown or len(texts))
        shown = len(texts)
        if done.found.undone:
            break
    assert steps > len(EXPORT) // 2
    assert shown == 3


def test_the_last_comment_of_a_compacted_thread_waits_for_a_compaction(
    garden: records.Site, path: Path
) -> None:
    found = undone.brought(path)
    undone.settle()
    undone.begin(found)
    done = import_undo.go_on("garden", found.id, now=NOW)
    assert (len(done.waiting), done.found.undone) == (2, None)  # Readers never saw the lilies.
    assert {name.id for name in undone.threads()} >= {ROSES, TULIPS}
    undone.deliver()
    undone.settle()
    done = import_undo.go_on("garden", found.id, now=NOW)
    assert (done.waiting, done.found.undone) == ((), NOW)
    assert undone.threads() == []
    assert import_undo.go_on("garden", found.id, now=NOW).found == done.found


@pytest.mark.parametrize("lost", [2, 3, 5])
def test_an_undo_whose_answers_are_lost_removes_and_counts_each_comment_once(
    garden: records.Site, path: Path, interceptor: InterceptorSlot, lost: int
) -> None:
    found = undone.brought(path)
    undone.settle()
    undone.post(garden, "to an import", undone.ids()["2"])
    undone.deliver()
    interceptor.use(Commits()).plan = ["" if n % lost else "after" for n in range(1, 60)]
    ended = undone.undo(found)
    assert (ended.removed, ended.kept) == (len(EXPORT) - 2, 2)
    undone.assert_sound()
    counter_oracle.assert_all_counted()
    assert len(audit_log.log("garden")) == 1


def test_an_undo_can_be_continued_after_any_commit(garden: records.Site, path: Path) -> None:
    found = undone.brought(path)
    undone.settle()
    undone.post(garden, "to an import", undone.ids()["2"])
    undone.begin(found)
    killed = 0

    def kill(_: int) -> None:
        raise KeyboardInterrupt

    for _ in range(60):
        try:
            done = import_undo.go_on("garden", found.id, now=NOW, progress=kill)
        except KeyboardInterrupt:
            killed += 1
            continue
        undone.settle()
        if done.found.undone:
            break
    assert killed > len(EXPORT) / 3
    assert (done.found.removed, done.found.kept) == (len(EXPORT) - 2, 2)
    undone.assert_sound()
    counter_oracle.assert_all_counted()


def test_an_interrupted_import_can_be_undone(
    garden: records.Site, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running_import.RunningImport, "end", lambda _: None)
    undone.brought(path, NOW - timedelta(hours=1))
    (found,) = import_journal.recent_imports("garden")
    assert found.added is None
    assert undone.undo(found).removed == len(EXPORT)
    assert undone.bodies() == {}


def test_an_undo_that_has_begun_is_finished_after_the_term(
    garden: records.Site, path: Path
) -> None:
    found = undone.brought(path)
    undone.begin(found, found.ends - timedelta(seconds=1))
    import_undo.expire(found.ends + timedelta(days=1))
    assert undone.finish(found, found.ends + timedelta(days=1)).removed == len(EXPORT)


def test_a_server_continues_an_undo(garden: records.Site, path: Path) -> None:
    found = undone.brought(path)
    undone.settle()
    act = audit_log.Act(sample_threads.ADA, import_undo.VERB)
    assert import_undo.start("garden", found.id, act, now=NOW, steps=1).is_left
    rounds = 0
    while import_undo.finish(now=NOW):
        rounds += 1
        assert rounds < 9
    undone.deliver()
    undone.settle()
    assert not import_undo.finish(now=NOW)
    assert import_journal.get("garden", found.id).undone == NOW
    assert undone.threads() == []
