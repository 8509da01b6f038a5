"""Comments are found by slug, and pages by number and offset; wrong addresses name their field."""

import json
from typing import Any

import pytest
from flask.testing import FlaskClient

from comments.domain import records
from comments.reading import page_source
from comments.reading.materialized import time_index
from comments.store import connection
from comments.store.memory import per_process
from comments.tree.lists import ordered_query
from tests.support import prepared_stores
from tests.support.people import api_requests
from tests.support.threads import compaction, sample_threads

SITE = "/api/v1/sites/demo"
PAGE = f"{SITE}/comments?thread=page"
ONE = f"{SITE}/comment?thread=page"
# The places of sample_threads.ORDER in reading order.
SUBTREES = [[1, 5], [2, 4], [3, 3], [4, 4], [5, 5], [6, 7], [7, 7], [8, 8]]
SLUGS = ["1", "1-1", "1-1-1", "1-1-2", "1-2", "2", "2-1", "3"]


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> prepared_stores.Beginning:
    """A store with the sample tree."""
    return prepared_stores.grown(
        tmp_path_factory, lambda site: sample_threads.grow(site, sample_threads.TREE)
    )


@pytest.fixture(params=[False, True], ids=["uncompacted", "compacted"])
def rows(
    request: pytest.FixtureRequest,
    begun: prepared_stores.Beginning,
    open_store: connection.Store,
    site: records.Site,
    monkeypatch: pytest.MonkeyPatch,
) -> dict[str, records.Comment]:
    """Return the comments by text; compact the thread for the second run of each test."""
    compaction.small_buckets(monkeypatch)
    if request.param:
        with open_store.context():
            compaction.whole(sample_threads.name_of(site))
    found: dict[str, records.Comment] = begun.found
    return found


def page_of(client: FlaskClient, query: str = "", path: str = PAGE) -> dict[str, Any]:
    answer = client.get(path + query)
    assert answer.status_code == 200, answer.text
    return api_requests.answer(answer)


def positions(page: dict[str, Any]) -> list[int]:
    return [row["position"] for row in page["comments"]]


def slugs(page: dict[str, Any]) -> list[str]:
    return [row["slug"] for row in page["comments"]]


def test_each_row_has_its_position_and_its_subtree(
    client: FlaskClient, rows: dict[str, records.Comment]
) -> None:
    page = page_of(client, "&order=thread")
    assert slugs(page) == SLUGS
    assert positions(page) == list(range(1, 9))
    assert [row["subtree"] for row in page["comments"]] == SUBTREES
    assert (page["first"], page["last"], page["total"]) == (1, 8, 8)


def test_positions_follow_the_order_and_subtrees_do_not(
    client: FlaskClient, rows: dict[str, records.Comment]
) -> None:
    page = page_of(client, "&order=recent")
    assert slugs(page) == ["3", "2", "2-1", "1", "1-1", "1-1-1", "1-1-2", "1-2"]
    assert positions(page) == list(range(1, 9))
    assert [row["subtree"] for row in page["comments"]] == [
        SUBTREES[SLUGS.index(slug)] for slug in slugs(page)
    ]


def test_flat_orders_have_positions_without_subtrees(
    client: FlaskClient, rows: dict[str, records.Comment]
) -> None:
    page = page_of(client, "&order=newest&limit=3")
    assert positions(page) == [1, 2, 3]
    page = page_of(client, f"&order=newest&limit=3&cursor={page['cursor']}")
    assert (positions(page), page["first"], page["last"]) == ([4, 5, 6], 4, 6)
    assert {row["subtree"] for row in page["comments"]} == {None}


