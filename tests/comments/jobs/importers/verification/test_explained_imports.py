"""A verification knows other imports, undos and moves of the site, also while they run."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from comments.domain import records, sorthash
from comments.events import audit_log
from comments.jobs.importers import import_journal, import_undo, import_writer
from comments.jobs.importers.checking import checked_import, import_batches
from comments.jobs.importers.verification import (
    comment_comparison,
    import_verification,
    verification_report,
)
from comments.jobs.integrity import repair
from comments.jobs.migrations import rescheming
from tests.support.importing.verified_imports import ACTOR, LATER, named, reasons, verify
from tests.support.threads import compaction, raw_changes, sample_threads
from tests.support.threads.sample_exports import (
    NOW,
    ROSES,
    SCHEME,
    THREAD,
    plan_of,
    planned,
    post,
    write,
)


def test_a_later_export_comes_after_the_first(
    garden: records.Site, export: Callable[..., Path]
) -> None:
    first = export(THREAD, post("1", minute=5), post("2", "1", minute=9), name="first.xml")
    with plan_of(first) as plan:
        write(plan)
    edited = post("2", "1", minute=9, message="edited there")
    more = (post("1", minute=5), edited, post("3", "1", minute=7), post("4", minute=1))
    with plan_of(export(THREAD, *more, name="more.xml")) as plan:
        write(plan)
        found = verify(plan)
        assert found.unexplained == 0
        assert reasons(found) == {
            "order": {comment_comparison.ADDED_LATER},
            "text": {comment_comparison.EARLIER_FILE},
        }
        # A contradiction within a row has no such reason.
        raw_changes.comment(plan.id_of("2"), number=9)
        assert named(verify(plan)) == {("2", "number")}
    with plan_of(first) as plan:
        assert named(verify(plan)) == {("2", "number")}


def test_an_unfinished_import_says_so(
    garden: records.Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_batches, "BATCH", 4)

    def kill(_: int) -> None:
        raise KeyboardInterrupt

    with planned("disqus.xml") as plan:
        with pytest.raises(KeyboardInterrupt):
            import_writer.write(plan, scheme=SCHEME, now=NOW, progress=kill)
        found = verify(plan)
        assert (found.is_unfinished, found.in_store.comments) == (True, 4)
        assert {field for _, field in named(found)} == {"comment"}
        import_writer.write(plan, scheme=SCHEME, now=LATER)
        found = verify(plan)
    assert (found.differences, found.is_unfinished) == ((), False)


def test_a_change_of_the_scheme_keeps_the_order(
    garden: records.Site, plan: checked_import.CheckedImport
) -> None:
    for levels in (2, 5):
        rescheming.begin("garden", sorthash.Scheme(levels=levels), ACTOR, now=LATER)
        rescheming.run("garden")
        with planned("disqus.xml", levels=levels) as again:
            assert verify(again, levels).unexplained == 0
    raw_changes.comment(plan.id_of("103"), level=4)
    assert named(verify(plan)) >= {("103", "level")}


def test_a_change_of_the_scheme_beside_a_verification_is_no_fault(
    plan: checked_import.CheckedImport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_batches, "BATCH", 4)

    def progress(_: int) -> None:
        rescheming.begin("garden", sorthash.Scheme(levels=2), ACTOR, now=LATER)
        rescheming.run("garden")

    found = import_verification.verify(plan, scheme=SCHEME, progress=progress)
    assert reasons(found) == {"places": {comment_comparison.MOVING}}
    assert f"  {ROSES.id}: not compared" in list(verification_report.lines(found))
    assert verify(plan).differences == ()


def undo(site: str) -> None:
    """Undo the last import of a site to its end."""
    (found, *_) = import_journal.of(site)
    act = audit_log.Act(ACTOR, import_undo.VERB)
    import_undo.begin(site, found.id, act, now=LATER)
    for _ in range(5):
        if import_undo.go_on(site, found.id, now=LATER).found.undone is not None:
            return
        for name in repair.threads(site):
            compaction.whole(name)
    raise AssertionError


def test_an_undone_import_is_explained_and_can_be_repeated(
    garden: records.Site, plan: checked_import.CheckedImport
) -> None:
    sample_threads.post(garden, "a reply", plan.id_of("101"), thread=ROSES.id)
    undo("garden")
    found = verify(plan)
    assert found.unexplained == 0
    assert reasons(found) == {
        "comment": {comment_comparison.UNDONE},
        "status": {comment_comparison.UNDONE},
        "title": {comment_comparison.NAMED_HERE},
        "url": {comment_comparison.NAMED_HERE},
    }
    assert (found.in_store.comments, found.other_comments) == (1, 1)


def test_damage_after_an_undo_and_another_import_is_named(
    garden: records.Site, plan: checked_import.CheckedImport
) -> None:
    undo("garden")
    with planned("disqus.xml") as again:
        import_writer.write(again, scheme=SCHEME, now=LATER + timedelta(days=1))
        assert verify(again).differences == ()
        raw_changes.comment(again.id_of("101"), edited=LATER)
        assert named(verify(again)) == {("101", "edited")}


def test_an_undo_beside_a_verification_is_explained(
    plan: checked_import.CheckedImport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_batches, "BATCH", 4)
    raw_changes.delete_comments(next(iter(plan.batches()))[0].nodes[0].id)
    steps = list[int]()

    def progress(done: int) -> None:
        steps.append(done)
        if len(steps) == 1:
            undo("garden")

    found = import_verification.verify(plan, scheme=SCHEME, progress=progress)
    assert len(steps) > 2
    assert found.unexplained == 1
    assert {each for each in reasons(found)["comment"] if each} == {comment_comparison.UNDONE}
