"""Fill threads with hostile texts; read all of a thread's pages as embedded HTML."""

from pathlib import Path
from typing import Any

from flask.testing import FlaskClient

from comments.domain import records
from comments.sites import site_settings
from comments.store import connection
from comments.transfer.checking import checked_import
from comments.transfer.formats import disqus
from comments.transfer.importing import import_writer
from comments.tree.lists import ordered_query
from tests.support.html import html_reader
from tests.support.prepared_stores import NOW
from tests.support.threads import sample_threads

ADA = records.Author("Ada", id="g:ada")
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


def get(client: FlaskClient, fragment: str = "", **query: Any) -> html_reader.Document:
    response = client.get(f"/embed/demo{fragment}", query_string={"thread": "page"} | query)
    assert response.status_code == 200, response.text
    return html_reader.Document(response.text)


def read(
    client: FlaskClient, path: str = "/embed/demo", **query: Any
) -> list[tuple[str, html_reader.Document]]:
    """Follow the links to next pages; return each page's source and its parsed form."""
    found: list[tuple[str, html_reader.Document]] = []
    query = {"thread": "page"} | query
    while query:
        response = client.get(path, query_string=query)
        assert response.status_code == 200, response.text
        found.append((response.text, html_reader.Document(response.text)))
        query = found[-1][1].next
    return found


def walk(client: FlaskClient, path: str = "/embed/demo", **query: Any) -> list[str]:
    """Return the comments on all pages."""
    return [each for _, page in read(client, path, **query) for each in page.ids]


def imported(store: connection.Store, path: Path) -> dict[str, list[records.Comment]]:
    """Import an export into the site "demo"; return each thread's listed comments in order."""
    scheme = sample_threads.SETTINGS.scheme
    with store.context():
        site = site_settings.get("demo")
        with checked_import.plan(
            disqus.read, path, site=site, scheme=scheme, secret=sample_threads.SETTINGS.secret
        ) as plan:
            import_writer.write(plan, scheme=scheme, now=NOW, progress=lambda _: None)
            names = [thread.name for thread in plan.threads]
        return {name.id: ordered_query.thread(name) for name in names}  # type: ignore[misc]
