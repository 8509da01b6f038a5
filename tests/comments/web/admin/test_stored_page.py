"""Test the console's page of a thread as it is stored."""

import re

import pytest

from comments.domain import records
from comments.domain.ids import sorthash
from comments.reading import tree_table
from comments.store import connection
from comments.tree.lists import listed_comments
from comments.web.admin.pages import stored_page
from tests.support.html import html_validator
from tests.support.people.console_browser import Desk
from tests.support.threads import compaction, raw_changes, sample_threads

PATH = "/thread/stored?thread=page"
ROW = re.compile(
    r"<tr><td><code>(\w+)</code></td><td><code>(\w+)</code></td><th[^>]*><a[^>]*>([\d-]+)"
)


def _columns(page: str) -> list[tuple[str, ...]]:
    """Return the padded hash, the stored hash and the slug of each line."""
    return ROW.findall(page)


def test_the_page_shows_the_stored_tree_in_reading_order(
    owner: Desk, site: records.Site, tree_rows: dict[str, records.Comment]
) -> None:
    compaction.whole(sample_threads.name_of(site))
    late = sample_threads.post(site, "late", thread="page", parent=tree_rows["1"].id)
    page = owner.page(PATH)
    shown = _columns(page)
    table = tree_table.of(sorthash.Scheme(), sample_threads.name_of(site))
    assert shown == [(line.padded, line.stored, line.slug) for line in table.lines]
    assert shown == sorted(shown)
    assert page.count("<td>waiting</td>") == len([line for line in table.lines if line.waiting])
    assert f"/comments/{late.id}" in page
    assert html_validator.complaints([page]) == [[]]


def test_a_long_thread_is_shown_in_pages_with_the_buckets_of_their_comments(
    owner: Desk, site: records.Site, tree_rows: dict[str, records.Comment],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    name = sample_threads.name_of(site)
    compaction.whole(name)
    monkeypatch.setattr(stored_page, "_PAGE", 2)
    table, shown, path = tree_table.of(sorthash.Scheme(), name), [], PATH
    while path:
        page = owner.page(path)
        shown += _columns(page)
        found = re.search(r'href="\?([^"]+)" rel="next"', page)
        path = f"/thread/stored?{found[1].replace('&amp;', '&')}" if found else ""
    assert [line[2] for line in shown] == [line.slug for line in table.lines]
    second = tree_table.of(sorthash.Scheme(), name, after=table.lines[1].stored, most=2)
    assert second.lines == table.lines[2:4]


def test_a_check_changes_nothing_and_a_repair_mends_the_thread(
    owner: Desk, site: records.Site, tree_rows: dict[str, records.Comment]
) -> None:
    row = tree_rows["1"]
    assert "No problems found." in owner.settle(PATH, act="check", status=200)
    raw_changes.comment(row.id, sort_hash="ZZ")
    checked = owner.settle(PATH, act="check", status=200)
    assert "1 problem found. Nothing was changed." in checked
    assert "<td>sort_hash</td>" in checked
    assert html_validator.complaints([checked]) == [[]]
    assert listed_comments.with_ancestors(row.id)[0].sort_hash == "ZZ"
    assert "1 problem repaired." in owner.settle(PATH, act="repair", status=200)
    assert listed_comments.with_ancestors(row.id)[0].sort_hash == row.sort_hash
    assert "No problems found." in owner.settle(PATH, act="check", status=200)


def test_the_pages_of_a_thread_are_rebuilt(
    owner: Desk, site: records.Site, tree_rows: dict[str, records.Comment]
) -> None:
    assert "were rebuilt" in owner.settle(PATH, act="rebuild", status=200)
    assert ">waiting<" not in owner.page(PATH)


def test_a_thread_too_large_for_a_request_is_not_checked(
    owner: Desk, site: records.Site, tree_rows: dict[str, records.Comment],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(stored_page, "MOST_COMMENTS", 1)
    assert "flatthread repair --site demo --thread page" in owner.page(PATH)
    refused = owner.settle(PATH, act="check", status=409)
    assert "can only be checked on the command line" in refused


def test_an_unknown_thread_or_action_is_refused(
    owner: Desk, site: records.Site, store: connection.Store
) -> None:
    assert owner.client.get(f"/admin/sites/demo{PATH}").status_code == 404
    owner.settle(PATH, act="check", status=404)
    sample_threads.post(site, "text", thread="page")
    owner.settle(PATH, act="delete", status=400)
