"""The mixed load's checker (`mixed_load.kills`) detects each kind of damage."""

from collections.abc import Sequence
from typing import Any

import pytest
from flask.testing import FlaskClient

from benchmarks.mixed_load import load_clients, page_checks
from benchmarks.mixed_load.page_checks import Row, Walk
from comments.domain import records
from comments.store import connection
from tests.support.threads import sample_threads


def _row(name: str, parent: str | None = None, replies: int = 0, **more: Any) -> Row:
    given = {"level": 0 if parent is None else 1, "thread": 1, "version": 0} | more
    return Row(name, parent, replies=replies, **given)


A, B, C = _row("a", None, 1), _row("b", "a"), _row("c")
ORPHAN = "b appears without its parent a"


def _walked(order: str, *pages: Sequence[Row], total: int | None = None) -> list[str]:
    walk = Walk(1, order)
    return [
        each for page in pages for each in walk.page(page, is_whole=total is not None, total=total)
    ]


@pytest.mark.parametrize("order", [*page_checks.TREES, "oldest"])
def test_a_child_before_or_without_its_parent_is_detected(order: str) -> None:
    assert _walked(order, [A, B, C]) == []
    assert _walked(order, [B, A]) == _walked(order, [C, B]) == [ORPHAN]


def test_flat_orders_may_show_a_parent_on_another_page() -> None:
    assert _walked("oldest", [C], [B]) == []
    assert _walked("newest", [B], [A]) == []
    assert _walked("newest", [A, B]) == _walked("newest", [A], [B]) == [ORPHAN]
    assert ORPHAN in _walked("newest", [B, C], total=2)
    assert _walked("thread", [A], [B]) == []


def test_a_comment_repeated_on_one_page_or_two_is_detected() -> None:
    assert _walked("thread", [A, A]) == _walked("newest", [A], [A]) == ["a appears twice"]
    assert list(page_checks.part([A, A], 1)) == ["a appears twice"]


def test_a_comment_of_another_thread_is_detected() -> None:
    assert _walked("thread", [_row("x", thread=2)]) == ["x is of thread 2"]
    assert list(page_checks.part([_row("x", thread=2)], 1)) == ["x is of thread 2"]
    assert _walked("thread", [_row("x", thread=None, version=None)]) == []


def test_numbers_that_do_not_match_the_rows_are_detected() -> None:
    assert _walked("thread", [A, B, C], total=3) == []
    assert _walked("thread", [A, B, C], total=4) == ["the total is 4, not 3"]
    wrong = _walked("thread", [A, B, _row("d", "a")], total=3)
    assert wrong == ["a has 1 replies, not 2"]


def test_an_acknowledged_change_that_is_not_shown_is_detected() -> None:
    found = [_row("a", version=2), _row("b", version=None)]
    assert list(page_checks.missing(found, {"a": 1})) == []
    assert list(page_checks.missing(found, {"a": 3, "b": 0, "c": 0})) == [
        "a has version 2, not 3",
        "b is missing at version 0",
        "c is missing at version 0",
    ]


def test_a_part_of_a_thread_may_begin_below_comments_it_does_not_show() -> None:
    deep, deeper = _row("y", "x", level=3), _row("z", "y", level=4)
    assert list(page_checks.part([deep, deeper, _row("u", "v", level=2)], 1)) == []
    assert list(page_checks.part([deep, _row("z", "other", level=4)], 1)) == [
        "z appears without its parent other"
    ]
    assert list(page_checks.part([B], 1, above="a")) == []
    assert list(page_checks.part([_row("z", "other")], 1, above="a")) == [
        "z appears without its parent other"
    ]


def test_the_checker_reads_the_products_pages(
    client: FlaskClient, store: connection.Store, site: records.Site
) -> None:
    root = sample_threads.post(site, page_checks.text(1, 0, 0, 0), thread=load_clients.name_of(1))
    gone = sample_threads.post(
        site, page_checks.text(1, 0, 1, 0), root.id, thread=load_clients.name_of(1)
    )
    sample_threads.post(site, page_checks.text(1, 0, 2, 5), gone.id, thread=load_clients.name_of(1))
    sample_threads.retract(gone)
    page = client.get(load_clients.path_of(1)).get_json()
    shown = page_checks.rows(page)
    assert [(each.thread, each.version, each.replies) for each in shown] == [
        (1, 0, 2), (None, None, 1), (1, 5, 0)
    ]  # fmt: skip
    assert _walked("thread", shown, total=page["total"]) == []
    html = client.get(f"/embed/demo/fragment?thread={load_clients.name_of(1)}").text
    parents = {each.id: each.parent for each in shown}
    seen = page_checks.shown_in_html(html, parents)
    assert [(each.id, each.parent, each.version) for each in seen] == [
        (each.id, each.parent, each.version) for each in shown
    ]
