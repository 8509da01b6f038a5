"""The undo of an import leaves what was there before and what people added, row by row."""

from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from flask.testing import FlaskClient

from comments import errors
from comments.domain import records
from comments.domain.records import Status, Verb
from comments.events import audit_log
from comments.jobs import scheduler
from comments.jobs.importers import import_expiry, import_journal, import_undo
from comments.jobs.importers.checking import import_batches
from comments.moderation import decisions, policy_changes, reports
from comments.posting import file_report, own_comment
from comments.sites import site_settings
from comments.store import connection, reads, transactions
from comments.store.models import comment_rows
from comments.tree import bulk_removal, changes
from tests.support.histories import counter_oracle
from tests.support.store_interceptors import Commits, InterceptorSlot
from tests.support.threads import compaction, sample_exports, sample_threads, sample_votes
from tests.support.threads import undone_imports as undone
from tests.support.threads.undone_imports import NOW, comment

ADA = sample_threads.ADA
ROSES = "garden.example/roses"
TULIPS = "garden.example/tulips"
TEST_PAGE = "http://localhost:8000"
EXPORT = [
    comment("1", email="ada@mail.example", website="https://ada.example", up=3, pinned=True),
    comment("2", "1", edited=NOW - timedelta(days=3)),
    comment("3", "2"),
    comment("4", "2"),
    comment("5", "1", status=Status.SPAM),
    comment("6", status=Status.PENDING),
    comment("7", status=Status.RETRACTED),
    comment("8", "7", down=2),
    comment("9", page="tulips"),
    comment("10", "9", page="tulips"),
    comment("11", page="lilies", status=Status.SPAM),
]


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_batches, "BATCH", 3)
    compaction.small_buckets(monkeypatch)


@pytest.fixture
def garden(store: connection.Store) -> records.Site:
    undone.Clock.current()
    return site_settings.add("garden", sample_exports.SITE.origins, scheme=undone.SCHEME, now=NOW)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return undone.saved(tmp_path / "export", EXPORT, lilies={"closed": True})


def ids() -> dict[str, str]:
    """Return the ids of the imported comments by their numbers."""
    return {
        text.removeprefix("imported "): key
        for key, text in undone.bodies().items()
        if text.startswith("imported ")
    }


def post(
    site: records.Site, text: str, parent: str | None = None, thread: str = ROSES
) -> records.Comment:
    return sample_threads.post(
        site, text, parent, thread=thread, now=NOW, author=sample_threads.author("bob")
    )


def test_an_undo_leaves_the_store_as_it_was_before_the_import(
    garden: records.Site, path: Path
) -> None:
    first = post(garden, "here before")
    post(garden, "an answer", first.id)
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
    decisions.decide("garden", comment_id, verb, ADA, now=NOW)


