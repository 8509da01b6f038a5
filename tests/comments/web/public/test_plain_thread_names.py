"""A thread gets its title and address from a comment that is posted without JavaScript."""

from typing import Any
from urllib.parse import urlencode

import pytest
from flask.testing import FlaskClient

from comments.domain import records
from comments.store import connection
from comments.threads import thread_info
from tests.support.html import html_reader
from tests.support.html.plain_forms import PAGE, TEXT, form, resend, rows, send
from tests.support.people import api_requests

ORIGIN = "https://blog.example"


def thread(open_store: connection.Store, name: str) -> records.Thread:
    with open_store.context():
        found = thread_info.fresh(records.ThreadName("demo", name))
    assert found is not None
    return found


def test_the_first_comment_names_the_thread(
    client: FlaskClient, plain: Any, open_store: connection.Store
) -> None:
    title, url = 'A "<b>title</b>" & more', f"{ORIGIN}/post?visitor=1"
    query = urlencode({"title": title, "url": url})
    assert send(client, f"{PAGE}&{query}").status_code == 303
    assert send(client, f"{PAGE}&title=Another", body="second").status_code == 303
    named = thread(open_store, "page")
    assert (named.title, named.url) == (title, url)


def test_a_thread_that_is_named_by_its_page_gets_its_address(
    client: FlaskClient, plain: Any, open_store: connection.Store
) -> None:
    page = f"{ORIGIN}/post"
    assert send(client, f"/embed/demo?page={page}?visitor=1%23part&title=Mine").status_code == 303
    (row,) = rows(open_store)
    named = thread(open_store, row.thread)
    assert (named.title, named.url) == ("Mine", page)


def test_pages_with_different_titles_have_different_forms(client: FlaskClient, plain: Any) -> None:
    for title in ("One", "Two", ""):
        found = form(client.get(f"{PAGE}&title={title}").text)
        assert found.get("title", "") == title


def test_a_fragment_leads_to_a_form_that_names_the_thread(client: FlaskClient, plain: Any) -> None:
    part = html_reader.Elements(client.get("/embed/demo/fragment?thread=page&title=A+%26+B").text)
    targets = [values.get("href") or "" for tag, values in part.elements if tag == "a"]
    assert "//localhost/embed/demo?thread=page&title=A+%26+B" in targets


@pytest.mark.parametrize(
    ("field", "value"), [("title", "x" * 501), ("url", "javascript:x"), ("url", "//x")]
)
def test_titles_and_addresses_are_checked_as_in_the_api(
    client: FlaskClient, plain: Any, open_store: connection.Store, field: str, value: str
) -> None:
    answer = client.get(f"{PAGE}&{urlencode({field: value})}")
    assert answer.status_code == 400
    assert field in html_reader.Document(answer.text).text
    found = form(client.get(PAGE).text)
    refused = resend(client, **{**found, **TEXT, field: value})
    assert (refused.status_code, rows(open_store)) == (400, [])
    assert form(refused.text)[field] == value
    api_requests.refused(client.post(api_requests.THREAD, json={**TEXT, field: value}), 400, field)
