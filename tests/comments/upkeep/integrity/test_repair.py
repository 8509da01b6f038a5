"""A repair finds exactly the planted damage, fixes it, and does not find it again."""

from typing import Any

import pytest

from comments.domain import records
from comments.domain.ids import sorthash
from comments.posting import own_comment
from comments.store import connection, ownership, reads, transactions
from comments.store.models import comment_rows
from comments.tree.lists import ordered_query
from comments.upkeep.integrity import repair
from tests.support.threads import raw_changes, sample_threads

SCHEME = sample_threads.SETTINGS.scheme
ORDER = sample_threads.ORDER


@pytest.fixture(autouse=True)
def _entered(store: connection.Store) -> None:
    """Run all these tests inside the store."""


def test_an_intact_thread_has_no_problems(
    site: records.Site, tree_rows: dict[str, records.Comment]
) -> None:
    gone = tree_rows["1.1"]
    own_comment.retract(gone.id, author_id=gone.author.id, revision=None, now=sample_threads.START)
    name = sample_threads.name_of(site)
    assert repair.find_problems(SCHEME, name) == []
    assert repair.fix(SCHEME, name) == []


@pytest.mark.parametrize(
    ("text", "damage", "fields"),
    [
        ("1.1", {"sort_hash": "ZZ"}, {"sort_hash"}),
        ("1.1", {"level": 5}, {"level"}),
        ("1", {"sort_hash": "", "level": 3, "slug": "?"}, {"sort_hash", "level", "slug"}),
        ("1.1.2", {"listed": False}, {"listed"}),
        ("1", {"child_count": 0}, {"child_count"}),
        ("1.1", {"child_count": 1}, {"child_count"}),
        ("1.1", {"score": 7}, {"score"}),
        ("1.1", {"html": "<p>no</p>"}, {"html"}),
    ],
)
def test_fields_that_follow_from_links_and_numbers_are_rebuilt(
    site: records.Site,
    tree_rows: dict[str, records.Comment],
    text: str,
    damage: dict[str, Any],
    fields: set[str],
) -> None:
    name = sample_threads.name_of(site)
    before = _rows(name)
    _damage(tree_rows[text], **damage)
    found = repair.find_problems(SCHEME, name)
    assert {(p.comment, p.field) for p in found} == {
        (tree_rows[text].id, field) for field in fields
    }
    assert len(repair.fix(SCHEME, name)) == len(fields)
    assert repair.find_problems(SCHEME, name) == []
    assert _rows(name) == before
    assert sample_threads.listed(site) == ORDER


def test_a_comment_with_a_new_body_gets_new_html(
    site: records.Site, tree_rows: dict[str, records.Comment]
) -> None:
    name = sample_threads.name_of(site)
    _damage(tree_rows["1.1"], body="*other*")
    assert [each.field for each in repair.fix(SCHEME, name)] == ["html"]
    row = next(row for row in ordered_query.thread(name) if row.body == "*other*")
    assert row.html == "<p><em>other</em></p>\n"
    assert repair.find_problems(SCHEME, name) == []


def test_a_comment_with_an_unknown_status_waits_for_moderators(
    site: records.Site, tree_rows: dict[str, records.Comment]
) -> None:
    name = sample_threads.name_of(site)
    _damage(tree_rows["3"], status="published")
    found = {(each.field, each.stored, each.expected) for each in repair.fix(SCHEME, name)}
    assert found == {("status", "published", "pending"), ("listed", True, False)}
    assert sample_threads.listed(site) == ORDER[:-1]


def test_a_comment_without_a_time_is_reported_and_left_alone(
    site: records.Site, tree_rows: dict[str, records.Comment]
) -> None:
    name = sample_threads.name_of(site)
    raw_changes.without(tree_rows["3"].id, "created")
    for _ in range(2):
        (problem,) = repair.fix(SCHEME, name)
        assert (problem.comment, problem.field) == (tree_rows["3"].id, "row")
        assert not problem.mendable


def test_a_root_counter_that_is_too_low_is_raised(
    site: records.Site, tree_rows: dict[str, records.Comment]
) -> None:
    name = sample_threads.name_of(site)

    def lower() -> None:
        thread = reads.get(comment_rows.thread_key(name))
        thread.child_count = 1
        transactions.apply(ownership.Writes("test", put=(thread,)))

    transactions.transaction(lower)
    assert [(p.comment, p.stored, p.expected) for p in repair.find_problems(SCHEME, name)] == [
        ("", 1, 3)
    ]
    repair.fix(SCHEME, name)
    sample_threads.post(site, "4")
    assert sample_threads.listed(site) == [*ORDER, "4"]