def test_positions_in_flat_orders_end_where_counting_ends(
    client: FlaskClient, rows: dict[str, records.Comment], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ordered_query, "MOST_COUNTED", 3)
    # The thread has no time index.
    monkeypatch.setattr(time_index, "starts", lambda *_, **__: [time_index.Start(None, 0)])
    page = page_of(client, "&order=oldest&limit=3")
    page = page_of(client, f"&order=oldest&limit=3&cursor={page['cursor']}")
    assert positions(page) == [4, 5, 6]
    page = page_of(client, f"&order=oldest&limit=3&cursor={page['cursor']}")
    assert positions(page) == [None, None]
    assert (page["first"], page["last"], page["total"]) == (None, None, 8)


@pytest.mark.parametrize("order", ["thread", "recent", "best", "oldest", "newest"])
def test_pages_have_numbers_and_offsets(
    client: FlaskClient, rows: dict[str, records.Comment], order: str
) -> None:
    whole = page_of(client, f"&order={order}")
    for number, offset in ((1, 0), (2, 3), (3, 6)):
        page = page_of(client, f"&order={order}&limit=3&page={number}")
        assert page == page_of(client, f"&order={order}&limit=3&offset={offset}")
        assert page["comments"] == whole["comments"][offset : offset + 3]
        assert (page["first"], page["last"]) == (offset + 1, min(offset + 3, 8))
        assert ("pinned" in page) == (number == 1)
    assert page["cursor"] is None


def test_a_page_number_can_stand_beside_the_url_of_the_page(
    client: FlaskClient, site: records.Site
) -> None:
    thread = f"{SITE}/comments?page=http://localhost:8080/a"
    for number in range(3):
        posted = {"name": "Ann", "body": f"number {number}"}
        assert client.post(thread, json=posted).status_code == 201
    assert slugs(page_of(client, "&limit=2&page=2", thread)) == ["3"]
    assert slugs(page_of(client, "&limit=2&offset=1", thread)) == ["2", "3"]
    assert slugs(page_of(client, f"?page=2&limit=2{thread[thread.index('?'):].replace('?', '&')}",
                         f"{SITE}/comments")) == ["3"]  # fmt: skip


def test_an_empty_thread_has_a_first_page(client: FlaskClient) -> None:
    for query in ("", "&page=1", "&offset=0", "&order=newest&page=1", "&limit=all"):
        page = page_of(client, query, f"{SITE}/comments?thread=nothing")
        assert (page["comments"], page["first"], page["last"]) == ([], None, None)


def test_a_slug_finds_a_comment_with_its_ancestors(client: FlaskClient) -> None:
    found = page_of(client, "&slug=1-1-2", ONE)
    assert found["comment"]["slug"] == "1-1-2"
    assert [row["slug"] for row in found["ancestors"]] == ["1", "1-1"]


@pytest.mark.parametrize("query", ["&slug=1-1-2", "&around=1-1-2"])
def test_a_slug_leads_to_the_page_around_its_comment(
    client: FlaskClient, rows: dict[str, records.Comment], query: str
) -> None:
    page = page_of(client, f"{query}&limit=4")
    assert page == page_of(client, f"&around={rows['1.1.2'].id}&limit=4")
    assert "1-1-2" in slugs(page)
    assert positions(page) == [1 + SLUGS.index(slug) for slug in slugs(page)]
    assert (page["first"], page["last"]) == (positions(page)[0], positions(page)[-1])


@pytest.mark.parametrize("query", ["slug=2-1", "around=2-1"])
def test_a_slug_leads_to_the_html_page_around_its_comment(
    client: FlaskClient, rows: dict[str, records.Comment], query: str
) -> None:
    found = client.get(f"/embed/demo?thread=page&{query}")
    assert found.status_code == 200
    assert f'id="comment-{rows["2.1"].id}"' in found.text
    missing = client.get(f"/embed/demo?thread=page&{query.replace('2-1', '9')}")
    assert missing.status_code == 404
    assert client.get("/embed/demo?thread=page&slug=x").status_code == 400
    assert client.get(f"/embed/demo?thread=page&slug=1&reply={rows['1'].id}").status_code == 400