def write_on_top(garden: records.Site) -> dict[str, records.Comment]:
    """Reply to imported comments, edit, retract, vote, moderate and report; return the posts."""
    imported = ids()
    reply = post(garden, "to an import", imported["3"])
    posted = [
        reply,
        post(garden, "to a reply on the deepest level", reply.id),
        post(garden, "to an import on the deepest level", imported["4"]),
        post(garden, "a root"),
        post(garden, "a tulip", imported["10"], TULIPS),
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
    imported = ids()
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


def heading() -> tuple[str, str]:
    """Return the title and the page's address that the thread of the roses shows."""
    row = reads.get(comment_rows.thread_key(records.ThreadName("garden", ROSES)))
    return row.title, row.url


def send(client: FlaskClient, origin: str) -> None:
    """Post a comment about the roses from a page with a title of its own."""
    url = f"https://{ROSES}"
    response = client.post(
        "/api/v1/sites/garden/comments",
        query_string={"page": url},
        json={"name": "Ann", "body": "from a page", "title": "A page", "url": url},
        headers={"Origin": origin},
    )
    assert response.status_code == 201, response.text
    undone.deliver()


def test_a_test_page_names_no_thread_of_the_website(
    garden: records.Site, client: FlaskClient, tmp_path: Path
) -> None:
    site_settings.change("garden", origins=(*garden.origins, TEST_PAGE))
    path = undone.saved(tmp_path / "export", [comment("1")], roses={"title": "Roses"})
    found = undone.brought(path)
    assert heading() == ("Roses", f"https://{ROSES}")
    send(client, TEST_PAGE)
    assert heading() == ("Roses", f"https://{ROSES}")
    undone.undo(found)
    assert heading() == ("", "")
    undone.brought(path)
    assert heading() == ("Roses", f"https://{ROSES}")


def test_a_real_page_names_the_thread_while_no_import_does(
    garden: records.Site, client: FlaskClient, tmp_path: Path
) -> None:
    path = undone.saved(tmp_path / "export", [comment("1")], roses={"title": "Roses"})
    found = undone.brought(path)
    send(client, garden.origins[0])
    assert heading()[0] == "Roses"
    undone.undo(found)
    assert heading() == ("A page", f"https://{ROSES}")
    undone.brought(path)
    assert heading()[0] == "A page"


def test_the_same_file_can_be_imported_again_after_an_undo(
    garden: records.Site, path: Path
) -> None:
    post(garden, "here before")
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
    assert undone.bodies().keys().isdisjoint(ids().values())


def test_a_comment_that_is_imported_again_with_another_text_is_shown_with_it(
    garden: records.Site, tmp_path: Path
) -> None:
    """A process that has read the removed comment does not show it instead."""
    post(garden, "here before")
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
    imported = ids()
    post(garden, "to an import", imported["4"])
    post(garden, "a tulip", imported["10"], TULIPS)
    shown = sample_threads.listed(garden, ROSES), sample_threads.listed(garden, TULIPS)
    ended = undone.undo(found)
    assert ended.kept == 5
    again = undone.brought(path)
    undone.assert_sound()
    counter_oracle.assert_all_counted()
    assert again.added == len(EXPORT)
    assert ids() == imported
    assert sample_threads.listed(garden, TULIPS) == shown[1]
    assert sorted(sample_threads.listed(garden, ROSES)) == sorted(shown[0])
    assert undone.undo(again).kept == 5
    undone.assert_sound()


def test_an_erased_comment_that_no_import_brought_back_stays_erased(
    garden: records.Site, path: Path
) -> None:
    """A comment that its author had erased is not restored by importing the file again."""
    found = undone.brought(path)
    one = ids()["4"]
    transactions.transaction(
        lambda: transactions.apply(*changes.retract(one, now=NOW, check=lambda _: None).writes)
    )
    undone.brought(path)
    assert undone.bodies()[one] == ""
    undone.deliver()
    undone.assert_sound()
    undone.undo(found)
    assert one not in undone.bodies()


def test_readers_see_no_removed_comment_at_any_step(
    garden: records.Site, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_removal, "AT_ONCE", 2)
    found = undone.brought(path)
    undone.settle()
    imported = ids()
    post(garden, "to an import", imported["2"])
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
    post(garden, "to an import", ids()["2"])
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
    post(garden, "to an import", ids()["2"])
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


def test_a_thread_with_settings_of_moderators_stays(garden: records.Site, path: Path) -> None:
    found = undone.brought(path)
    policy_changes.set_thread(
        records.ThreadName("garden", TULIPS), ADA, now=NOW, state=records.ThreadState.CLOSED
    )
    undone.undo(found)
    assert [name.id for name in undone.threads()] == [TULIPS]
    undone.assert_sound()
    post(garden, "in a new thread")
    undone.deliver()
    undone.assert_sound()


def test_a_thread_with_the_settings_of_its_export_is_deleted(
    garden: records.Site, tmp_path: Path
) -> None:
    kept = records.MovedThread(policy=records.Policy.LINKS, own=("title",))
    pages = {"tulips": {"kept": kept, "id": TULIPS, "closed": True}}
    pages["lilies"] = {"kept": kept, "id": "lilies"}
    export = [comment("1", page="tulips"), comment("2", page="lilies")]
    found = undone.brought(undone.saved(tmp_path / "export", export, **pages))
    rows = [reads.get(comment_rows.thread_key(name)) for name in undone.threads()]
    assert {(row.policy, *row.own) for row in rows} == {("links", "title")}
    policy_changes.set_thread(records.ThreadName("garden", "lilies"), ADA, now=NOW, inherits=True)
    undone.undo(found)
    assert [name.id for name in undone.threads()] == ["lilies"]


def test_a_preview_says_what_an_undo_does(garden: records.Site, path: Path) -> None:
    found = undone.brought(path)
    post(garden, "to an import", ids()["4"])
    before = undone.plain()
    made = import_undo.preview("garden", found.id)
    assert made == (len(EXPORT), 3, 2)
    assert undone.plain() == before
    ended = undone.undo(found)
    assert (ended.removed + ended.kept, ended.kept) == made[:2]
    assert len(undone.threads()) == 1


def test_an_undo_goes_to_the_audit_log(garden: records.Site, path: Path) -> None:
    found = undone.brought(path)
    undone.begin(found)
    undone.undo(found)
    (entry,) = audit_log.log("garden")
    assert (entry.subject, entry.verb) == (f"import:{found.id}", "undo-import")
    assert (entry.actor, entry.before, entry.after) == (ADA, "imported", "undone")


def test_an_import_is_refused_that_cannot_be_undone(garden: records.Site, path: Path) -> None:
    found = undone.brought(path)
    for moment, said in (
        (found.ends, "could be undone until 2026-02-02 03:04"),
        (found.ends + timedelta(days=9), "30 days after it began"),
    ):
        with pytest.raises(errors.ImportRefused, match=said):
            undone.begin(found, moment)
    with pytest.raises(errors.ImportRefused, match="has no import"):
        undone.begin(msgspec.structs.replace(found, id="unknown"))
    running = msgspec.structs.replace(found, id="running", added=None, undone=None)
    store(running)
    with pytest.raises(errors.ImportRefused, match="running of export into garden is still"):
        undone.begin(found)
    late = NOW + timedelta(seconds=import_journal.LATE)
    undone.begin(found, late)
    undone.finish(found, late)
    with pytest.raises(errors.ImportRefused, match="undone already, at 2026-01-03"):
        undone.begin(found, late)


def test_no_import_begins_while_another_is_being_undone(
    garden: records.Site, path: Path, tmp_path: Path
) -> None:
    found = undone.brought(path)
    undone.begin(found)
    other = undone.saved(tmp_path / "other", [comment("99")])
    with pytest.raises(errors.ImportRefused, match=f"import {found.id} into garden is being"):
        undone.brought(other)
    undone.finish(found)
    assert undone.brought(other).added == 1


def test_an_interrupted_import_can_be_undone(
    garden: records.Site, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_journal.ImportJournal, "end", lambda _: None)
    undone.brought(path, NOW - timedelta(hours=1))
    (found,) = import_journal.of("garden")
    assert found.added is None
    assert undone.undo(found).removed == len(EXPORT)
    assert undone.bodies() == {}


def test_an_undo_that_has_begun_is_finished_after_the_term(
    garden: records.Site, path: Path
) -> None:
    found = undone.brought(path)
    undone.begin(found, found.ends - timedelta(seconds=1))
    import_expiry.expire(found.ends + timedelta(days=1))
    assert undone.finish(found, found.ends + timedelta(days=1)).removed == len(EXPORT)


def test_a_server_continues_an_undo(garden: records.Site, path: Path) -> None:
    found = undone.brought(path)
    undone.settle()
    act = audit_log.Act(ADA, import_undo.VERB)
    assert import_undo.start("garden", found.id, act, now=NOW, steps=1).is_left
    rounds = 0
    while scheduler.undo(NOW):
        rounds += 1
        assert rounds < 9
    undone.deliver()
    undone.settle()
    assert not scheduler.undo(NOW)
    assert import_journal.get("garden", found.id).undone == NOW
    assert undone.threads() == []


def store(changed: import_journal.Import) -> None:
    transactions.transaction(lambda: transactions.apply(import_journal.store("garden", changed)))
