"""Test the shape of comment trees: numbers, hashes, levels and `listed`."""

import uuid

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from comments import errors
from comments.domain import records
from comments.domain.ids import sorthash
from comments.domain.records import Status
from comments.posting import own_comment
from comments.sites import site_settings
from comments.store import connection, ownership, reads, transactions
from comments.store.models import comment_rows
from comments.threads import thread_aliases
from comments.tree.lists import ordered_query
from comments.upkeep.integrity import repair
from tests.support.threads import sample_threads

ORDER = sample_threads.ORDER


@pytest.fixture(autouse=True)
def _entered(store: connection.Store) -> None:
    """Run all these tests inside the store."""


def test_one_ordered_query_returns_the_discussion_in_reading_order(site: records.Site) -> None:
    sample_threads.grow(site, sample_threads.TREE)
    assert sample_threads.listed(site) == ORDER


def test_late_replies_are_listed_below_their_parent(site: records.Site) -> None:
    grown = sample_threads.grow(site, {"1": {}, "2": {}, "3": {}})
    first = sample_threads.post(site, "1.1", grown["1"].id)
    sample_threads.post(site, "2.1", grown["2"].id)
    sample_threads.post(site, "1.2", grown["1"].id)
    sample_threads.post(site, "1.1.1", first.id)
    assert sample_threads.listed(site) == ["1", "1.1", "1.1.1", "1.2", "2", "2.1", "3"]


def test_roots_are_numbered_from_zero_and_replies_from_one(site: records.Site) -> None:
    grown = sample_threads.grow(site, sample_threads.TREE)
    assert [grown[text].number for text in ORDER] == [0, 1, 1, 2, 2, 1, 1, 2]
    assert [grown[text].level for text in ORDER] == [0, 1, 2, 2, 1, 0, 1, 0]
    assert grown["1.1.2"].sort_hash == "AAABAC"
    assert grown["1.1.2"].slug == "1-1-2"


def test_parents_store_the_number_of_their_children(site: records.Site) -> None:
    sample_threads.grow(site, sample_threads.TREE)
    rows = {row.body: row.child_count for row in ordered_query.thread(sample_threads.name_of(site))}
    assert rows == {"1": 2, "1.1": 2, "1.1.1": 0, "1.1.2": 0, "1.2": 0, "2": 1, "2.1": 0, "3": 0}
    thread = reads.get(comment_rows.thread_key(sample_threads.name_of(site)))
    assert thread.child_count == 3


def test_a_reply_on_the_deepest_level_is_a_sibling_of_the_comment_it_answers(
    site: records.Site,
) -> None:
    site = sample_threads.shaped(site, sorthash.Scheme(levels=3))
    grown = sample_threads.grow(site, {"a": {"b": {"c": {"d": {"e": {}}}}}})
    assert [grown[text].level for text in "abcde"] == [0, 1, 2, 2, 2]
    assert [grown[text].parent for text in "cde"] == [grown["b"].id] * 3
    assert grown["e"].reply_to == grown["d"].id
    assert sample_threads.listed(site) == ["a", "b", "c", "d", "e"]


def test_with_one_level_every_reply_is_a_root(site: records.Site) -> None:
    site = sample_threads.shaped(site, sorthash.Scheme(levels=1))
    grown = sample_threads.grow(site, {"a": {"b": {"c": {}}}})
    assert [grown[text].parent for text in "abc"] == [None] * 3
    assert sample_threads.listed(site) == ["a", "b", "c"]


def test_a_full_parent_refuses_replies(site: records.Site) -> None:
    site = sample_threads.shaped(site, sorthash.Scheme("01", 1))
    last = sorthash.last_number(site.scheme)
    for number in range(last + 1):
        sample_threads.post(site, str(number))
    with pytest.raises(errors.Conflict, match="parent-full"):
        sample_threads.post(site, "one too many")
    assert sample_threads.listed(site) == [str(number) for number in range(last + 1)]


