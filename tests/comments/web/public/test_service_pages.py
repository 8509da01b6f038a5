"""Test the service's own pages (health and demo) and the widget's files."""

import base64
import dataclasses
import hashlib
import html.parser
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import flask.testing
import msgspec
import pytest
from flask.testing import FlaskClient

from comments import app as apps
from comments.store import connection
from comments.upkeep.backups import nightly_backup
from comments.web.service import service_pages
from datastore_emulator import inprocess
from tests.support.threads import sample_threads

FILES = sorted(service_pages._FILES.iterdir())


def test_a_process_that_can_read_its_store_is_healthy(client: FlaskClient) -> None:
    response = client.get("/healthz")
    assert (response.status_code, response.json) == (200, {"status": "ok"})


def test_health_needs_no_site(app_without_site: FlaskClient) -> None:
    assert app_without_site.get("/healthz").status_code == 200


def test_health_says_when_the_last_backup_was_made(
    open_store: connection.Store, tmp_path: Path
) -> None:
    service = dataclasses.replace(
        sample_threads.SETTINGS, data_dir=tmp_path, backup_dir=tmp_path / "unmounted"
    )
    client = apps.create_app(service, open_store).test_client()
    assert client.get("/healthz").json == {
        "status": "ok",
        "backup": {"last": None, "is_overdue": True},
    }
    last = datetime.now(UTC) - timedelta(minutes=1)
    record = nightly_backup.Record(str(service.backup_dir), last, last, "a reason with /a/path")
    (tmp_path / "backup.json").write_bytes(msgspec.json.encode(record))
    answer = client.get("/healthz")
    assert answer.json["backup"] == {"last": last.isoformat(), "is_overdue": False}
    assert "path" not in answer.text
    cloud = dataclasses.replace(service, datastore="cloud")
    assert apps.create_app(cloud, open_store).test_client().get("/healthz").json == {"status": "ok"}


@pytest.fixture
def app_without_site(app: flask.Flask) -> FlaskClient:
    return app.test_client()


def test_a_process_without_its_store_is_not_healthy(
    client: FlaskClient, short_deadline: connection.Store, engine: inprocess.Engine
) -> None:
    engine.close()
    response = client.get("/healthz")
    assert response.status_code == 503
    assert json.loads(response.text)["code"] == "overloaded"
    assert int(response.headers["Retry-After"]) > 0


class Page(html.parser.HTMLParser):
    """A page's inline code and the files that the page loads."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.inline: list[str] = []
        self.tags: list[str] = []
        self.named: set[str | None] = set()
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.tags.append(tag)
        self.named |= {values.get("data-site"), values.get("data-thread")}
        loaded = values.get("src") or (values.get("href") if tag == "link" else None)
        if loaded:
            self.loads.append(loaded)
        if tag == "style" or (tag == "script" and not loaded):
            self.inline.append(tag)
        self.inline += [name for name in values if name == "style" or name.startswith("on")]


def test_the_demo_page_loads_only_existing_files(client: FlaskClient) -> None:
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


def test_the_demo_page_opens_the_requested_thread(client: FlaskClient) -> None:
    page = Page(client.get("/?site=my-blog&thread=a%2Fb+c").text)
    assert {"my-blog", "a/b c"} <= page.named


@pytest.mark.parametrize(
    "value", ['"><img src=x onerror=alert(1)>', "'><script>x</script>", "{{7*7}}"]
)
def test_the_demo_page_treats_its_query_as_text(client: FlaskClient, value: str) -> None:
    plain = Page(client.get("/").text)
    page = Page(client.get("/", query_string={"site": value, "thread": value}).text)
    assert value in page.named
    assert (page.tags, page.inline, page.loads) == (plain.tags, [], plain.loads)


@pytest.mark.parametrize("query", ["thread=%ff", "site=%00", "thread=%ed%a0%80", "%ff=%ff"])
def test_a_query_that_is_not_text_does_not_break_the_demo(client: FlaskClient, query: str) -> None:
    assert client.get(f"/?{query}").status_code == 200


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_file_of_the_widget_is_served(client: FlaskClient, file: Path) -> None:
    response = client.get(f"/widget/{file.name}")
    assert response.status_code == 200
    assert response.data == file.read_bytes()
    assert response.content_type == service_pages._TYPES[file.suffix]
    assert response.headers["Access-Control-Allow-Origin"] == "*"
    again = client.get(f"/widget/{file.name}", headers={"If-None-Match": response.headers["ETag"]})
    assert (again.status_code, again.data) == (304, b"")


def test_every_bundle_imports_served_files(client: FlaskClient) -> None:
    imported = {
        (file.name, name)
        for file in FILES
        for name in re.findall(r'from"\./([^"]+)"', file.read_text(encoding="utf-8"))
    }
    assert imported
    for file, name in imported:
        assert client.get(f"/widget/{name}").status_code == 200, file


def _digests() -> dict[str, str]:
    """Return the SHA-256 digests of all files with a part of the digest in their names."""
    hashed = [file for file in FILES if service_pages._HASHED.fullmatch(file.name)]
    return {
        file.name: base64.b64encode(hashlib.sha256(file.read_bytes()).digest()).decode()
        for file in hashed
    }


def test_every_hashed_file_is_named_by_its_digest() -> None:
    """The entry contains the digests, and a language's strings that of its later texts."""
    entry = (service_pages._FILES / "flatthread.js").read_text(encoding="utf-8")
    strings = {file.name.split("-")[1]: file for file in FILES if file.name.startswith("strings-")}
    digests = _digests()
    assert len(digests) >= 4
    for name, digest in digests.items():
        assert re.sub(r"\W", "_", digest[:12]) in name
        stem, language, *_ = name.split("-")
        text = strings[language].read_text(encoding="utf-8") if stem == "writing" else entry
        assert digest in text, name


@pytest.mark.parametrize("name", sorted(_digests()))
def test_a_hashed_file_is_kept_for_a_year(client: FlaskClient, name: str) -> None:
    response = client.get(f"/widget/{name}")
    assert response.headers["Cache-Control"] == "public, max-age=31536000, immutable"


@pytest.mark.parametrize(
    ("name", "control"),
    [
        ("flatthread.js", "public, max-age=300"),
        ("count.js", "public, max-age=300"),
        ("console.js", "no-cache"),
        ("embed.css", "no-cache"),
        ("widget-000000000000.js", "no-store"),
    ],
)
def test_another_file_is_kept_for_minutes_or_asked_for(
    client: FlaskClient, name: str, control: str
) -> None:
    assert client.get(f"/widget/{name}").headers["Cache-Control"] == control


def test_the_console_names_files_by_their_content_so_that_caches_keep_them(
    client: FlaskClient,
) -> None:
    path = service_pages.asset("console.js")
    assert "immutable" in client.get(f"/{path}").headers["Cache-Control"]
    # A process of another release answers too, but caches must not keep its file.
    assert client.get(f"/{path[:-1]}").headers["Cache-Control"] == "no-cache"
    assert service_pages.asset("passkeys.js") in client.get("/admin/sign-in").text


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
def test_no_other_file_is_served_as_part_of_the_widget(client: FlaskClient, name: str) -> None:
    response = client.get(f"/widget/{name}")
    assert response.status_code == 404
    assert response.content_type == "application/problem+json"
