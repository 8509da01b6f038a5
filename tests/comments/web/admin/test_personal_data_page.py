"""Owners of the service export and erase a person's data, and erase a mail address."""

import json

import flask
import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from comments.accounts import accounts
from comments.domain import records
from comments.domain.crypto import encryption
from comments.notifications import double_opt_in, subscriptions
from comments.store import connection
from comments.transfer import personal_data
from comments.web.admin.pages import personal_data_page
from tests.support.html import html_validator
from tests.support.people import account_holders
from tests.support.people.account_holders import OWNER, PASSWORD, SECRET
from tests.support.people.account_holders import here as now
from tests.support.people.admin_forms import browser, send, sign_in, token_of
from tests.support.threads import sample_threads

pytestmark = pytest.mark.usefixtures("quick_passwords", "site")
EVE = records.Author("Eve", email="eve@example.org", id="g:eve")


@pytest.fixture
def owner(app: flask.Flask, store: connection.Store) -> FlaskClient:
    account_holders.account("ann", OWNER)
    client = browser(app)
    sign_in(client)
    return client


@pytest.fixture
def written(store: connection.Store, site: records.Site) -> list[records.Comment]:
    return [sample_threads.post(site, f"text {number}", author=EVE) for number in range(3)]


def _post(client: FlaskClient, path: str, *, current: str = PASSWORD, **form: str) -> TestResponse:
    sent = {"form": token_of(client), "current": current} | form
    return send(client, f"/admin/people/data/{path}", **sent)


def test_a_person_is_found_by_a_comment_and_their_data_shown_in_numbers(
    owner: FlaskClient, written: list[records.Comment]
) -> None:
    page = owner.get(f"/admin/people/data?who={written[0].id}")
    assert page.status_code == 200
    assert "<dt>Comments</dt><dd>3</dd>" in page.text
    assert "<bdi>Eve</bdi>" in page.text
    assert "eve@example.org" not in page.text
    missing = owner.get("/admin/people/data?who=nobody")
    assert missing.status_code == 404
    assert html_validator.complaints([page.text, missing.text]) == [[], []]


def test_an_export_is_a_file_with_what_the_command_prints(
    owner: FlaskClient, written: list[records.Comment]
) -> None:
    refused = _post(owner, "export", author="g:eve", current="wrong")
    assert refused.status_code == 403
    assert "text 0" not in refused.text
    response = _post(owner, "export", author="g:eve")
    assert response.headers["Content-Disposition"] == "attachment; filename=person.json"
    assert [each["body"] for each in json.loads(response.data)["comments"]] == [
        writing.body for writing in personal_data.export("g:eve", secret=SECRET, now=now()).comments
    ]


def test_an_erasure_needs_the_password_and_erases_the_texts(
    owner: FlaskClient, written: list[records.Comment]
) -> None:
    assert _post(owner, "erase", author="g:eve", current="wrong").status_code == 403
    assert len(personal_data.export("g:eve", secret=SECRET, now=now()).comments) == 3
    done = _post(owner, "erase", author="g:eve")
    assert "Erased the person&#39;s data: 3 comments and votes." in done.text
    assert personal_data.export("g:eve", secret=SECRET, now=now()).comments == []


def test_an_erasure_that_takes_too_long_is_continued_by_the_same_button(
    owner: FlaskClient, written: list[records.Comment], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(personal_data_page, "_SECONDS", 0.0)
    monkeypatch.setattr(personal_data, "AT_ONCE", 2)
    first = _post(owner, "erase", author="g:eve")
    assert "Erased 2 comments and votes so far." in first.text
    assert "Erase permanently" in first.text
    assert (
        "Erased the person&#39;s data: 1 comment or vote."
        in _post(owner, "erase", author="g:eve").text
    )


def test_an_account_with_a_role_is_not_erased(owner: FlaskClient) -> None:
    ann = accounts.by_text("ann", SECRET)
    refused = _post(owner, "erase", author=ann.author)
    assert refused.status_code == 409
    assert accounts.get(ann.id) is not None


def test_an_address_is_erased_with_its_subscriptions(
    owner: FlaskClient, site: records.Site
) -> None:
    subscriber = double_opt_in.subscriber_of("eve@example.org", SECRET)
    address = encryption.seal("eve@example.org", "address", SECRET, now=now())
    target = subscriptions.SubscriptionTarget("demo", "", "g:eve", replies=True)
    subscriptions.subscribe(subscriber, address, target, now=now())
    assert _post(owner, "forget", email="eve").status_code == 400
    assert _post(owner, "forget", email="eve@example.org", current="wrong").status_code == 403
    assert subscriptions.of_subscriber(subscriber) != []
    done = _post(owner, "forget", email=" eve@example.org ")
    assert "Ended 1 subscription and erased the address." in done.text
    assert subscriptions.of_subscriber(subscriber) == []