@pytest.mark.parametrize("kind", ["unknown", "other site"])
def test_an_unknown_or_foreign_parent_is_not_found(site: records.Site, kind: str) -> None:
    parent = "a" * 26
    if kind != "unknown":
        blog = site_settings.add("blog", [], scheme=site.scheme, now=sample_threads.START)
        parent = sample_threads.post(blog, "elsewhere", thread="other").id
        # On this site, the other site's id leads to the thread.
        row = reads.get(comment_rows.site_key(site.id))
        alias = thread_aliases.alias_row(site.id, "other", "page")
        transactions.transaction(
            lambda: transactions.apply(thread_aliases.change_writes(row, added=[alias]))
        )
    with pytest.raises(errors.NotFound, match="parent-not-found"):
        sample_threads.post(site, "reply", parent)
    assert sample_threads.listed(site) == []


def test_a_retracted_parent_refuses_replies(site: records.Site) -> None:
    grown = sample_threads.grow(site, {"1": {"1.1": {}}})
    sample_threads.retract(grown["1"])
    with pytest.raises(errors.Conflict, match="parent-retracted"):
        sample_threads.post(site, "1.2", grown["1"].id)


@pytest.mark.parametrize("status", [Status.PENDING, Status.SPAM, Status.REJECTED])
def test_a_parent_hidden_from_readers_is_not_found(site: records.Site, status: Status) -> None:
    row = sample_threads.post(site, "1")
    _set(row, status=status.value, listed=False)
    with pytest.raises(errors.NotFound, match="parent-not-found"):
        sample_threads.post(site, "1.1", row.id)


def test_a_closed_thread_refuses_comments(site: records.Site) -> None:
    sample_threads.post(site, "1")

    def close() -> None:
        thread = reads.get(comment_rows.thread_key(sample_threads.name_of(site)))
        thread.state = records.ThreadState.CLOSED.value
        transactions.apply(ownership.Writes("test", put=(thread,)))

    transactions.transaction(close)
    with pytest.raises(errors.Conflict, match="thread-closed"):
        sample_threads.post(site, "2")


def test_a_retracted_comment_without_replies_disappears_for_readers(site: records.Site) -> None:
    grown = sample_threads.grow(site, sample_threads.TREE)
    sample_threads.retract(grown["1.2"])
    assert sample_threads.listed(site) == [text for text in ORDER if text != "1.2"]


def test_a_retracted_comment_with_replies_stays_as_a_tombstone(site: records.Site) -> None:
    grown = sample_threads.grow(site, sample_threads.TREE)
    sample_threads.retract(grown["1.1"])
    assert sample_threads.listed(site) == ["1", "-", "1.1.1", "1.1.2", "1.2", "2", "2.1", "3"]


def test_retracting_erases_content_and_author_from_the_row(site: records.Site) -> None:
    author = records.Author("Ann Canary", "https://canary.example", "canary@example.org", "g:c")
    row = sample_threads.post(site, "canary text", author=author)
    own_comment.retract(row.id, author_id="g:c", revision=None, now=sample_threads.START)
    stored = reads.get(comment_rows.comment_key(row.id))
    assert "canary" not in repr(stored).lower()
    assert stored.status == "retracted"
    assert (stored.sort_hash, stored.number) == (row.sort_hash, row.number)


def test_a_tombstone_disappears_with_its_last_listed_reply(site: records.Site) -> None:
    grown = sample_threads.grow(site, sample_threads.TREE)
    sample_threads.retract(grown["1"])
    sample_threads.retract(grown["1.1"])
    sample_threads.retract(grown["1.2"])
    sample_threads.retract(grown["1.1.1"])
    assert sample_threads.listed(site) == ["-", "-", "1.1.2", "2", "2.1", "3"]
    sample_threads.retract(grown["1.1.2"])
    assert sample_threads.listed(site) == ["2", "2.1", "3"]