def test_replies_and_levels_have_positions_in_the_whole_thread(
    client: FlaskClient, rows: dict[str, records.Comment]
) -> None:
    below = page_of(client, "?limit=2", f"{api_requests.ONE}{rows['1'].id}/replies")
    assert (positions(below), below["first"], below["last"]) == ([2, 3], 2, 3)
    rest = f"?limit=9&cursor={below['cursor']}"
    below = page_of(client, rest, f"{api_requests.ONE}{rows['1'].id}/replies")
    assert positions(below) == [4, 5]
    roots = page_of(client, "&parent=root&limit=2")
    assert (slugs(roots), positions(roots)) == (["1", "2"], [1, 6])
    roots = page_of(client, f"&parent=root&cursor={roots['cursor']}")
    assert positions(roots) == [8]
    children = page_of(client, f"&parent={rows['1'].id}")
    assert (positions(children), children["first"], children["last"]) == ([2, 5], 2, 5)
    assert [row["subtree"] for row in children["comments"]] == [[2, 4], [5, 5]]


def test_a_whole_list_says_where_it_begins_and_ends(
    client: FlaskClient, rows: dict[str, records.Comment]
) -> None:
    whole = page_of(client, "&limit=all")
    assert (whole["first"], whole["last"], whole["total"]) == (1, 8, 8)
    assert not any("position" in row or "subtree" in row for row in whole["comments"])
    below = page_of(client, "?limit=all", f"{api_requests.ONE}{rows['1.1'].id}/replies")
    assert (below["first"], below["last"], below["total"]) == (3, 4, 8)
    none = page_of(client, "?limit=all", f"{api_requests.ONE}{rows['3'].id}/replies")
    assert (none["first"], none["last"]) == (None, None)


def test_removed_comments_with_replies_count_and_held_ones_do_not(
    client: FlaskClient, rows: dict[str, records.Comment], open_store: connection.Store
) -> None:
    with open_store.context():
        sample_threads.retract(rows["1.1"])
        sample_threads.retract(rows["2.1"])
    page = page_of(client)
    assert slugs(page) == [slug for slug in SLUGS if slug != "2-1"]
    assert positions(page) == list(range(1, 8))
    assert page["comments"][1]["status"] == "removed"
    assert page["comments"][-1]["subtree"] == [7, 7]
    assert slugs(page_of(client, "&page=3&limit=3")) == ["3"]
    assert client.get(f"{ONE}&slug=2-1").status_code == 404
    assert client.get(f"{PAGE}&around=2-1").status_code == 404