def test_two_siblings_with_one_number_get_distinct_numbers(
    site: records.Site, tree_rows: dict[str, records.Comment]
) -> None:
    name = sample_threads.name_of(site)
    _damage(tree_rows["1.2"], number=1, sort_hash=tree_rows["1.1"].sort_hash)
    repair.fix(SCHEME, name)
    assert repair.find_problems(SCHEME, name) == []
    assert sample_threads.listed(site) == ORDER


def test_comments_whose_parent_is_missing_become_roots(
    site: records.Site, tree_rows: dict[str, records.Comment]
) -> None:
    name = sample_threads.name_of(site)
    _damage(tree_rows["1.1"], parent="a" * 26, reply_to="a" * 26)
    repair.fix(SCHEME, name)
    assert repair.find_problems(SCHEME, name) == []
    assert sorted(sample_threads.listed(site)) == sorted(ORDER)
    assert next(row for row in ordered_query.thread(name) if row.body == "1.1").level == 0
    sample_threads.post(site, "4")
    assert sample_threads.listed(site)[-1] == "4"


@pytest.mark.parametrize("parent", [None, "a" * 26, "2", "1.1.2"])
def test_a_lost_parent_follows_from_the_answered_comment(
    site: records.Site, tree_rows: dict[str, records.Comment], parent: str | None
) -> None:
    name = sample_threads.name_of(site)
    before = _rows(name)
    wrong = tree_rows[parent].id if parent in tree_rows else parent
    _damage(tree_rows["1.1"], parent=wrong)
    assert [each.field for each in repair.fix(SCHEME, name)] == ["parent"]
    assert _rows(name) == before


def test_a_reply_at_the_deepest_level_gets_the_parent_of_the_answered_comment(
    site: records.Site, tree_rows: dict[str, records.Comment]
) -> None:
    name = sample_threads.name_of(site)
    scheme = sorthash.encode_scheme(sorthash.Scheme(levels=3))
    raw_changes.change(comment_rows.thread_key(name), scheme=scheme)
    deepest = sample_threads.post(site, "1.1.3", tree_rows["1.1.1"].id)
    assert (deepest.parent, deepest.level) == (tree_rows["1.1"].id, 2)
    before = _rows(name)
    assert repair.find_problems(SCHEME, name) == []
    _damage(deepest, parent="a" * 26)
    repair.fix(SCHEME, name)
    assert _rows(name) == before


def test_two_lost_comments_that_answer_each_other_are_not_placed_in_a_circle(
    site: records.Site, tree_rows: dict[str, records.Comment]
) -> None:
    name = sample_threads.name_of(site)
    _damage(tree_rows["1"], parent="a" * 26, reply_to=tree_rows["2"].id)
    _damage(tree_rows["2"], parent="a" * 26, reply_to=tree_rows["1"].id)
    repair.fix(SCHEME, name)
    assert repair.find_problems(SCHEME, name) == []
    assert sorted(sample_threads.listed(site)) == sorted(ORDER)


def test_a_cycle_of_links_is_broken_at_the_oldest_comment(
    site: records.Site, tree_rows: dict[str, records.Comment]
) -> None:
    name = sample_threads.name_of(site)
    _damage(tree_rows["1"], parent=tree_rows["1.1.2"].id)
    repair.fix(SCHEME, name)
    assert repair.find_problems(SCHEME, name) == []
    assert sorted(sample_threads.listed(site)) == sorted(ORDER)
    assert next(row for row in ordered_query.thread(name) if row.body == "1").level == 0


def test_all_hashes_can_be_rebuilt(
    site: records.Site, tree_rows: dict[str, records.Comment]
) -> None:
    name = sample_threads.name_of(site)
    before = _rows(name)
    for row in tree_rows.values():
        _damage(row, sort_hash="x", level=99, slug="", child_count=0)
    repair.fix(SCHEME, name)
    assert _rows(name) == before


def _rows(name: records.ThreadName) -> dict[str, tuple[object, ...]]:
    return {
        row.body: (row.sort_hash, row.level, row.number, row.slug, row.listed, row.child_count)
        for row in repair._read_thread(name).rows.values()
    }


def _damage(row: records.Comment, **values: object) -> None:
    def body() -> None:
        stored = reads.get(comment_rows.comment_key(row.id))
        stored.populate(**values)
        transactions.apply(ownership.Writes("tree", put=(stored,)))

    transactions.transaction(body)
