"""The form under /embed: open its page, fill it in, and send it."""

from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from comments.domain import records
from comments.sites import site_settings
from comments.store import connection
from comments.tree.lists import ordered_query
from tests.support.html import html_reader
from tests.support.threads import sample_threads

PAGE = "/embed/demo?thread=page"
TEXT = {"name": "Ann", "body": "Hello"}


def form(page: str) -> dict[str, str]:
    """Return the values in a page's form, by field; {} if it has none."""
    document = html_reader.Elements(page)
    return {
        values["name"] or "": values.get("value") or ""
        for tag, values in document.elements
        if tag in {"input", "textarea"} and "name" in values
    }


def send(
    client: FlaskClient, page: str = PAGE, *, peer: str = "192.0.2.1", **fields: str
) -> TestResponse:
    """Open a page with the form, fill it in, and press the button."""
    found = form(client.get(page).text)
    assert found, "the page has no form"
    return resend(client, peer=peer, **{**found, **TEXT, **fields})


def resend(client: FlaskClient, *, peer: str = "192.0.2.1", **fields: str) -> TestResponse:
    return client.post(PAGE, data=fields, environ_base={"REMOTE_ADDR": peer})


def rows(store: connection.Store) -> list[records.Comment]:
    with store.context():
        return list(ordered_query.thread(sample_threads.name_of(site_settings.get("demo"))))