def test_the_number_of_a_retracted_comment_is_not_used_again(site: records.Site) -> None:
    grown = sample_threads.grow(site, {"1": {"1.1": {}}})
    sample_threads.retract(grown["1.1"])
    assert sample_threads.post(site, "1.2", grown["1"].id).sort_hash == "AAAC"


def test_every_change_raises_the_revision_and_marks_the_row_uncompacted(site: records.Site) -> None:
    row = sample_threads.post(site, "1")
    _set(row, unfolded=False)
    edited = own_comment.edit(
        row.id,
        author_id="g:1",
        body="1 edited",
        revision=row.revision,
        settings=sample_threads.SETTINGS,
        now=sample_threads.START,
    )
    assert edited.revision == row.revision + 1
    assert reads.get(comment_rows.comment_key(row.id)).unfolded


def test_a_reply_does_not_change_its_parents_revision(site: records.Site) -> None:
    row = sample_threads.post(site, "1")
    sample_threads.post(site, "1.1", row.id)
    assert reads.get(comment_rows.comment_key(row.id)).revision == row.revision


def test_a_tombstone_stays_while_another_branch_below_it_is_listed(site: records.Site) -> None:
    grown = sample_threads.grow(site, {"1": {"1.1": {}, "1.2": {}, "1.3": {}}})
    sample_threads.retract(grown["1"])
    sample_threads.retract(grown["1.2"])
    assert sample_threads.listed(site) == ["-", "1.1", "1.3"]
    sample_threads.retract(grown["1.1"])
    assert sample_threads.listed(site) == ["-", "1.3"]
    sample_threads.retract(grown["1.3"])
    assert sample_threads.listed(site) == []


def test_a_reply_beside_a_comment_with_a_missing_parent_asks_for_repair(
    site: records.Site,
) -> None:
    site = sample_threads.shaped(site, sorthash.Scheme(levels=2))
    grown = sample_threads.grow(site, {"1": {"1.1": {}}})
    _set(grown["1.1"], parent="a" * 26)
    with pytest.raises(errors.Conflict, match="thread-damaged") as refused:
        sample_threads.post(site, "1.2", grown["1.1"].id)
    assert refused.value.code == "thread-damaged"


def test_an_unknown_comment_is_neither_edited_nor_retracted(site: records.Site) -> None:
    for comment_id in ("", "a" * 26):
        with pytest.raises(errors.NotFound):
            _edit(comment_id, "new")
        with pytest.raises(errors.NotFound):
            own_comment.retract(
                comment_id, author_id="g:1", revision=None, now=sample_threads.START
            )


def test_an_edit_without_a_change_keeps_the_revision(site: records.Site) -> None:
    row = sample_threads.post(site, "1")
    assert _edit(row.id, "1") == row


def test_an_imported_reply_lists_its_parent(site: records.Site) -> None:
    name = sample_threads.name_of(site)
    sample_threads.store_imported(name, _node("spam", status=Status.SPAM))
    assert sample_threads.listed(site) == []
    before = reads.get(comment_rows.comment_key(_id("spam"))).revision
    sample_threads.store_imported(name, _node("spam", status=Status.SPAM), _node("reply", "spam"))
    assert sample_threads.listed(site) == ["-", "reply"]
    row = reads.get(comment_rows.comment_key(_id("spam")))
    assert (row.revision, row.unfolded, row.child_count) == (before + 1, True, 1)
    assert repair.find_problems(sample_threads.SETTINGS.scheme, name) == []


def test_an_import_that_lists_two_ancestors_counts_each_once(site: records.Site) -> None:
    name = sample_threads.name_of(site)
    held = (
        _node("a", status=Status.PENDING),
        _node("b", "a", status=Status.RETRACTED),
        _node("c", "b"),
        _node("d", "a", status=Status.SPAM),
    )
    assert sample_threads.store_imported(name, *held) == 4
    assert sample_threads.listed(site) == ["-", "-", "c"]
    assert sample_threads.store_imported(name, *held) == 0
    assert repair.find_problems(sample_threads.SETTINGS.scheme, name) == []


