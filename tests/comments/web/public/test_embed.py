"""Threads as HTML are valid documents that are complete, in order, nested and linked."""

import re

import flask.testing
import pytest

from comments.domain import records
from comments.posting import own_comment
from comments.reading import thread_pages
from comments.sites import site_settings
from comments.store import connection
from comments.web.rendering import nesting
from tests.conftest import ROOT
from tests.support import optional_tools
from tests.support.html import html_reader, html_validator
from tests.support.html.embedded_threads import ADA, PAYLOADS, get, imported, read, walk
from tests.support.prepared_stores import NOW
from tests.support.threads import sample_threads

IMPORTED = ROOT / "tests" / "fixtures" / "imports" / "disqus.xml"
ORDERS = ("thread", "recent", "best", "oldest", "newest")


# --- Completeness and order --------------------


@pytest.mark.parametrize("limit", [1, 2, 5, 50])
@pytest.mark.parametrize("form", ["", "/fragment"])
def test_an_import_shows_every_comment_once_in_thread_order(
    client: flask.testing.FlaskClient, open_store: connection.Store, limit: int, form: str
) -> None:
    threads = imported(open_store, IMPORTED)
    assert sum(map(len, threads.values())) > 10
    for thread, rows in threads.items():
        found = walk(client, f"/embed/demo{form}", thread=thread, limit=limit)
        assert found == [row.id for row in rows]


@pytest.mark.slow
def test_a_real_import_shows_every_comment_once_and_is_valid(
    client: flask.testing.FlaskClient, open_store: connection.Store
) -> None:
    threads = imported(open_store, optional_tools.real_export("disqus/laisky-209.xml"))
    assert sum(map(len, threads.values())) > 200
    documents = []
    for thread, rows in threads.items():
        pages = read(client, thread=thread, limit=200)
        assert [each for _, page in pages for each in page.ids] == [row.id for row in rows]
        documents += [source for source, _ in pages]
    assert html_validator.complaints(documents) == [[]] * len(documents)


@pytest.mark.parametrize("order", ORDERS)
def test_every_order_equals_the_apis(
    client: flask.testing.FlaskClient, compacted_page: dict[str, records.Comment], order: str
) -> None:
    path = "/api/v1/sites/demo/comments"
    listed = client.get(path, query_string={"thread": "page", "order": order}).json
    expected = [comment["id"] for comment in listed["comments"]]
    assert walk(client, order=order, limit=3) == expected
    assert len(expected) == len(compacted_page)


def test_every_order_of_the_api_is_linked(
    client: flask.testing.FlaskClient, compacted_page: dict[str, records.Comment]
) -> None:
    assert set(nesting._ORDERS) == set(thread_pages.ListingOrder)
    for order in thread_pages.ListingOrder:
        page = get(client, order=order)
        current = [v["href"] for _, v in page.elements if "aria-current" in v]
        plain = order is thread_pages.ListingOrder.THREAD
        assert current == ["?thread=page" if plain else f"?thread=page&order={order}"]


def test_a_page_without_an_order_has_the_order_of_the_site(
    client: flask.testing.FlaskClient,
    open_store: connection.Store,
    compacted_page: dict[str, records.Comment],
) -> None:
    with open_store.context():
        site_settings.change("demo", options={"order": "newest"})
    page = get(client)
    assert page.ids == get(client, order="newest").ids != get(client, order="thread").ids
    hrefs = {v["href"] or "" for _, v in page.elements if "href" in v}
    assert {"?thread=page", "?thread=page&order=thread"} <= hrefs
    assert "?thread=page&order=newest" not in hrefs
    around = next(each for each in hrefs if "around=" in each)
    assert client.get(f"/embed/demo{around.partition('#')[0]}").status_code == 200


def test_an_uncompacted_thread_is_shown_too(
    client: flask.testing.FlaskClient, open_store: connection.Store, site: records.Site
) -> None:
    with open_store.context():
        rows = sample_threads.grow(site, sample_threads.TREE)
    assert walk(client, limit=3) == [rows[text].id for text in sample_threads.ORDER]


def test_a_thread_is_also_found_by_its_page_url(
    client: flask.testing.FlaskClient, open_store: connection.Store, site: records.Site
) -> None:
    with open_store.context():
        row = sample_threads.post(site, "hello", thread="blog.example/a")
    assert walk(client, thread="blog.example/a") == [row.id]
    response = client.get("/embed/demo?page=https://blog.example/a/?utm=1")
    assert html_reader.Document(response.text).ids == [row.id]


# --- Places --------------------


def test_lists_are_nested_like_the_comments(
    client: flask.testing.FlaskClient, compacted_page: dict[str, records.Comment]
) -> None:
    levels = {row.id: row.level for row in compacted_page.values()}
    assert get(client).depths == levels
    assert set(get(client, order="newest").depths.values()) == {0}


def test_a_page_that_starts_inside_a_discussion_names_the_parent(
    client: flask.testing.FlaskClient, compacted_page: dict[str, records.Comment]
) -> None:
    first = get(client, limit=2)
    second = get(client, **first.next)
    assert second.depths[compacted_page["1.1.1"].id] == 0
    target = f"around={compacted_page['1.1'].id}#comment-{compacted_page['1.1'].id}"
    assert any(values.get("href", "").endswith(target) for _, values in second.elements)


def test_a_flat_page_names_the_parents_author(
    client: flask.testing.FlaskClient, compacted_page: dict[str, records.Comment]
) -> None:
    assert "in reply to author of 1.1" in get(client, order="oldest").text


def test_a_permalink_leads_to_a_page_with_the_comment(
    client: flask.testing.FlaskClient, compacted_page: dict[str, records.Comment]
) -> None:
    for row in compacted_page.values():
        page = get(client, around=row.id, limit=2)
        assert row.id in page.ids


