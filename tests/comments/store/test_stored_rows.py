"""Stored keys and rows equal golden values; a change to a golden value breaks existing stores."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comments.domain import records
from comments.domain.counters import counting
from comments.store import connection, reads
from comments.store.models import comment_rows, conversion, counter_rows
from comments.tree.lists import ordered_query
from tests.support.threads import sample_threads


@pytest.mark.parametrize("thread", ["about", "example.com/a/b", "x" * 500, "é" * 250, "#", "/"])
def test_the_key_of_a_thread_is_its_site_and_id(thread: str) -> None:
    assert comment_rows.thread_key_name(records.ThreadName("demo", thread)) == f"demo/{thread}"


@pytest.mark.parametrize("thread", ["x" * 501, "é" * 251])
def test_an_id_above_500_bytes_is_keyed_by_a_digest(thread: str) -> None:
    found = comment_rows.thread_key_name(records.ThreadName("demo", thread))
    assert found.startswith("demo#")
    assert len(found) == len("demo#") + 64


def test_the_key_of_a_long_thread_id_is_its_sha_256() -> None:
    found = comment_rows.thread_key_name(records.ThreadName("demo", "a" * 1000))
    assert found == "demo#41edece42d63e8d9bf515a9ba6932e1c20cbc9f5a5d134645adb5db1b9737ea3"


def test_a_comment_id_is_26_letters_and_digits() -> None:
    assert comment_rows.comment_id(bytes(range(32))) == "aaaqeayeaudaocajbifqydiob4"
    assert comment_rows.is_comment_id("aaaqeayeaudaocajbifqydiob4")


@pytest.mark.parametrize(
    "text", ["", "a" * 25, "a" * 27, "A" * 26, "1" * 26, "é" * 26, "a" * 25 + "\n"]
)
def test_any_other_text_is_not_a_comment_id(text: str) -> None:
    assert not comment_rows.is_comment_id(text)


@given(st.text(max_size=40), st.text(max_size=40))
def test_no_two_threads_share_a_key(one: str, two: str) -> None:
    names = [records.ThreadName("demo", text) for text in (one, two)]
    keys = {comment_rows.thread_key_name(name) for name in names}
    assert len(keys) == len({one, two})


def test_both_ways_of_reading_a_row_give_one_record(
    store: connection.Store, site: records.Site
) -> None:
    author = records.Author("Ann 🎈", "https://ann.example", "ann@example.org", "g:ann")
    root = sample_threads.post(site, "root", author=author)
    reply = sample_threads.post(
        site, "reply \U0001f388 **x**", root.id, now=datetime(2026, 1, 1, 0, 0, 0, 1, UTC)
    )
    for row in (root, reply):
        by_key = conversion.comment_record(reads.get(comment_rows.comment_key(row.id)))
        by_query = next(
            r for r in ordered_query.thread(sample_threads.name_of(site)) if r.id == row.id
        )
        assert by_key == by_query
    assert by_key == reply


def test_the_stored_properties_of_a_comment_are_stable() -> None:
    indexed = {
        "thread", "sort_hash", "level", "parent", "slug", "author_id", "status", "listed",
        "unfolded", "fold_by", "created", "revision", "changed", "site",
        "former_slugs", "category_terms",
    }  # fmt: skip
    stored = {
        "thread_id", "number", "child_count", "reply_to", "author_name",
        "author_website", "author_email", "body", "html", "renderer", "edited",
        "edited_by_staff", "score", "up", "down", "cast_up", "cast_down", "text_revision",
        "fingerprint", "origin", "came_from", "by_staff", "source", "shelved", "rewrites", "moved",
        "categories", "shape",
        "rule", "why", "reasons", "stood", "stood_for", "judged", "pinned", "brought",
    }  # fmt: skip
    columns = comment_rows.CommentRow.COLUMNS
    assert {name for name, each in columns.items() if each.is_indexed} == indexed
    assert {name for name, each in columns.items() if not each.is_indexed} == stored


@pytest.mark.parametrize(
    ("scope", "kind", "name"),
    [
        (counting.category_scope("demo", "how to"), "Category", "demo/how to"),
        (counting.day_scope("demo", "2026-01-31"), "Day", "demo//2026-01-31"),
        (counting.day_scope("demo", "2026-01-31", "news"), "Day", "demo/news/2026-01-31"),
        (counting.category_scope("demo", "news", "g:a/b"), "Appearance", "demo/news//g:a/b"),
        (counting.category_scope("demo", "a/b/c"), "Category", "demo/a\x1fb\x1fc"),
        (counting.day_scope("demo", "2026-01-31", "a/b"), "Day", "demo/a\x1fb/2026-01-31"),
        (counting.category_scope("demo", "a/b", "g:a/b"), "Appearance", "demo/a\x1fb//g:a/b"),
        (
            counting.day_scope("demo", "2026-01-31", "", "g:a/b"),
            "Appearance",
            "demo//2026-01-31/g:a/b",
        ),
        (counting.month_scope("demo", "demo/page", "2026-01-31"), "Month", "demo/2026-01/61"),
    ],
)
def test_the_keys_of_statistics_are_stable(
    store: connection.Store, scope: counting.Scope, kind: str, name: str
) -> None:
    key = counter_rows.statistics_key(scope)
    assert key == ((kind, name),)
    assert counter_rows.statistics_scope(kind, name) == scope


def test_the_entry_of_a_day_is_stable() -> None:
    scope = counting.day_scope("demo", "2026-01-31", "news")
    assert counter_rows.day_entry(scope) == "demo/2026-01-31/news"
    nested = counting.day_scope("demo", "2026-01-31", "sport/football")
    assert counter_rows.day_entry(nested) == "demo/2026-01-31/sport\x1ffootball"
