"""A verification gives the reason why a stored comment differs from its file."""

from collections.abc import Iterator
from pathlib import Path

from comments.domain import records
from comments.domain.records import Status, Verb
from comments.moderation import decisions
from comments.store import transactions
from comments.store.models import comment_rows
from comments.transfer import import_source
from comments.transfer.checking import checked_import
from comments.transfer.importing import import_journal, import_undo
from comments.transfer.verification import comment_comparison, import_verification
from comments.tree import changes, values
from tests.support.importing.verified_imports import (
    ACTOR,
    LATER,
    named,
    reasons,
    retract,
    stored,
    verify,
)
from tests.support.threads import raw_changes, sample_exports, sample_threads, sample_votes
from tests.support.threads.sample_exports import NOW, ROSES, SCHEME, SECRET, rows, write


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
    retract(ids["109"])
    found = verify(plan)
    assert found.unexplained_count == 0
    assert named(found, explained=True) == {
        ("101", "text"),
        ("101", "html"),
        ("101", "edited"),
        ("105", "status"),
        ("107", "pinned"),
        ("109", "status"),
    }
    assert reasons(found) == {
        "text": {comment_comparison.EDITED},
        "html": {comment_comparison.EDITED},
        "edited": {comment_comparison.EDITED},
        "status": {comment_comparison.MODERATED, comment_comparison.ERASED},
        "pinned": {comment_comparison.MODERATED},
    }


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
        found = import_verification.verify(other, secret=secret)
        assert found.unexplained_count == 0
        assert reasons(found) == {
            "author id": {comment_comparison.OTHER_KEY},
            "address": {comment_comparison.OTHER_KEY},
        }
        # The author of one comment becomes that of another one.
        known = {row.author.id for row in rows() if row.author.id} - {stored(plan, "101").author.id}
        raw_changes.comment(plan.id_of("101"), author_id=min(known))
        assert "author id" in {field for _, field in named(verify(other))}


def test_the_id_of_another_author_is_a_fault(plan: checked_import.CheckedImport) -> None:
    own = stored(plan, "101").author.id
    others = {row.author.id for row in rows()} - {own, ""}
    assert others
    for other in others:
        raw_changes.comment(plan.id_of("101"), author_id=other)
        assert ("101", "author id") in named(verify(plan))


def test_html_of_another_release_is_explained(plan: checked_import.CheckedImport) -> None:
    raw_changes.comment(plan.id_of("101"), html="<p>other</p>", renderer="html-1")
    assert reasons(verify(plan)) == {"html": {comment_comparison.CONVERTED}}
    raw_changes.comment(plan.id_of("101"), html="<p>other</p>", renderer="markdown-1")
    assert named(verify(plan)) == {("101", "html")}


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
    import_undo.expire(NOW + 2 * import_journal.TERM)
    found = verify(plan)
    assert found.unexplained_count == 0
    assert reasons(found) == {"address": {comment_comparison.EXPIRED}}


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
            ("3", "pinned"),
            ("4", "pinned"),
        }


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
    assert found.unexplained_count == 0
