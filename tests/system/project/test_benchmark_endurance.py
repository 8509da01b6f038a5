"""The benchmark of endurance runs, and detects growth and pages that differ from the query."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from benchmarks import exports
from benchmarks.mixed_load import endurance, load_clients
from benchmarks.mixed_load.endurance import Sample
from comments.domain import records
from comments.store import connection
from comments.transfer.checking import checked_import
from comments.transfer.formats import disqus
from comments.tree.lists import ordered_query
from tests.support.people import api_requests
from tests.support.threads import sample_exports, sample_threads


@pytest.mark.slow
@pytest.mark.embedded
def test_a_short_run_makes_every_kind_of_change_without_a_violation(tmp_path: Path) -> None:
    load = endurance.Load(seconds=6, threads=2, writers=4, readers=4, imported=5)
    world, samples = endurance.run(load, tmp_path)
    assert world.violations == []
    for what in ("pages", "posts", "edits", "votes", "decisions", "imported comments"):
        assert world.counts[what], world.report()
    assert [bar.name for bar in endurance.judged(world, samples)] == [
        "endurance", "endurance memory", "endurance log", "endurance data",
    ]  # fmt: skip


def _samples(**grown: int) -> list[Sample]:
    """Return samples of a steady run, in which some numbers grow in the last third."""
    steady = [Sample(memory=100, log=10, data=50 * place, changes=place) for place in range(9)]
    return [
        *steady[:7],
        *(
            dataclasses.replace(
                each, **{name: getattr(each, name) + more for name, more in grown.items()}
            )
            for each in steady[7:]
        ),
    ]


@pytest.mark.parametrize("name", ["memory", "log", "data"])
def test_growth_in_the_last_third_is_detected(name: str) -> None:
    steady, grown = endurance.growth(_samples()), endurance.growth(_samples(**{name: 100}))
    assert steady == endurance.Growth(1.0, 1.0, 1.0)
    others = {"memory", "log", "data"} - {name}
    assert getattr(grown, name) >= 2.0
    assert {getattr(grown, each) for each in others} == {1.0}


@pytest.fixture
def rows(store: connection.Store, site: records.Site) -> tuple[records.Comment, ...]:
    first = sample_threads.post(site, "first", thread="t")
    sample_threads.post(site, "second", thread="t")
    sample_threads.post(site, "a reply", first.id, thread="t")
    return ordered_query.thread(records.ThreadName(site.id, "t"))


def _listed(client: FlaskClient, order: str) -> list[dict[str, Any]]:
    page = api_requests.answer(client.get(f"{api_requests.THREAD}&order={order}"))
    return list(page["comments"])


def test_pages_that_equal_the_ordered_query_have_no_difference(
    client: FlaskClient, rows: tuple[records.Comment, ...]
) -> None:
    orders = ("thread", "oldest", "newest", "recent", "best")
    listings = {order: _listed(client, order) for order in orders}
    assert [each["id"] for each in listings["thread"]] == [row.id for row in rows]
    assert list(endurance.differences(rows, listings)) == []


def test_missing_moved_and_changed_comments_are_detected(
    client: FlaskClient, rows: tuple[records.Comment, ...]
) -> None:
    first, reply, second = _listed(client, "thread")

    def found(*listed: dict[str, Any], order: str = "thread") -> list[str]:
        return list(endurance.differences(rows, {order: listed}))

    assert found(first, second, reply) == ["the order thread differs from the ordered query"]
    assert found(first, second, order="best") == [
        "the order best has 2 comments, the ordered query 3"
    ]
    assert found(first, reply, reply, second, order="recent") == [
        "the order recent has 4 comments, the ordered query 3"
    ]
    assert found(first, {**reply, "level": 0}, second) == [
        f"{reply['id']} has a different place in the order thread"
    ]
    assert found(first, reply, {**second, "html": "<p>old</p>"}) == [
        f"{second['id']} has a different text in the order thread"
    ]


def test_a_post_that_was_hidden_need_not_be_shown() -> None:
    world = load_clients.World(1)
    posts = {name: load_clients.Post(name, None, 0, 0) for name in "abc"}
    world.posts[0] = posts
    known = world.known(0)
    posts["a"].is_moderated = posts["b"].is_retracted = True
    assert set(known) == set("abc")
    assert world.known(0) == world.still(0, known) == {"c": 0}


def test_the_exports_comments_belong_to_the_writers_threads(tmp_path: Path) -> None:
    file = tmp_path / "export.xml"
    exports.write(file, "disqus", [20, 10, 10], first=70)
    site = sample_exports.SITE
    with checked_import.plan(
        disqus.read, file, site=site, scheme=sample_exports.SCHEME, secret=sample_exports.SECRET
    ) as plan:
        assert plan.report.comments == 40
        assert {thread.name.id for thread in plan.threads} == {
            load_clients.name_of(number) for number in range(3)
        }
