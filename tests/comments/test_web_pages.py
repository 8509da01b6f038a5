"""The service's own pages: health, demo, and the widget's files."""

import html.parser
import json
import re
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from comments import datastore
from comments.web import pages

FILES = sorted(path.name for path in pages._STATIC.iterdir())


def test_a_process_that_reads_its_store_is_healthy(client: FlaskClient) -> None:
    response = client.get("/healthz")
    assert (response.status_code, response.json) == (200, {"status": "ok"})


def test_health_needs_no_site(app_without_site: FlaskClient) -> None:
    assert app_without_site.get("/healthz").status_code == 200


@pytest.fixture
def app_without_site(app) -> FlaskClient:
    return app.test_client()


def test_a_process_without_its_store_is_not_healthy(
    client: FlaskClient, short_deadline: datastore.Store, engine
) -> None:
    engine.close()
    response = client.get("/healthz")
    assert response.status_code == 503
    assert json.loads(response.text)["code"] == "overloaded"
    assert int(response.headers["Retry-After"]) > 0


class Page(html.parser.HTMLParser):
    """What a page loads, and what in it would need an inline exception."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.inline: list[str] = []
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        loaded = values.get("src") or (values.get("href") if tag == "link" else None)
        if loaded:
            self.loads.append(loaded)
        if tag == "style" or (tag == "script" and not loaded):
            self.inline.append(tag)
        self.inline += [name for name in values if name == "style" or name.startswith("on")]


def test_the_demo_page_loads_only_what_is_there(client: FlaskClient) -> None:
    response = client.get("/")
    assert response.content_type == "text/html; charset=utf-8"
    page = Page(response.text)
    assert page.inline == []
    assert any(path.endswith(".js") for path in page.loads)
    for path in page.loads:
        assert client.get("/" + path.lstrip("/")).status_code == 200, path


def test_the_demo_page_is_the_same_for_everyone(client: FlaskClient) -> None:
    other = client.get("/", headers={"User-Agent": "x", "Cookie": "a=b", "Accept-Language": "de"})
    assert other.data == client.get("/").data


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_the_widget_is_served(client: FlaskClient, name: str) -> None:
    response = client.get(f"/widget/{name}")
    assert response.status_code == 200
    assert response.data == (pages._STATIC / name).read_bytes()
    assert response.content_type == pages._TYPES[Path(name).suffix]
    assert response.headers["Access-Control-Allow-Origin"] == "*"
    again = client.get(f"/widget/{name}", headers={"If-None-Match": response.headers["ETag"]})
    assert (again.status_code, again.data) == (304, b"")


def test_every_module_of_the_widget_imports_what_is_served(client: FlaskClient) -> None:
    for name in FILES:
        source = (pages._STATIC / name).read_text(encoding="utf-8")
        for imported in re.findall(r'from "\./([^"]+)"', source):
            assert client.get(f"/widget/{imported}").status_code == 200, imported


@pytest.mark.parametrize(
    "name",
    [
        "../api.py",
        "..%2fapi.py",
        "..%2f..%2fapp.py",
        "%2e%2e/api.py",
        "..%5capi.py",
        "api.py",
        "nothing.js",
        "flatthread.js%00",
        "flatthread.js%0a",
        "flatthread.js/",
        ".flatthread.js",
        "%2fetc%2fpasswd",
        "",
        ".",
        "a" * 5_000 + ".js",
    ],
)
def test_nothing_else_is_a_file_of_the_widget(client: FlaskClient, name: str) -> None:
    response = client.get(f"/widget/{name}")
    assert response.status_code == 404
    assert response.content_type == "application/problem+json"
