"""An undo leaves what was there before the import and what people added, row by row."""

from datetime import timedelta
from pathlib import Path

import pytest

from comments.domain import records
from comments.domain.records import Verb
from comments.moderation import decisions, reports
from comments.posting import file_report, own_comment
from comments.store import reads
from comments.store.models import comment_rows
from comments.transfer.importing import import_undo
from tests.support.histories import counter_oracle
from tests.support.threads import sample_threads, sample_votes
from tests.support.threads import undone_imports as undone
from tests.support.threads.undone_imports import EXPORT, NOW, ROSES, TULIPS

pytestmark = pytest.mark.usefixtures("small_batches")


def test_an_undo_leaves_the_store_as_it_was_before_the_import(
    garden: records.Site, path: Path
) -> None:
    first = undone.post(garden, "here before")
    undone.post(garden, "an answer", first.id)
    undone.settle()
    before = undone.plain()
    counters = undone.stored_state.in_threads(), undone.stored_state.later()
    found = undone.brought(path)
    undone.settle()
    undone.assert_sound()
    assert len(undone.bodies()) == len(EXPORT) + 2
    ended = undone.undo(found)
    assert (ended.removed, ended.kept, ended.undone) == (len(EXPORT), 0, NOW)
    undone.assert_sound()
    undone.settle()
    undone.assert_sound()
    assert undone.plain() == before
    assert (undone.stored_state.in_threads(), undone.stored_state.later()) == counters
    counter_oracle.assert_all_counted()
    assert undone.batches() == 0
    for kind in ("Bucket", "BucketDirectory", "Ranking", "Counter"):
        gone = (TULIPS, "garden.example/lilies")
        keys = [str(each.key) for each in reads.fetch(reads.Query(kind))]
        assert not [key for key in keys if any(name in key for name in gone)]


def decide(comment_id: str, verb: Verb) -> None:
    decisions.decide("garden", comment_id, verb, sample_threads.ADA, now=NOW)


def write_on_top(garden: records.Site) -> dict[str, records.Comment]:
    """Reply to imported comments, edit, retract, vote, moderate and report; return the posts."""
    imported = undone.ids()
    reply = undone.post(garden, "to an import", imported["3"])
    posted = [
        reply,
        undone.post(garden, "to a reply on the deepest level", reply.id),
        undone.post(garden, "to an import on the deepest level", imported["4"]),
        undone.post(garden, "a root"),
        undone.post(garden, "a tulip", imported["10"], TULIPS),
    ]
    own_comment.retract(posted[4].id, author_id="g:bob", revision=None, now=NOW)
    own_comment.edit(
        posted[3].id, author_id="g:bob", body="edited", revision=None,
        settings=sample_threads.SETTINGS, now=NOW,
    )  # fmt: skip
    for name in ("1", "3", "8"):
        sample_votes.vote(sample_votes.comment(imported[name]), name)
    sample_votes.vote(sample_votes.comment(posted[3].id), "someone", now=NOW)
    undone.settle()
    sample_votes.vote(sample_votes.comment(imported["2"]), "uncounted")
    decide(imported["2"], Verb.HIDE)
    decide(imported["6"], Verb.APPROVE)
    decide(imported["9"], Verb.SPAM)
    decide(posted[3].id, Verb.PIN)
    asked = sample_threads.request("garden", network="192.0.2.1")
    file_report.report(imported["1"], reports.Reason.ABUSE, asked, author="g:eve")
    undone.deliver()
    undone.assert_sound()
    return {row.body: row for row in posted}


def test_what_people_added_stays_and_nothing_of_the_imported_content(
    garden: records.Site, path: Path
) -> None:
    found = undone.brought(path)
    undone.settle()
    imported = undone.ids()
    people = {row.id for row in write_on_top(garden).values()}
    before = undone.plain()
    ended = undone.undo(found)
    undone.settle()
    undone.assert_sound()
    counter_oracle.assert_all_counted()
    after = undone.plain()
    kept = {imported[name] for name in ("1", "2", "3", "4", "9", "10")}
    assert undone.bodies().keys() == people | kept
    assert (ended.removed, ended.kept) == (len(EXPORT) - 6, 6)
    # The rows of people are equal, each with its votes.
    mine = [key for key in {*before, *after} if any(each in key for each in people)]
    assert {key: before.get(key) for key in mine} == {key: after.get(key) for key in mine}
    assert list(sample_votes.cast().values()) == [{"g:someone": 1}]
    rest = [f"{row}" for key, row in after.items() if key not in mine]
    words = ("imported", "Author", "disqus:", "ada.example")
    assert not [row for row in rest if any(word in row for word in words)]
    assert not [key for key in after if key.startswith(("Report:", "ErasureDue:", "VotesDue:"))]


def test_a_thread_that_stays_shows_what_people_wrote(garden: records.Site, path: Path) -> None:
    found = undone.brought(path)
    undone.settle()
    posted = write_on_top(garden)
    undone.undo(found)
    assert {name.id for name in undone.threads()} == {ROSES, TULIPS}
    reply, deepest, sibling, root, _ = posted.values()
    roses = reads.get(comment_rows.thread_key(records.ThreadName("garden", ROSES)))
    assert (roses.pins, roses.named_by, roses.title) == ([root.id], reply.id, "")
    for _ in range(2):
        shown = sample_threads.listed(garden, ROSES)
        assert shown == ["-", "-", reply.body, deepest.body, sibling.body, "edited"]
        undone.settle()
    assert sample_threads.listed(garden, TULIPS) == []


def test_an_undo_of_newer_comments_leaves_the_thread_as_it_was(
    garden: records.Site, tmp_path: Path
) -> None:
    undone.post(garden, "here before")
    undone.settle()
    before = undone.plain()
    newer = [undone.comment(f"{n}", created=NOW + timedelta(days=n)) for n in (1, 2)]
    undone.undo(undone.brought(undone.saved(tmp_path / "newer", newer)))
    undone.settle()
    assert undone.plain() == before


def test_a_preview_says_what_an_undo_does(garden: records.Site, path: Path) -> None:
    found = undone.brought(path)
    undone.post(garden, "to an import", undone.ids()["4"])
    before = undone.plain()
    made = import_undo.preview("garden", found.id)
    assert made == import_undo.UndoPreview(len(EXPORT), 3, 2)
    assert undone.plain() == before
    ended = undone.undo(found)
    assert (ended.removed + ended.kept, ended.kept) == made[:2]
    assert len(undone.threads()) == 1