# The tag of a page of an uncompacted thread is a digest of its bytes.
@pytest.mark.parametrize("rows", [True], indirect=True, ids=["compacted"])
def test_a_page_of_a_release_without_the_comments_id_is_sent_again(
    client: FlaskClient,
    rows: dict[str, records.Comment],
    open_store: connection.Store,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = f"{PAGE}&around={rows['2'].id}"
    with monkeypatch.context() as earlier:
        earlier.setattr(page_source, "_FORM", "4")
        tag = client.get(path).headers["ETag"]
    per_process.fresh_process(open_store)
    found = client.get(path, headers={"If-None-Match": tag})
    assert found.status_code == 200
    assert json.loads(found.data)["around"] == rows["2"].id


def test_a_numbered_page_is_answered_304_until_it_changes(
    client: FlaskClient,
    rows: dict[str, records.Comment],
    open_store: connection.Store,
    site: records.Site,
) -> None:
    path = f"{PAGE}&limit=3&page=2"
    tag = client.get(path).headers["ETag"]
    assert client.get(path, headers={"If-None-Match": tag}).status_code == 304
    assert client.get(f"{PAGE}&limit=3&page=1").headers["ETag"] != tag
    with open_store.context():
        sample_threads.post(site, "new")
    changed = client.get(path, headers={"If-None-Match": tag})
    assert changed.status_code == 200
    assert json.loads(changed.data)["total"] == 9


@pytest.mark.parametrize(
    ("query", "field", "code"),
    [
        ("&page=0", "page", "out-of-range"),
        ("&page=-1", "page", "out-of-range"),
        ("&page=x", "page", "not-a-number"),
        ("&page=1.5", "page", "not-a-number"),
        ("&page=", "page", "not-a-number"),
        ("&page=01", "page", "not-a-number"),
        ("&page=1&page=2", "page", "duplicate-field"),
        ("&page=%zz", "page", "bad-percent-encoding"),
        ("&page=9999999999", "page", "out-of-range"),
        ("&page=https://blog.example/", "page", "conflicting-fields"),
        ("&page=1&offset=1", "page", "conflicting-fields"),
        ("&page=1&cursor=x", "page", "conflicting-fields"),
        ("&page=1&parent=root", "page", "conflicting-fields"),
        ("&page=1&around=1", "page", "conflicting-fields"),
        ("&page=1&limit=all", "limit", "all-not-allowed"),
        ("&page=2", "page", "beyond-the-end"),
        ("&page=4&limit=3&order=recent", "page", "beyond-the-end"),
        ("&page=4&limit=3&order=newest", "page", "beyond-the-end"),
        ("&page=22&limit=50&order=newest", "page", "beyond-the-end"),
        ("&offset=-1", "offset", "out-of-range"),
        ("&offset=x", "offset", "not-a-number"),
        ("&offset=8", "offset", "beyond-the-end"),
        ("&offset=8&order=best", "offset", "beyond-the-end"),
        ("&offset=1000&order=oldest", "offset", "beyond-the-end"),
        ("&offset=100000000&order=oldest", "offset", "beyond-the-end"),
        ("&offset=0&cursor=x", "offset", "conflicting-fields"),
        ("&offset=1&parent=root", "offset", "conflicting-fields"),
        ("&offset=1&slug=1", "offset", "conflicting-fields"),
        ("&offset=0&limit=all", "limit", "all-not-allowed"),
        ("&slug=", "slug", "not-a-slug"),
        ("&slug=0", "slug", "not-a-slug"),
        ("&slug=1-", "slug", "not-a-slug"),
        ("&slug=1--2", "slug", "not-a-slug"),
        ("&slug=1-0", "slug", "not-a-slug"),
        ("&slug=01", "slug", "not-a-slug"),
        ("&slug=1.2", "slug", "not-a-slug"),
        ("&slug=%D9%A1", "slug", "not-a-slug"),
        ("&slug=" + "1-" * 500 + "1", "slug", "not-a-slug"),
        ("&slug=1&around=1", "slug", "conflicting-fields"),
        ("&slug=1&cursor=x", "cursor", "conflicting-fields"),
        ("&slug=1&order=newest", "order", "conflicting-fields"),
        ("&slug=1&limit=all", "limit", "all-not-allowed"),
        ("&around=x", "around", "not-an-id-or-slug"),
        ("&around=1-0", "around", "not-an-id-or-slug"),
    ],
)
def test_a_wrong_address_names_its_field(
    client: FlaskClient, query: str, field: str, code: str
) -> None:
    assert api_requests.refused(client.get(PAGE + query), 400, field) == code


@pytest.mark.parametrize("query", ["", "&slug=x", "&slug=1&limit=1", "&page=1"])
def test_a_slug_call_without_a_slug_is_refused(client: FlaskClient, query: str) -> None:
    assert client.get(ONE + query).status_code == 400


@pytest.mark.parametrize(
    "slug", ["9", "1-9", "1-1-1-1", "9999999999999999999", "1-1-1-1-1-1-1-1-1-1"]
)
@pytest.mark.parametrize("path", [f"{ONE}&slug=", f"{PAGE}&slug=", f"{PAGE}&around="])
def test_the_slug_of_no_comment_is_not_found(client: FlaskClient, path: str, slug: str) -> None:
    assert api_requests.refused(client.get(path + slug), 404) == "comment-not-found"