def test_a_later_import_lists_all_ancestors_of_its_reply(site: records.Site) -> None:
    name = sample_threads.name_of(site)
    above = (_node("a", status=Status.PENDING), _node("b", "a", status=Status.RETRACTED))
    sample_threads.store_imported(name, *above)
    assert sample_threads.listed(site) == []
    sample_threads.store_imported(name, _node("c", "b"))
    assert sample_threads.listed(site) == ["-", "-", "c"]


def test_an_imported_reply_with_an_unknown_or_foreign_parent_is_refused(site: records.Site) -> None:
    sample_threads.store_imported(sample_threads.name_of(site, "other"), _node("elsewhere"))
    for answered in ("nowhere", "elsewhere"):
        with pytest.raises(errors.NotFound):
            sample_threads.store_imported(sample_threads.name_of(site), _node("reply", answered))
    assert sample_threads.listed(site) == []


def test_later_imported_replies_follow_those_posted_here(site: records.Site) -> None:
    name = sample_threads.name_of(site)
    sample_threads.store_imported(name, _node("a"), _node("b", "a"))
    sample_threads.post(site, "here", _id("a"))
    sample_threads.store_imported(name, _node("a"), _node("b", "a"), _node("c", "a"), _node("d"))
    assert sample_threads.listed(site) == ["a", "b", "here", "c", "d"]


@pytest.mark.slow
@hypothesis_settings(max_examples=15)
@given(data=st.data())
def test_order_and_listing_are_right_after_any_posts_and_retractions(data: st.DataObject) -> None:
    # Each example gets a separate site, because Hypothesis runs many examples in one store.
    site = records.Site(uuid.uuid4().hex, (), sorthash.DEFAULT_DIGITS, 2, 3)
    name = sample_threads.name_of(site)
    alive: dict[str, records.Comment] = {}
    for step in range(data.draw(st.integers(1, 12))):
        if alive and data.draw(st.booleans(), label="retract"):  # type: ignore[arg-type]
            gone = alive.pop(data.draw(st.sampled_from(sorted(alive))))
            sample_threads.retract(gone)
            continue
        parent = data.draw(st.sampled_from([None, *sorted(alive)]))
        row = sample_threads.post(site, str(step), parent and alive[parent].id)
        alive[str(step)] = row
    assert repair.find_problems(site.scheme, name) == []
    rows = ordered_query.thread(name)
    everything = list(repair._read_thread(name).rows.values())
    order = [id_ for id_ in sample_threads.walk(everything) if id_ in {row.id for row in rows}]
    assert [row.id for row in rows] == order
    assert {row.body for row in rows if not row.is_tombstone} == set(alive)


def _edit(comment_id: str, body: str) -> records.Comment:
    return own_comment.edit(
        comment_id,
        author_id="g:1",
        body=body,
        revision=None,
        settings=sample_threads.SETTINGS,
        now=sample_threads.START,
    )


def _id(label: str) -> str:
    return comment_rows.comment_id(label.encode().ljust(16))


def _node(
    label: str, answers: str | None = None, *, status: Status = Status.APPROVED
) -> records.ImportedComment:
    return records.ImportedComment(
        id=_id(label),
        reply_to=answers and _id(answers),
        author=records.Author("Ann"),
        body=label,
        html=f"<p>{label}</p>",
        renderer="test",
        status=status,
        created=sample_threads.START,
        source=f"test:{label}",
    )


def _set(row: records.Comment, **values: object) -> None:
    """Change a stored comment in a way that the product never does."""

    def body() -> None:
        stored = reads.get(comment_rows.comment_key(row.id))
        stored.populate(**values)
        transactions.apply(ownership.Writes("tree", put=(stored,)))

    transactions.transaction(body)
