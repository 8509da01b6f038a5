"""Threads as HTML: all of a thread in its order, valid, harmless, at the cost of the JSON page."""

import gzip
import json
import re
from pathlib import Path
from typing import Any

import flask
import pytest
from flask.testing import FlaskClient

from comments import (
    datastore,
    floor,
    folding,
    materialized,
    models,
    posting,
    records,
    rendering,
    sites,
    threads,
)
from comments.transfer import disqus, importing
from comments.web import discussion, shapes
from emulator import inprocess, testing
from tests import html5, htmlpages, needs, trees
from tests.conftest import NOW, ROOT

IMPORTED = ROOT / "tests" / "fixtures" / "imports" / "disqus.xml"
ADA = records.Author("Ada", id="g:ada")
ORDERS = ("thread", "recent", "best", "oldest", "newest")
PAYLOADS = (
    '"><img src=x onerror=alert(1)>',
    "</script><script>alert(1)</script>",
    "</title><svg/onload=alert(1)>",
    "<!--<script>",
    "]]>",
    "a\u2028b\u2029c",
    "{{7*7}}{% raw %}",
    "&lt;b&gt; \u202etxt.exe",
    "'; alert(1) //",
)


def get(client: FlaskClient, fragment: str = "", **query: Any) -> htmlpages.Document:
    response = client.get(f"/embed/demo{fragment}", query_string={"thread": "page"} | query)
    assert response.status_code == 200, response.text
    return htmlpages.Document(response.text)


def read(
    client: FlaskClient, path: str = "/embed/demo", **query: Any
) -> list[tuple[str, htmlpages.Document]]:
    """All pages, by the links for readers: as they were sent, and parsed."""
    found: list[tuple[str, htmlpages.Document]] = []
    query = {"thread": "page"} | query
    while query:
        response = client.get(path, query_string=query)
        assert response.status_code == 200, response.text
        found.append((response.text, htmlpages.Document(response.text)))
        query = found[-1][1].next
    return found


def walk(client: FlaskClient, path: str = "/embed/demo", **query: Any) -> list[str]:
    """The comments of all pages."""
    return [each for _, page in read(client, path, **query) for each in page.ids]


@pytest.fixture
def grown(open_store: datastore.Store, site: records.Site) -> dict[str, records.Comment]:
    """The thread "page" of eight comments, folded."""
    with open_store.context():
        rows = trees.grow(site, trees.TREE)
        folded = folding.fold(trees.SETTINGS.scheme, trees.name_of(site))
        assert folded is not None
        folding.clear(folded)
    return rows


def imported(store: datastore.Store, path: Path) -> dict[str, list[records.Comment]]:
    """Import an export into the site "demo"; the listed comments of each thread by the floor."""
    scheme = trees.SETTINGS.scheme
    with store.context():
        site = sites.get("demo")
        with importing.plan(disqus.read, path, site=site, scheme=scheme) as plan:
            importing.write(plan, scheme=scheme, now=NOW, progress=lambda _: None)
            names = [thread.name for thread in plan.threads]
        return {name.id: floor.thread(name) for name in names}


# --- Every comment --------------------


@pytest.mark.parametrize("limit", [1, 2, 5, 50])
@pytest.mark.parametrize("form", ["", "/fragment"])
def test_an_import_shows_every_comment_once_in_the_order_of_the_floor(
    client, open_store, limit, form
):
    threads = imported(open_store, IMPORTED)
    assert sum(map(len, threads.values())) > 10
    for thread, rows in threads.items():
        found = walk(client, f"/embed/demo{form}", thread=thread, limit=limit)
        assert found == [row.id for row in rows]


def test_a_real_import_shows_every_comment_once_and_is_valid(client, open_store):
    threads = imported(open_store, needs.real_export("disqus/benbalter-1145.xml"))
    assert sum(map(len, threads.values())) > 1_000
    documents = []
    for thread, rows in threads.items():
        pages = read(client, thread=thread, limit=200)
        assert [each for _, page in pages for each in page.ids] == [row.id for row in rows]
        documents += [source for source, _ in pages]
    assert html5.complaints(documents) == [[]] * len(documents)