def test_a_comment_and_its_replies_have_their_own_page(
    client: flask.testing.FlaskClient, compacted_page: dict[str, records.Comment]
) -> None:
    below = [compacted_page[text].id for text in ("1", "1.1", "1.1.1", "1.1.2", "1.2")]
    assert walk(client, below=compacted_page["1"].id) == below
    assert walk(client, below=compacted_page["1"].id, limit=2) == below


def test_deep_replies_are_linked_as_a_page(
    client: flask.testing.FlaskClient, open_store: connection.Store, site: records.Site
) -> None:
    with open_store.context():
        row = sample_threads.post(site, "0")
        chain = [row] + [row := sample_threads.post(site, str(n), row.id) for n in range(1, 8)]
    page = get(client)
    assert "Continue this thread: 2 replies" in page.text
    offered = [
        values["href"]
        for tag, values in page.elements
        if tag == "a" and "below=" in (values["href"] or "")
    ]
    assert offered == [f"?thread=page&below={chain[5].id}"]
    assert page.ids == [row.id for row in chain]


def test_the_number_of_replies_is_shown(
    client: flask.testing.FlaskClient, compacted_page: dict[str, records.Comment]
) -> None:
    assert re.findall(r"\d+ repl\w+", get(client).text) == [
        "4 replies",
        "2 replies",
        "1 reply",
    ]


def test_a_removed_comment_keeps_only_its_place(
    client: flask.testing.FlaskClient, open_store: connection.Store, site: records.Site
) -> None:
    with open_store.context():
        top = sample_threads.post(site, "secret words")
        sample_threads.post(site, "answer", top.id)
        own_comment.retract(top.id, author_id=top.author.id, revision=top.revision, now=NOW)
    page = get(client)
    assert page.depths == dict(zip(page.ids, [0, 1], strict=True))
    assert "This comment was removed." in page.text
    assert "secret" not in page.text + "".join(page.data)
    assert page.linked_data["comment"][0]["creativeWorkStatus"] == "Deleted"


# --- Documents --------------------


def test_every_kind_of_page_is_valid(
    client: flask.testing.FlaskClient,
    open_store: connection.Store,
    site: records.Site,
    compacted_page: dict[str, records.Comment],
) -> None:
    with open_store.context():
        body = "**x**\n\n| a | b |\n|-|-|\n| [y](/relative) | 1 |"
        sample_threads.post(site, body, thread="markdown", author=ADA)
        for number, payload in enumerate(PAYLOADS):
            title = PAYLOADS[-number]
            sample_threads.post(site, payload, thread=f"hostile {number}", title=title, author=ADA)
    paths = [
        "/embed/demo?thread=nobody",
        "/embed/demo?thread=page",
        "/embed/demo?thread=page&order=newest&limit=2",
        f"/embed/demo?thread=page&around={compacted_page['1.1.1'].id}&limit=1",
        f"/embed/demo?thread=page&below={compacted_page['1'].id}",
        "/embed/demo?thread=markdown",
        *(f"/embed/demo?thread=hostile+{number}" for number in range(len(PAYLOADS))),
        "/embed/demo?thread=page&limit=x",
    ]
    documents = [client.get(path).text for path in paths]
    part = client.get("/embed/demo/fragment?thread=page").text
    documents.append(
        f'<!doctype html><html lang="en"><head><title>t</title></head>'
        f"<body><h1>Site</h1>{part}</body></html>"
    )
    assert html_validator.complaints(documents) == [[]] * len(documents)


def test_the_validator_finds_faults() -> None:
    page = "<!doctype html><html><head></head><body><p><ol>x</ol></body></html>"
    assert html_validator.complaints([page]) != [[]]


def test_a_fragment_is_a_part_of_a_page_without_scripts(
    client: flask.testing.FlaskClient, compacted_page: dict[str, records.Comment]
) -> None:
    response = client.get("/embed/demo/fragment?thread=page&limit=3")
    page = html_reader.Document(response.text)
    assert page.tags[0] == "section"
    assert not {"html", "head", "body", "script", "link", "meta", "style"} & set(page.tags)
    targets = [values["href"] or "" for tag, values in page.elements if tag == "a"]
    assert targets
    for target in targets:
        assert target.startswith(("#comment-", "//localhost/embed/demo?thread=page"))
    assert response.headers["Link"].startswith("<?thread=page&limit=3&cursor=")
    assert response.headers["Link"].endswith('>; rel="next"')


def test_a_site_generator_follows_the_fragments_link_headers(
    client: flask.testing.FlaskClient, compacted_page: dict[str, records.Comment]
) -> None:
    path, found = "?thread=page&limit=3", []
    while path:
        response = client.get(f"/embed/demo/fragment{path}")
        found += html_reader.Document(response.text).ids
        link = re.fullmatch(r'<(.*)>; rel="next"', response.headers.get("Link", ""))
        path = link[1] if link else ""
    assert found == [compacted_page[text].id for text in sample_threads.ORDER]


def test_an_empty_thread_is_a_page_that_is_not_indexed(
    client: flask.testing.FlaskClient,
) -> None:
    page = get(client, thread="nobody")
    assert "No comments yet." in page.text
    assert ("meta", {"name": "robots", "content": "noindex"}) in page.elements


def test_times_are_machine_readable(
    client: flask.testing.FlaskClient, compacted_page: dict[str, records.Comment]
) -> None:
    times = [values["datetime"] for tag, values in get(client).elements if tag == "time"]
    assert times[0] == "2026-01-02T03:04:05Z"
    assert len(times) == len(compacted_page)
