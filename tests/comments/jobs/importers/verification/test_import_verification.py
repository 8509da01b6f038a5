"""A verification names each difference between a file and the store, and knows why it is there."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from comments.domain import records, sorthash
from comments.domain.records import Status, ThreadState, Verb
from comments.events import audit_log
from comments.jobs import thread_overrides
from comments.jobs.importers import (
    import_expiry,
    import_journal,
    import_source,
    import_undo,
    import_writer,
)
from comments.jobs.importers.checking import checked_import, import_batches
from comments.jobs.importers.formats import wordpress
from comments.jobs.importers.verification import (
    comment_comparison,
    import_verification,
    verification_report,
    verification_result,
)
from comments.jobs.integrity import repair
from comments.jobs.migrations import rescheming
from comments.moderation import decisions, policy_changes
from comments.store import reads, transactions
from comments.store.models import comment_rows
from comments.tree import changes, values
from tests.support.threads import (
    compaction,
    raw_changes,
    sample_exports,
    sample_threads,
    sample_votes,
)
from tests.support.threads.sample_exports import (
    NOW,
    ROSES,
    SCHEME,
    SECRET,
    THREAD,
    plan_of,
    planned,
    post,
    rows,
    write,
)

LATER = NOW + timedelta(days=1)
ACTOR = records.Actor("cli", "Ann")
Found = verification_result.Verification


def verify(plan: checked_import.CheckedImport, levels: int = 8) -> Found:
    return import_verification.verify(plan, scheme=sorthash.Scheme(levels=levels), secret=SECRET)


def named(found: Found, *, explained: bool = False) -> set[tuple[str, str]]:
    """Return the source ids and fields of differences that have a reason, or have none."""
    return {
        (each.source, group.field)
        for group in found.differences
        for each in group.examples
        if bool(group.reason) is explained
    }


def reasons(found: Found) -> dict[str, set[str]]:
    """Return the reasons of differences by field."""
    known: dict[str, set[str]] = {}
    for group in found.differences:
        known.setdefault(group.field, set()).add(group.reason)
    return known


@pytest.fixture
def plan(garden: records.Site) -> Iterator[checked_import.CheckedImport]:
    """The plan of the sample export, which is imported."""
    with planned("disqus.xml") as plan:
        write(plan)
        yield plan


def stored(plan: checked_import.CheckedImport, source: str) -> records.Comment:
    return next(row for row in rows() if row.id == plan.id_of(source))


@pytest.mark.parametrize("levels", [1, 2, 8])
@pytest.mark.parametrize(("name", "reader"), [("disqus.xml", None), ("wordpress.xml", wordpress)])
def test_an_import_is_what_its_file_has(
    garden: records.Site, name: str, reader: Any, levels: int
) -> None:
    sample_threads.shaped(garden, sorthash.Scheme(levels=levels))
    more = {} if reader is None else {"reader": reader.read}
    with planned(name, levels=levels, **more) as plan:
        write(plan, levels)
        found = verify(plan, levels)
    assert found.differences == ()
    assert found.in_store == found.in_file
    assert found.in_file.comments == len(rows())
    assert found.in_file.threads == len(list(repair.threads("garden")))
    assert (found.other_comments, found.other_threads) == (0, 0)


def test_the_totals_count_the_file(plan: checked_import.CheckedImport) -> None:
    found = verify(plan)
    assert (found.in_file.comments, found.in_file.threads) == (12, 2)
    assert found.in_file.authors == len({row.author.id for row in rows() if row.author.id})
    assert found.in_file.depth == max(row.level for row in rows())


def test_nothing_is_written(plan: checked_import.CheckedImport) -> None:
    before = rows(), import_journal.of("garden")
    verify(plan)
    assert (rows(), import_journal.of("garden")) == before


def test_what_the_import_leaves_out_is_counted(garden: records.Site) -> None:
    with planned("wordpress.xml", wordpress.read) as plan:
        write(plan)
        found = verify(plan)
    assert sum(found.left_out.values()) > 0
    assert found.differences == ()


# A raw change of a stored comment, and the fields that a verification names. Comment 102 is a reply
# with a reply.
DAMAGES: dict[str, tuple[dict[str, object], set[str]]] = {
    "status": ({"status": "spam"}, {"status"}),
    "retracted": ({"status": "retracted"}, {"status"}),
    "text": ({"body": "other"}, {"text"}),
    "html": ({"html": "<p>other</p>"}, {"html"}),
    "emptied": ({"html": ""}, {"html"}),
    "name": ({"author_name": "Eve"}, {"author name"}),
    "website": ({"author_website": "https://eve.example"}, {"author website"}),
    "address": ({"author_email": "eve@mail.example"}, {"address"}),
    "author": ({"author_id": "g:eve"}, {"author id"}),
    "created": ({"created": NOW}, {"created"}),
    "edited": ({"edited": NOW}, {"edited"}),
    "up": ({"up": 3}, {"votes"}),
    "down": ({"down": 1}, {"votes"}),
    "score": ({"score": 5}, {"votes"}),
    "cast": ({"cast_up": 2}, {"votes"}),
    "voted": ({"up": 2, "score": 2, "cast_up": 2}, {"votes"}),
    "answered": ({"reply_to": None}, {"reply_to"}),
    "parent": ({"parent": None}, {"parent"}),
    "level": ({"level": 5}, {"level"}),
    "number": ({"number": 77}, {"number"}),
    "negative number": ({"number": -1}, {"number"}),
    "sort hash": ({"sort_hash": "ZZ"}, {"sort_hash"}),
    "no sort hash": ({"sort_hash": "~"}, {"sort_hash"}),
    "shape": ({"shape": 4}, {"shape"}),
    "site": ({"site": "demo"}, {"site"}),
    "thread": ({"thread": "garden/else", "thread_id": "else"}, {"thread"}),
    "pinned": ({"pinned": True}, {"pinned", "pins of the thread"}),
}


@pytest.mark.parametrize("name", DAMAGES)
@pytest.mark.parametrize("source", ["101", "103", "109"])
def test_a_damage_is_named(plan: checked_import.CheckedImport, source: str, name: str) -> None:
    values, fields = DAMAGES[name]
    row = reads.get(comment_rows.comment_key(plan.id_of(source)))
    values = {field: value for field, value in values.items() if getattr(row, field) != value}
    raw_changes.comment(plan.id_of(source), **values)
    found = verify(plan)
    expected = {(source, field) for field in fields} if values else set()
    assert named(found) == expected
    assert named(found, explained=True) == set()
    assert found.unexplained == len(expected)


def test_a_deleted_comment_is_named(plan: checked_import.CheckedImport) -> None:
    raw_changes.delete_comments(plan.id_of("105"))
    found = verify(plan)
    assert named(found) == {("105", "comment")}
    assert (found.in_file.comments, found.in_store.comments) == (12, 11)


def test_a_deleted_thread_is_named(plan: checked_import.CheckedImport) -> None:
    raw_changes.delete(comment_rows.thread_key(ROSES))
    found = verify(plan)
    assert named(found) == {("", "thread")}
    assert (found.in_file.threads, found.in_store.threads) == (2, 1)


@pytest.mark.parametrize(
    ("field", "value"), [("title", "Tulips"), ("url", "https://else.example/"), ("state", "closed")]
)
def test_a_damaged_thread_is_named(
    plan: checked_import.CheckedImport, field: str, value: str
) -> None:
    raw_changes.change(comment_rows.thread_key(ROSES), **{field: value})
    found = verify(plan)
    assert named(found) == {("", field)}
    (group,) = found.differences
    assert [(each.thread, each.stored) for each in group.examples] == [(ROSES.id, value)]


def test_exchanged_siblings_are_named(garden: records.Site, export: Callable[..., Path]) -> None:
    with plan_of(export(THREAD, *(post(str(n), minute=n) for n in range(5)))) as plan:
        write(plan)
        one, other = stored(plan, "1"), stored(plan, "3")
        for row, place in ((one, other), (other, one)):
            raw_changes.comment(
                row.id, number=place.number, sort_hash=place.sort_hash, slug=place.slug
            )
        found = verify(plan)
    assert found.unexplained == 2
    assert {field for _, field in named(found)} == {"order"}
    assert {source for source, _ in named(found)} <= {"1", "2", "3"}


def test_a_damaged_text_changes_the_digest(plan: checked_import.CheckedImport) -> None:
    assert verify(plan).in_file.texts == verify(plan).in_store.texts
    raw_changes.comment(plan.id_of("101"), html="<p>other</p>")
    assert verify(plan).in_file.texts != verify(plan).in_store.texts


def test_what_people_did_here_is_explained(plan: checked_import.CheckedImport) -> None:
    ids = {source: plan.id_of(source) for source in ("101", "103", "105", "107", "109")}
    text = values.RenderedText("new", "<p>new</p>", "markdown-3")
    transactions.transaction(
        lambda: transactions.apply(
            *changes.edit(ids["101"], text, now=LATER, check=lambda _: None).writes
        )
    )
    sample_votes.vote(stored(plan, "103"), "g:voter")
    sample_votes.count_waiting(LATER)
    decisions.decide("garden", ids["105"], Verb.SPAM, ACTOR, now=LATER)
    decisions.decide("garden", ids["107"], Verb.PIN, ACTOR, now=LATER)
    transactions.transaction(
        lambda: transactions.apply(
            *changes.retract(ids["109"], now=LATER, check=lambda _: None).writes
        )
    )
    found = verify(plan)
    assert found.unexplained == 0
    assert named(found, explained=True) == {
        ("101", "text"),
        ("101", "edited"),
        ("103", "votes"),
        ("105", "status"),
        ("107", "pinned"),
        ("109", "status"),
    }
    assert reasons(found) == {
        "text": {comment_comparison.EDITED},
        "edited": {comment_comparison.EDITED},
        "votes": {comment_comparison.VOTED},
        "status": {comment_comparison.MODERATED, comment_comparison.ERASED},
        "pinned": {comment_comparison.MODERATED},
    }


@pytest.mark.parametrize(
    ("value", "field"),
    [({"body": "x"}, "text"), ({"author_name": "Eve"}, "author name"), ({"up": 1}, "votes")],
)
def test_what_an_erasure_left_is_named(
    plan: checked_import.CheckedImport, value: dict[str, object], field: str
) -> None:
    transactions.transaction(
        lambda: transactions.apply(
            *changes.retract(plan.id_of("101"), now=LATER, check=lambda _: None).writes
        )
    )
    assert verify(plan).unexplained == 0
    raw_changes.comment(plan.id_of("101"), **value)
    assert named(verify(plan)) == {("101", field)}


def test_posts_are_counted_and_are_no_difference(
    garden: records.Site, plan: checked_import.CheckedImport
) -> None:
    sample_threads.post(garden, "a reply", plan.id_of("101"), thread=ROSES.id)
    sample_threads.post(garden, "elsewhere", thread="garden.example/new")
    found = verify(plan)
    assert found.differences == ()
    assert (found.other_comments, found.other_threads) == (2, 1)


def test_a_thread_that_moderators_changed_is_explained(
    garden: records.Site, plan: checked_import.CheckedImport
) -> None:
    wanted = thread_overrides.NewDetails(title="Tulips")
    thread_overrides.name(garden, ROSES.id, wanted, ACTOR, now=LATER)
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


def test_another_secret_explains_the_ids_of_authors(
    garden: records.Site, plan: checked_import.CheckedImport
) -> None:
    other = checked_import.plan(
        sample_exports.disqus.read,
        sample_exports.IMPORTS / "disqus.xml",
        site=garden,
        scheme=SCHEME,
        secret=f"not {SECRET}",
    )
    with other:
        secret = f"not {SECRET}"
        found = import_verification.verify(other, scheme=SCHEME, secret=secret)
        assert found.unexplained == 0
        assert reasons(found) == {
            "author id": {comment_comparison.OTHER_KEY},
            "address": {comment_comparison.OTHER_KEY},
        }
        # The author of one comment becomes that of another one.
        known = {row.author.id for row in rows() if row.author.id} - {stored(plan, "101").author.id}
        raw_changes.comment(plan.id_of("101"), author_id=min(known))
        assert ("101", "author id") in named(verify(other))


def test_html_of_another_release_is_explained(plan: checked_import.CheckedImport) -> None:
    raw_changes.comment(plan.id_of("101"), html="<p>other</p>", renderer="html-1")
    assert reasons(verify(plan)) == {"html": {comment_comparison.CONVERTED}}
    raw_changes.comment(plan.id_of("101"), html="<p>other</p>", renderer="markdown-1")
    assert named(verify(plan)) == {("101", "html")}


def test_pins_above_the_limit_are_explained(garden: records.Site, tmp_path: Path) -> None:
    def read(_: Path) -> Iterator[import_source.Item]:
        yield import_source.SourceThread("1", 1, "/roses")
        for n in range(5):
            yield import_source.SourceComment(
                "disqus", str(n), n + 2, "1", None, Status.APPROVED, NOW, "Ada", "text", pinned=True
            )

    path = tmp_path / "export"
    path.touch()
    with checked_import.plan(read, path, site=garden, scheme=SCHEME, secret=SECRET) as plan:
        write(plan)
        found = verify(plan)
        assert named(found, explained=True) == {("3", "pinned"), ("4", "pinned")}
        assert reasons(found) == {"pinned": {comment_comparison.PIN_LIMIT}}
        raw_changes.comment(plan.id_of("1"), pinned=False)
        raw_changes.change(comment_rows.thread_key(ROSES), pins=[plan.id_of("0")])
        assert named(verify(plan)) == {
            ("1", "pinned"),
            ("2", "pins of the thread"),
            ("3", "pinned"),
            ("4", "pinned"),
        }


@pytest.mark.embedded
def test_a_verification_needs_no_further_index(
    plan: checked_import.CheckedImport, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw_changes.delete_comments(plan.id_of("105"))
    raw_changes.comment(plan.id_of("101"), pinned=True)
    raw_changes.change(comment_rows.thread_key(ROSES), state="closed")

    def make(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr("emulator.execution.lazy_indexes.make", make)
    assert {field for _, field in named(verify(plan))} == {
        "comment", "pinned", "pins of the thread", "state",
    }  # fmt: skip


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
        assert verify(plan, levels=8).differences == ()


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


def test_an_address_is_explained_once_its_term_is_over(
    plan: checked_import.CheckedImport,
) -> None:
    nodes = {plan.id_of(node.id): node.id for thread in plan.threads for node in thread.nodes}
    source = next(nodes[row.id] for row in rows() if row.author.email)
    raw_changes.comment(plan.id_of(source), author_email="")
    assert named(verify(plan)) == {(source, "address")}
    raw_changes.comment(plan.id_of(source), author_email="eve@mail.example")
    (group,) = verify(plan).differences
    assert [(each.stored, each.expected) for each in group.examples] == [("another one", "one")]
    import_expiry.expire(NOW + 2 * import_journal.TERM)
    found = verify(plan)
    assert found.unexplained == 0
    assert reasons(found) == {"address": {comment_comparison.EXPIRED}}


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


@pytest.mark.parametrize("scheme", ["[", '["BA",2,8]', '{"levels": 1}'])
def test_a_damaged_scheme_of_a_thread_is_no_crash(
    plan: checked_import.CheckedImport, scheme: str
) -> None:
    raw_changes.change(comment_rows.thread_key(ROSES), scheme=scheme)
    assert verify(plan).in_store.comments == 12


@pytest.mark.parametrize(
    ("name", "field"), [("created", "created"), ("html", "html"), ("sort_hash", "sort_hash")]
)
def test_a_missing_property_is_named(
    plan: checked_import.CheckedImport, name: str, field: str
) -> None:
    raw_changes.without(plan.id_of("101"), name)
    assert named(verify(plan)) == {("101", field)}


TITLED = THREAD.replace("</link>", "</link><title>Roses</title>")


@pytest.fixture
def titled(
    garden: records.Site, export: Callable[..., Path]
) -> Iterator[checked_import.CheckedImport]:
    """The plan of an imported thread with a title and one comment."""
    with plan_of(export(TITLED, post("1"))) as plan:
        write(plan)
        yield plan


def test_a_thread_whose_comments_were_refused_loses_its_title(
    titled: checked_import.CheckedImport,
) -> None:
    decisions.decide("garden", titled.id_of("1"), Verb.SPAM, ACTOR, now=LATER)
    found = verify(titled)
    assert named(found) == set()
    assert reasons(found) == {
        field: {comment_comparison.MODERATED} for field in ("status", "title", "url")
    }


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
        assert reasons(verify(later)) == {"title": {comment_comparison.EARLIER_FILE}}
    raw_changes.change(comment_rows.thread_key(ROSES), title="Tulips")
    assert named(verify(titled)) == {("", "title")}


def test_a_pin_that_moderators_removed_is_explained(garden: records.Site, tmp_path: Path) -> None:
    def read(_: Path) -> Iterator[import_source.Item]:
        yield import_source.SourceThread("1", 1, "/roses")
        for n in range(2):
            yield import_source.SourceComment(
                "disqus", str(n), n + 2, "1", None, Status.APPROVED, NOW, "Ada", "text", pinned=True
            )

    path = tmp_path / "export"
    path.touch()
    with checked_import.plan(read, path, site=garden, scheme=SCHEME, secret=SECRET) as plan:
        write(plan)
        assert verify(plan).differences == ()
        decisions.decide("garden", plan.id_of("0"), Verb.UNPIN, ACTOR, now=LATER)
        # Pinning another comment removes the pin of one that readers no longer see.
        sample_threads.post(garden, "mine", thread=ROSES.id)
        decisions.decide("garden", plan.id_of("1"), Verb.HIDE, ACTOR, now=LATER)
        mine = next(row for row in rows() if row.body == "mine")
        decisions.decide("garden", mine.id, Verb.PIN, ACTOR, now=LATER)
        found = verify(plan)
    assert named(found, explained=True) == {("0", "pinned"), ("1", "pinned"), ("1", "status")}
    assert found.unexplained == 0