@pytest.mark.parametrize("order", ORDERS)
def test_every_order_is_that_of_the_api(client, grown, order):
    path = "/api/v1/sites/demo/comments"
    listed = client.get(path, query_string={"thread": "page", "order": order}).json
    expected = [comment["id"] for comment in listed["comments"]]
    assert walk(client, order=order, limit=3) == expected
    assert len(expected) == len(grown)


def test_every_order_of_the_api_is_linked(client, grown):
    labels = {label: order for order, label in discussion._ORDERS.items()}
    assert set(labels.values()) == set(shapes.Order)
    for order in shapes.Order:
        page = get(client, order=order)
        current = [v["href"] for _, v in page.elements if "aria-current" in v]
        plain = order is shapes.Order.THREAD
        assert current == ["?thread=page" if plain else f"?thread=page&order={order}"]


def test_a_thread_that_was_never_folded_shows_too(client, open_store, site):
    with open_store.context():
        rows = trees.grow(site, trees.TREE)
    assert walk(client, limit=3) == [rows[text].id for text in trees.ORDER]


def test_a_thread_is_named_by_its_page_as_well(client, open_store, site):
    with open_store.context():
        row = trees.post(site, "hello", thread="blog.example/a")
    assert walk(client, thread="blog.example/a") == [row.id]
    response = client.get("/embed/demo?page=https://blog.example/a/?utm=1")
    assert htmlpages.Document(response.text).ids == [row.id]


# --- Places --------------------


def test_lists_are_nested_as_the_comments_are(client, grown):
    levels = {row.id: row.level for row in grown.values()}
    assert get(client).depths == levels
    assert set(get(client, order="newest").depths.values()) == {0}


def test_a_page_that_starts_inside_a_discussion_says_whom_it_answers(client, grown):
    first = get(client, limit=2)
    second = get(client, **first.next)
    assert second.depths[grown["1.1.1"].id] == 0
    target = f"around={grown['1.1'].id}#comment-{grown['1.1'].id}"
    assert any(values.get("href", "").endswith(target) for _, values in second.elements)


def test_a_flat_page_names_whom_a_comment_answers(client, grown):
    assert "in reply to author of 1.1" in get(client, order="oldest").text


def test_a_permalink_leads_to_a_page_with_the_comment(client, grown):
    for row in grown.values():
        page = get(client, around=row.id, limit=2)
        assert row.id in page.ids


def test_a_comment_and_its_replies_are_a_page_of_their_own(client, grown):
    below = [grown[text].id for text in ("1", "1.1", "1.1.1", "1.1.2", "1.2")]
    assert walk(client, below=grown["1"].id) == below
    assert walk(client, below=grown["1"].id, limit=2) == below


def test_deep_replies_are_offered_as_a_page(client, open_store, site):
    with open_store.context():
        row = trees.post(site, "0")
        chain = [row] + [row := trees.post(site, str(n), row.id) for n in range(1, 8)]
    page = get(client)
    assert "Continue this thread: 2 replies" in page.text
    offered = [
        values["href"]
        for tag, values in page.elements
        if tag == "a" and "below=" in (values["href"] or "")
    ]
    assert offered == [f"?thread=page&below={chain[5].id}"]
    assert page.ids == [row.id for row in chain]


def test_numbers_of_replies_are_said(client, grown):
    assert re.findall(r"\d+ repl\w+", get(client).text) == [
        "4 replies",
        "2 replies",
        "1 reply",
    ]


def test_a_removed_comment_keeps_its_place_and_nothing_else(client, open_store, site):
    with open_store.context():
        top = trees.post(site, "secret words")
        trees.post(site, "answer", top.id)
        posting.retract(top.id, author_id=top.author.id, revision=top.revision, now=NOW)
    page = get(client)
    assert page.depths == dict(zip(page.ids, [0, 1], strict=True))
    assert "This comment was removed." in page.text
    assert "secret" not in page.text + "".join(page.data)
    assert page.linked_data["comment"][0]["creativeWorkStatus"] == "Deleted"


# --- Documents --------------------


