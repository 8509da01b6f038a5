"""A repair finds exactly the planted damage, fixes it, and does not find it again."""

from typing import Any

import pytest

from comments.domain import records
from comments.jobs import repair
from comments.posting import own_comment
from comments.store import connection, ownership, reads, transactions
from comments.store.models import comment_rows
from comments.tree import ordered_query
from tests.support.threads import sample_threads

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
    assert repair.fix(SCHEME, name) == 0


@pytest.mark.parametrize(
    ("text", "damage", "fields"),
    [
        ("1.1", {"sort_hash": "ZZ"}, {"sort_hash"}),
        ("1.1", {"level": 5}, {"level"}),
        ("1", {"sort_hash": "", "level": 3, "slug": "?"}, {"sort_hash", "level", "slug"}),
        ("1.1.2", {"listed": False}, {"listed"}),
        ("1", {"child_count": 0}, {"child_count"}),
        ("1.1", {"child_count": 1}, {"child_count"}),
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
    assert repair.fix(SCHEME, name) == len(fields)
    assert repair.find_problems(SCHEME, name) == []
    assert _rows(name) == before
    assert sample_threads.listed(site) == ORDER


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
    _damage(tree_rows["1.1"], parent="a" * 26)
    repair.fix(SCHEME, name)
    assert repair.find_problems(SCHEME, name) == []
    assert sorted(sample_threads.listed(site)) == sorted(ORDER)
    assert next(row for row in ordered_query.thread(name) if row.body == "1.1").level == 0
    sample_threads.post(site, "4")
    assert sample_threads.listed(site)[-1] == "4"


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
        for row in repair._stored(name).values()
    }


def _damage(row: records.Comment, **values: object) -> None:
    def body() -> None:
        stored = reads.get(comment_rows.comment_key(row.id))
        stored.populate(**values)
        transactions.apply(ownership.Writes("tree", put=(stored,)))

    transactions.transaction(body)
