"""A verification gives the reason why a thread has another title or state than in its file."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from comments.domain import records
from comments.domain.records import ThreadState, Verb
from comments.moderation import decisions
from comments.moderation.policy import policy_changes, thread_overrides
from comments.store.models import comment_rows
from comments.transfer.checking import checked_import
from comments.transfer.verification import comment_comparison
from tests.support.importing.verified_imports import ACTOR, LATER, named, reasons, retract, verify
from tests.support.threads import raw_changes, sample_threads
from tests.support.threads.sample_exports import ROSES, THREAD, plan_of, post, write

TITLED = THREAD.replace("</link>", "</link><title>Roses</title>")


@pytest.fixture
def titled(
    garden: records.Site, export: Callable[..., Path]
) -> Iterator[checked_import.CheckedImport]:
    """The plan of an imported thread with a title and one comment."""
    with plan_of(export(TITLED, post("1"))) as plan:
        write(plan)
        yield plan


def test_a_thread_that_moderators_changed_is_explained(
    garden: records.Site, plan: checked_import.CheckedImport
) -> None:
    wanted = thread_overrides.NewDetails(title="Tulips")
    thread_overrides.change_details(garden, ROSES.id, wanted, ACTOR, now=LATER)
    policy_changes.set_thread(ROSES, ACTOR, now=LATER, state=ThreadState.CLOSED)
    assert reasons(verify(plan)) == {
        "title": {comment_comparison.MODERATED},
        "state": {comment_comparison.MODERATED},
    }


def test_a_thread_that_was_here_before_keeps_its_title_and_state(
    garden: records.Site, export: Callable[..., Path]
) -> None:
    sample_threads.post(garden, "first", thread=ROSES.id, title="Ours")
    closed = THREAD.replace("</link>", "</link><title>Theirs</title><isClosed>true</isClosed>")
    with plan_of(export(closed, post("1"))) as plan:
        write(plan)
        found = verify(plan)
    assert reasons(found) == {
        "title": {comment_comparison.NAMED_HERE},
        "url": {comment_comparison.NAMED_HERE},
        "state": {comment_comparison.EXISTED},
    }


def test_a_thread_without_approved_comments_has_no_title(
    garden: records.Site, export: Callable[..., Path]
) -> None:
    titled = THREAD.replace("</link>", "</link><title>Roses</title>")
    spam = post("1").replace("<isSpam>false", "<isSpam>true")
    with plan_of(export(titled, spam)) as plan:
        write(plan)
        assert verify(plan).differences == ()
        raw_changes.change(comment_rows.thread_key(ROSES), title="Roses!")
        assert named(verify(plan)) == {("", "title")}


def test_a_thread_whose_comments_were_refused_loses_its_title(
    titled: checked_import.CheckedImport,
) -> None:
    decisions.decide("garden", titled.id_of("1"), Verb.SPAM, ACTOR, now=LATER)
    found = verify(titled)
    assert named(found) == set()
    assert reasons(found) == {
        "status": {comment_comparison.MODERATED},
        "title": {comment_comparison.NOT_APPROVED},
        "url": {comment_comparison.NOT_APPROVED},
    }


def test_a_thread_whose_comments_were_retracted_loses_its_title(
    titled: checked_import.CheckedImport, export: Callable[..., Path]
) -> None:
    retract(titled.id_of("1"))
    assert reasons(verify(titled)) == {
        "status": {comment_comparison.ERASED},
        "title": {comment_comparison.NOT_APPROVED},
        "url": {comment_comparison.NOT_APPROVED},
    }
    with plan_of(export(TITLED, post("1"), post("2"), name="more.xml")) as more:
        write(more)
        decisions.decide("garden", more.id_of("2"), Verb.SPAM, ACTOR, now=LATER)
        found = verify(more)
    assert found.unexplained_count == 0
    assert reasons(found)["title"] == {comment_comparison.NOT_APPROVED}


def test_a_thread_of_an_older_release_is_explained(titled: checked_import.CheckedImport) -> None:
    raw_changes.change(comment_rows.thread_key(ROSES), named_by=None, title="Old roses")
    assert reasons(verify(titled)) == {"title": {comment_comparison.OLDER_RELEASE}}


def test_a_thread_that_lost_its_naming_comment_is_a_fault(
    titled: checked_import.CheckedImport,
) -> None:
    raw_changes.change(comment_rows.thread_key(ROSES), named_by="", title="")
    assert named(verify(titled)) == {("", "title")}


def test_a_title_of_an_earlier_file_is_explained(
    titled: checked_import.CheckedImport, export: Callable[..., Path]
) -> None:
    renamed = export(TITLED.replace("Roses", "Tulips"), post("1"), post("2"), name="later.xml")
    with plan_of(renamed) as later:
        write(later)
        assert reasons(verify(later)) == {"title": {comment_comparison.NAMED_HERE}}
    raw_changes.change(comment_rows.thread_key(ROSES), title="Tulips")
    assert named(verify(titled)) == {("", "title")}