def test_every_kind_of_page_is_valid(client, open_store, site, grown):
    with open_store.context():
        body = "**x**\n\n| a | b |\n|-|-|\n| [y](/relative) | 1 |"
        trees.post(site, body, thread="markdown", author=ADA)
        for number, payload in enumerate(PAYLOADS):
            title = PAYLOADS[-number]
            trees.post(site, payload, thread=f"hostile {number}", title=title, author=ADA)
    paths = [
        "/embed/demo?thread=nobody",
        "/embed/demo?thread=page",
        "/embed/demo?thread=page&order=newest&limit=2",
        f"/embed/demo?thread=page&around={grown['1.1.1'].id}&limit=1",
        f"/embed/demo?thread=page&below={grown['1'].id}",
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
    assert html5.complaints(documents) == [[]] * len(documents)


def test_the_validator_complains():
    page = "<!doctype html><html><head></head><body><p><ol>x</ol></body></html>"
    assert html5.complaints([page]) != [[]]


def test_a_fragment_is_a_part_without_scripts(client, grown):
    response = client.get("/embed/demo/fragment?thread=page&limit=3")
    page = htmlpages.Document(response.text)
    assert page.tags[0] == "section"
    assert not {"html", "head", "body", "script", "link", "meta", "style"} & set(page.tags)
    targets = [values["href"] or "" for tag, values in page.elements if tag == "a"]
    assert targets
    for target in targets:
        assert target.startswith(("#comment-", "//localhost/embed/demo?thread=page"))
    assert response.headers["Link"].startswith("<?thread=page&limit=3&cursor=")
    assert response.headers["Link"].endswith('>; rel="next"')


def test_a_builder_walks_the_fragments_by_their_headers(client, grown):
    path, found = "?thread=page&limit=3", []
    while path:
        response = client.get(f"/embed/demo/fragment{path}")
        found += htmlpages.Document(response.text).ids
        link = re.fullmatch(r'<(.*)>; rel="next"', response.headers.get("Link", ""))
        path = link[1] if link else ""
    assert found == [grown[text].id for text in trees.ORDER]


def test_a_thread_nobody_wrote_in_is_an_empty_page_for_no_index(client):
    page = get(client, thread="nobody")
    assert "No comments yet." in page.text
    assert ("meta", {"name": "robots", "content": "noindex"}) in page.elements


def test_times_are_machine_readable(client, grown):
    times = [values["datetime"] for tag, values in get(client).elements if tag == "time"]
    assert times[0] == "2026-01-02T03:04:05Z"
    assert len(times) == len(grown)


# --- Hostile text --------------------


@pytest.mark.parametrize("payload", PAYLOADS)
@pytest.mark.parametrize("form", ["", "/fragment"])
def test_names_and_titles_are_text(client, open_store, site, payload, form):
    with open_store.context():
        trees.post(site, "plain", thread="plain", title="plain")
        trees.post(
            site, "plain", title=payload, author=records.Author(_storable(payload), id="g:1")
        )
    page, plain = get(client, form), get(client, form, thread="plain")
    assert page.tags == plain.tags
    assert [set(values) for _, values in page.elements] == [
        set(values) for _, values in plain.elements
    ]
    assert _storable(payload) in page.text
    if not form:
        assert payload in page.text
        assert page.linked_data["headline"] == payload
        assert page.linked_data["comment"][0]["author"]["name"] == _storable(payload)


@pytest.mark.parametrize("payload", PAYLOADS)
def test_the_data_block_cannot_be_left(client, open_store, site, payload):
    with open_store.context():
        trees.post(site, payload, title=payload, author=ADA)
    source = client.get("/embed/demo?thread=page").text
    block = re.search(r'<script type="application/ld\+json">(.*?)</script>', source, re.DOTALL)
    assert block is not None
    assert not set("<>&\u2028\u2029") & set(block[1])
    assert json.loads(block[1])["headline"] == payload
    assert source.count("<script") == 1


@pytest.mark.parametrize(
    "url",
    [
        "https://evil.example/x",
        "http://localhost.evil.example:8080/x",
        "http://localhost:8081/x",
        "http://localhost/x",
        "https://localhost:8080/x",
        'http://evil.example/"><script>alert(1)</script>',
    ],
)
def test_an_address_elsewhere_is_shown_nowhere(client, open_store, site, url):
    with open_store.context():
        trees.post(site, "hello", url=url)
    source = client.get("/embed/demo?thread=page").text
    page = htmlpages.Document(source)
    assert page.links("canonical") == []
    assert "evil" not in source
    assert not {"url", "@id", "mainEntityOfPage"} & page.linked_data.keys()


@pytest.mark.parametrize(
    "rest", [".evil.example/", "@evil.example/", "1/", "\\@evil.example/", ":1"]
)
def test_an_address_that_only_starts_like_the_site_is_none(rest):
    site = records.Site("demo", ("http://localhost:8080",), "AB", 2)
    url = f"http://localhost:8080{rest}"
    assert threads.address(url, site) == ""


def test_an_address_on_the_site_is_the_canonical_one_and_escaped(client, open_store, site):
    url = "http://localhost:8080/a?b='\"><c>&d"
    with open_store.context():
        row = trees.post(site, "hello", url=f"{url}#top")
    page = get(client)
    assert page.links("canonical") == [url]
    assert page.linked_data["url"] == url
    assert page.linked_data["comment"][0]["url"] == f"{url}#comment-{row.id}"
    assert "c" not in page.tags


def test_an_origin_that_was_withdrawn_is_no_address_any_more(client, open_store, site):
    with open_store.context():
        trees.post(site, "hello", url="http://localhost:8080/a")
        assert get(client).links("canonical")
        sites.change("demo", origins=["https://new.example"])
    assert get(client).links("canonical") == []


def test_a_stored_website_that_is_no_web_address_is_no_link(client, grown, monkeypatch):
    monkeypatch.setattr(rendering, "clean_website", lambda raw: raw)
    body = {"name": "Mallory", "body": "hi", "website": "javascript:alert(1)"}
    assert client.post("/api/v1/sites/demo/comments?thread=m", json=body).status_code == 201
    source = client.get("/embed/demo?thread=m").text
    assert "Mallory" in source
    assert "javascript:" not in source


def _storable(payload: str) -> str:
    """The payload as a name, without what the author of one cannot store."""
    return payload.replace("\u2028", "").replace("\u2029", "").replace("\u202e", "")


# --- Linked data --------------------


def test_it_says_what_the_page_says(client, open_store, site):
    url = "http://localhost:8080/a"
    website = "https://ada.example/"
    with open_store.context():
        top = trees.post(
            site,
            "one *two*\n\nthree & <four>",
            title="A title",
            url=url,
            author=records.Author("Ada", website, id="g:1"),
        )
        reply = trees.post(site, "five", top.id)
    said = get(client).linked_data
    assert said["@context"] == "https://schema.org"
    assert said["@type"] == "DiscussionForumPosting"
    assert (said["headline"], said["commentCount"]) == ("A title", 2)
    (first,) = said["comment"]
    assert first["text"] == "one two\nthree & <four>"
    assert first["author"] == {"@type": "Person", "name": "Ada", "url": website}
    assert first["datePublished"] == "2026-01-02T03:04:05Z"
    assert first["commentCount"] == 1
    (second,) = first["comment"]
    assert (second["@type"], second["url"]) == ("Comment", f"{url}#comment-{reply.id}")


def test_every_page_lists_its_own_comments_nested(client, grown):
    def count(part: dict[str, Any]) -> int:
        return sum(1 + count(each) for each in part.get("comment", ()))

    first = get(client, limit=3)
    assert count(first.linked_data) == 3
    assert count(get(client).linked_data) == len(grown)
    assert [each["text"] for each in get(client).linked_data["comment"]] == ["1", "2", "3"]


# --- Refusals --------------------


@pytest.mark.parametrize(
    ("query", "status", "named"),
    [
        ("", 400, "thread"),
        ("thread=", 400, "thread"),
        ("thread=a&page=https://b.example", 400, "page"),
        ("page=nonsense", 400, "page"),
        ("thread=page&limit=0", 400, "limit"),
        ("thread=page&limit=201", 400, "limit"),
        ("thread=page&limit=x", 400, "limit"),
        ("thread=page&order=worst", 400, "order"),
        ("thread=page&cursor=forged", 400, "cursor"),
        ("thread=page&around=x", 400, "around"),
        (f"thread=page&around={'a' * 26}", 404, "comment"),
        (f"thread=page&below={'a' * 26}", 404, "comment"),
        (f"thread=page&below={'a' * 26}&around={'a' * 26}", 400, "below"),
        (f"thread=page&around={'a' * 26}&cursor=x", 400, "cursor"),
        (f"thread=page&below={'a' * 26}&order=newest", 400, "order"),
        ("thread=page&fragment=1", 400, "fragment"),
        ("thread=page&%3Cscript%3E=1", 400, "script"),
    ],
)
@pytest.mark.parametrize("form", ["", "/fragment"])
def test_a_bad_query_is_a_page_that_names_it(client, grown, query, status, named, form):
    response = client.get(f"/embed/demo{form}?{query}")
    assert response.status_code == status
    assert response.content_type == "text/html; charset=utf-8"
    page = htmlpages.Document(response.text)
    assert named in page.text
    assert "script" not in page.tags
    assert response.headers["Cache-Control"] == "no-store"
    assert page.links("stylesheet") == [("../../" if form else "../") + "widget/embed.css"]


@pytest.mark.parametrize("site_id", ["nobody", "UPPER", "a.b", "%3Cb%3E", "x" * 5_000])
def test_an_unknown_site_is_a_page_that_says_so(client, site_id):
    response = client.get(f"/embed/{site_id}?thread=page")
    assert (response.status_code, response.mimetype) == (404, "text/html")
    assert "no such site" in response.text
    assert "frame-ancestors 'none'" in response.headers["Content-Security-Policy"]


def test_a_comment_of_another_thread_is_not_there(client, grown):
    for name in ("around", "below"):
        response = client.get(f"/embed/demo?thread=other&{name}={grown['1'].id}")
        assert response.status_code == 404


def test_a_cursor_of_another_order_is_refused(client, grown):
    cursor = get(client, limit=2).next["cursor"]
    response = client.get(f"/embed/demo?thread=page&order=recent&cursor={cursor}")
    assert (response.status_code, "cursor" in response.text) == (400, True)


def test_a_store_that_does_not_answer_is_a_page_too(client, engine, short_deadline):
    engine.close()
    response = client.get("/embed/demo?thread=page")
    assert (response.status_code, response.mimetype) == (503, "text/html")
    assert int(response.headers["Retry-After"]) > 0


# --- Headers --------------------


def test_only_the_sites_own_pages_may_frame_it(client, open_store, site):
    with open_store.context():
        sites.change("demo", origins=["https://a.example", "http://b.example:81"])
    policy = client.get("/embed/demo?thread=page").headers["Content-Security-Policy"]
    rules = policy.split("; ")
    assert "frame-ancestors https://a.example http://b.example:81" in rules
    assert "default-src 'none'" in rules
    assert "base-uri 'none'" in rules
    assert "script-src" not in policy
    assert "unsafe" not in policy


def test_a_refusal_may_be_framed_like_the_page(client, site):
    policy = client.get("/embed/demo?thread=").headers["Content-Security-Policy"]
    assert policy.endswith("frame-ancestors http://localhost:8080")


def test_a_stored_origin_cannot_add_a_rule(client, open_store, site):
    with open_store.context():
        sites.change("demo", origins=["https://a;script-src", "https://*"])
    policy = client.get("/embed/demo?thread=page").headers["Content-Security-Policy"]
    assert policy.endswith("frame-ancestors 'none'")


@pytest.mark.parametrize("form", ["", "/fragment"])
def test_an_unchanged_page_is_not_sent_again(client, open_store, site, grown, form):
    path = f"/embed/demo{form}?thread=page"
    first = client.get(path)
    assert first.headers["Cache-Control"] == "no-cache"
    tag = {"If-None-Match": first.headers["ETag"]}
    again = client.get(path, headers=tag)
    assert (again.status_code, again.data) == (304, b"")
    head = client.head(path)
    assert (head.status_code, head.data) == (200, b"")
    assert head.headers["ETag"] == first.headers["ETag"]
    assert head.headers["Content-Length"] == str(len(first.data))
    with open_store.context():
        trees.post(site, "new")
    assert client.get(path, headers=tag).status_code == 200


# --- Cost --------------------


def test_a_page_is_rendered_once_until_it_changes(client, open_store, site, grown, monkeypatch):
    made = []
    render = flask.render_template
    monkeypatch.setattr(
        flask, "render_template", lambda name, **more: made.append(name) or render(name, **more)
    )
    path = "/embed/demo?thread=page"
    first = client.get(path)
    assert client.get(path).data == first.data
    tag = {"If-None-Match": first.headers["ETag"]}
    assert client.get(path, headers=tag).status_code == 304
    assert len(made) == 1
    assert (
        client.get(f"{path}&limit=2").headers["Link"]
        == client.get(f"{path}&limit=2").headers["Link"]
    )
    assert len(made) == 2
    with open_store.context():
        trees.post(site, "new")
    assert "new" in client.get(path, headers=tag).text
    assert len(made) == 3


def test_what_a_page_says_besides_comments_is_in_its_tag(client, open_store, site):
    with open_store.context():
        trees.post(site, "hello", url="http://localhost:8080/a")
        trees.post(site, "again")
        folding.fold(trees.SETTINGS.scheme, trees.name_of(site))
    paths = ("/embed/demo?thread=page", "/embed/demo/fragment?thread=page")
    tags = [client.get(path).headers["ETag"] for path in paths]
    assert tags[0] != tags[1]
    elsewhere = client.get(paths[1], headers={"Host": "other.example"})
    assert "//other.example/" in elsewhere.text
    assert "other.example" not in client.get(paths[1]).text
    with open_store.context():
        sites.change("demo", origins=["https://new.example"])
    response = client.get(paths[0], headers={"If-None-Match": tags[0]})
    assert response.status_code == 200
    assert "localhost:8080" not in response.text


def test_a_site_that_lets_a_cache_answer_lets_it_answer_with_pages(client, open_store, grown):
    with open_store.context():
        sites.change("demo", cdn_seconds=5)
    for form in ("", "/fragment"):
        kept = client.get(f"/embed/demo{form}?thread=page").headers["Cache-Control"]
        assert "s-maxage=5" in kept


def test_a_page_is_compressed_for_who_takes_it(client, grown):
    response = client.get("/embed/demo?thread=page", headers={"Accept-Encoding": "gzip"})
    assert response.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(response.data) == client.get("/embed/demo?thread=page").data


PATHS = ("/api/v1/sites/demo/comments", "/embed/demo", "/embed/demo/fragment")


@pytest.mark.parametrize("query", ["", "&order=recent", "&order=best", "&order=newest"])
def test_a_page_costs_what_the_json_page_costs(
    client, engine: inprocess.Engine, open_store, site, grown, query
):
    def cost(path: str) -> tuple[int, int, int]:
        with testing.meter(engine) as met:
            assert client.get(f"{path}?thread=page{query}").status_code == 200
        return met.reads, met.writes, met.small

    cost(PATHS[0])  # the site
    for number in range(3):
        with open_store.context():
            for each in range(number):
                trees.post(site, f"new {number} {each}")
        cold = []
        for path in PATHS:
            _forget(open_store)
            cold.append(cost(path))
        assert cold[1:] == [cold[0]] * 2
    warm = [cost(path) for path in PATHS]
    assert warm[1:] == [warm[0]] * 2


def test_a_page_below_a_comment_costs_what_its_replies_cost(
    client, engine: inprocess.Engine, open_store, grown
):
    client.get("/embed/demo?thread=page")  # the site
    costs = []
    for path in (
        f"/api/v1/comments/{grown['1'].id}/replies?",
        f"/embed/demo?thread=page&below={grown['1'].id}",
    ):
        _forget(open_store)
        with testing.meter(engine) as cost:
            assert client.get(path).status_code == 200
        costs.append(cost.reads)
    assert costs == [2, 2]  # the comment and the directory, whose tail holds all


def test_a_folded_thread_says_its_title_and_another_one_when_that_is_folded(
    client, open_store, site
):
    def shown() -> str:
        return get(client).linked_data["headline"]

    with open_store.context():
        trees.post(site, "hello", title="first")
        name = trees.name_of(site)
        assert shown() == "first"
        folding.fold(trees.SETTINGS.scheme, name)
        assert shown() == "first"
        tag = client.get("/embed/demo?thread=page").headers["ETag"]

        def rename() -> None:
            row = datastore.get(models.thread_key(name))
            row.title = "second"
            datastore.apply(datastore.Writes("an operator", put=(row,)))

        datastore.transaction(rename)
        folding.fold(trees.SETTINGS.scheme, name)
        _forget(open_store)
    response = client.get("/embed/demo?thread=page", headers={"If-None-Match": tag})
    assert response.status_code == 200
    assert shown() == "second"


def _forget(store: datastore.Store) -> None:
    """Be a process that has just started, but for its copy of the site."""
    for name in (materialized.HOLDINGS, "answers", "threads"):
        store._kept.pop(name, None)
