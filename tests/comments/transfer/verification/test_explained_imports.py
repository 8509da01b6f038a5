"""A verification knows other imports, undos and moves of the site, also while they run."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from comments.domain import records
from comments.domain.ids import sorthash
from comments.events import audit_log
from comments.transfer.checking import checked_import, import_batches
from comments.transfer.importing import import_journal, import_undo, import_writer
from comments.transfer.verification import (
    comment_comparison,
    import_verification,
    verification_report,
)
from comments.upkeep.integrity import repair
from comments.upkeep.migrations import rescheming
from tests.support.importing.verified_imports import (
    ACTOR,
    LATER,
    exchange,
    named,
    reasons,
    stored,
    verify,
)
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
        assert found.unexplained_count == 0
        assert reasons(found) == {
            "order": {comment_comparison.REORDERED},
            "text": {comment_comparison.EARLIER},
            "html": {comment_comparison.EARLIER},
        }
    with plan_of(first) as plan:
        assert verify(plan).differences == ()


def test_the_order_of_imports_without_journals_is_explained(
    garden: records.Site, export: Callable[..., Path]
) -> None:
    first = [post(str(n), minute=10 * n) for n in range(1, 5)]
    with plan_of(export(THREAD, *first, name="first.xml")) as plan:
        write(plan)
    more = [post("5", minute=15), post("6", minute=35)]
    with plan_of(export(THREAD, *first, *more, name="more.xml")) as plan:
        write(plan)
        assert reasons(verify(plan)) == {"order": {comment_comparison.REORDERED}}
        import_undo.expire(NOW + 2 * import_journal.TERM)
        found = verify(plan)
        assert reasons(found) == {"order": {comment_comparison.REORDERED}}
        assert named(found, explained=True) == {("4", "order")}
        # Two imports leave no order in which a comment comes before an earlier one of its import.
        exchange(stored(plan, "2"), stored(plan, "3"))
        found = verify(plan)
        assert found.unexplained_count > 0
        assert reasons(found) == {"order": {""}}


def test_one_import_without_a_journal_explains_no_other_order(
    garden: records.Site, export: Callable[..., Path]
) -> None:
    other = THREAD.replace("roses", "tulips")
    with plan_of(export(other, post("9"), name="undone.xml")) as plan:
        write(plan)
        undo("garden")
    first = [post(str(n), minute=n) for n in range(1, 4)]
    with plan_of(export(THREAD, *first, name="first.xml")) as plan:
        write(plan)
    with plan_of(export(THREAD, first[0], name="adds nothing.xml")) as plan:
        write(plan)
    with plan_of(export(THREAD, *first, post("4", minute=9), name="later.xml")) as plan:
        import_writer.write(plan, scheme=SCHEME, now=NOW + import_journal.TERM)
        import_undo.expire(NOW + import_journal.TERM)
        assert verify(plan).differences == ()
        exchange(stored(plan, "1"), stored(plan, "3"))
        assert {field for _, field in named(verify(plan))} == {"order"}


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
        said = list(verification_report.lines(found))
        assert f"comment: {found.unexplained_count}, the import was interrupted" in said
        assert said[-1].startswith("The import of this file was interrupted: run the same command")
        import_writer.write(plan, scheme=SCHEME, now=LATER)
        found = verify(plan)
    assert (found.differences, found.is_unfinished) == ((), False)


def test_a_change_of_the_scheme_keeps_the_order(
    garden: records.Site, plan: checked_import.CheckedImport
) -> None:
    for levels in (2, 5):
        rescheming.begin("garden", sorthash.Scheme(levels=levels), ACTOR, now=LATER)
        rescheming.run_to_end("garden")
        with planned("disqus.xml", levels=levels) as again:
            assert verify(again).unexplained_count == 0


def test_a_change_of_the_scheme_beside_a_verification_is_no_fault(
    plan: checked_import.CheckedImport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_batches, "BATCH", 4)

    def progress(_: int) -> None:
        rescheming.begin("garden", sorthash.Scheme(levels=2), ACTOR, now=LATER)
        rescheming.run_to_end("garden")

    found = import_verification.verify(plan, progress=progress)
    assert found.unexplained_count == verify(plan).unexplained_count == 0


def undo(site: str) -> None:
    """Undo the last import of a site to its end."""
    (found, *_) = import_journal.recent_imports(site)
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
    assert found.unexplained_count == 0
    assert reasons(found) == {
        "comment": {comment_comparison.UNDONE},
        "status": {comment_comparison.UNDONE},
        "title": {comment_comparison.NAMED_HERE},
        "url": {comment_comparison.NAMED_HERE},
    }
    assert (found.in_store.comments, found.other_comments) == (1, 1)


def test_a_title_that_an_undo_removes_is_explained(
    garden: records.Site, export: Callable[..., Path]
) -> None:
    titled = THREAD.replace("</link>", "</link><title>Roses</title>")
    with plan_of(export(titled, post("1"), post("2", "1"))) as plan:
        write(plan)
        compaction.whole(ROSES)
        (begun,) = import_journal.recent_imports("garden")
        act = audit_log.Act(ACTOR, import_undo.VERB)
        import_undo.start("garden", begun.id, act, now=LATER, steps=1)
        for _ in range(2):
            found = verify(plan)
            assert found.unexplained_count == 0
            assert reasons(found)["title"] == {comment_comparison.NOT_APPROVED}
            assert reasons(found)["status"] | reasons(found).get("comment", set()) == {
                comment_comparison.UNDONE
            }
            import_undo.go_on("garden", begun.id, now=LATER)


def test_the_state_of_an_older_thread_is_explained_without_a_journal(
    garden: records.Site, export: Callable[..., Path]
) -> None:
    sample_threads.post(garden, "first", thread=ROSES.id, now=NOW - timedelta(days=1))
    closed = THREAD.replace("</link>", "</link><isClosed>true</isClosed>")
    with plan_of(export(closed, post("1"))) as plan:
        write(plan)
        import_undo.expire(NOW + 2 * import_journal.TERM)
        assert reasons(verify(plan))["state"] == {comment_comparison.EXISTED}
    with plan_of(export(closed.replace("roses", "tulips"), post("2"), name="other.xml")) as plan:
        write(plan)
        import_undo.expire(NOW + 2 * import_journal.TERM)
        assert verify(plan).differences == ()


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

    found = import_verification.verify(plan, progress=progress)
    assert len(steps) > 2
    assert found.unexplained_count == 1
    assert {each for each in reasons(found)["comment"] if each} == {comment_comparison.UNDONE}
