"""Test the console's page for webhooks."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from comments.domain import records
from comments.events import audit_log, dead_letters, message_sender, webhook_endpoints, webhooks
from comments.sites import site_settings
from comments.store import connection
from tests.support import loopback_servers
from tests.support.html import html_validator
from tests.support.outside import webhook_site
from tests.support.people.console_browser import Desk
from tests.support.threads import sample_threads

SECRET = re.compile("whsec_[A-Za-z0-9+/=]+")


@pytest.fixture
def told(open_store: connection.Store, site: records.Site) -> Iterator[loopback_servers.Receiver]:
    """A loopback receiver that the console may send requests to."""
    with loopback_servers.receiver() as made:
        message_sender.OUTBOUND.put(open_store, loopback_servers.client(made.port))
        yield made


def _add(owner: Desk, url: str) -> str:
    """Add a webhook for new comments; return its id."""
    owner.settle("/connections", url=url, posted="on", status=200)
    return webhook_endpoints.every("demo")[-1].id


def _change(owner: Desk, act: str, name: str, status: int = 200, **form: str) -> str:
    return owner.settle("/connections/change", act=act, id=name, status=status, **form)


def test_a_webhook_is_added_and_its_secret_shown_once(
    owner: Desk, told: loopback_servers.Receiver
) -> None:
    assert "No webhooks yet." in owner.page("/connections")
    added = owner.settle("/connections", url=told.url, posted="on", retracted="on", status=200)
    (hook,) = webhook_endpoints.every("demo")
    assert hook.types == (webhooks.Type.POSTED, webhooks.Type.RETRACTED)
    assert SECRET.findall(added) == [hook.secrets[0]]
    page = owner.page("/connections")
    assert told.url in page
    assert "New comments, Removed comments" in page
    assert "whsec_" not in page
    (entry,) = audit_log.log("demo")
    assert (entry.verb, entry.subject, entry.after) == ("set-hook", f"hook:{hook.id}", "added")
    assert f"Webhook {hook.id}" in owner.page("/log")
    assert html_validator.complaints([page]) == [[]]


def test_a_webhook_without_types_or_with_an_unsafe_address_is_refused(
    owner: Desk, told: loopback_servers.Receiver
) -> None:
    owner.settle("/connections", url=told.url, status=400)
    for url in ("http://hooks.example/in", "https://127.0.0.1/in", "https://localhost/in"):
        owner.settle("/connections", url=url, posted="on", status=400)
    assert webhook_endpoints.every("demo") == ()


def test_a_test_message_is_signed_and_its_result_shown(
    owner: Desk, told: loopback_servers.Receiver
) -> None:
    name = _add(owner, told.url)
    assert "The test message was delivered (answered 200)." in _change(owner, "test", name)
    assert json.loads(told.heard[0].body)["type"] == "test"
    assert told.heard[0].headers["webhook-signature"].startswith("v1,")
    told.status = 500
    page = _change(owner, "test", name)
    assert "The test message was not delivered: answered 500." in page
    rows = re.findall("<td>Test</td><td[^>]*>([^<]+)</td>", page)
    assert rows == ["Failed: answered 500", "Delivered (answered 200)"]
    assert webhook_endpoints.get("demo", name).failures == 0
    assert html_validator.complaints([page]) == [[]]


def test_a_secret_is_changed_and_a_leaked_one_replaced(
    owner: Desk, told: loopback_servers.Receiver
) -> None:
    name = _add(owner, told.url)
    (old,) = webhook_endpoints.get("demo", name).secrets
    (new,) = SECRET.findall(_change(owner, "rotate", name))
    assert webhook_endpoints.get("demo", name).secrets == (new, old)
    (only,) = SECRET.findall(_change(owner, "replace", name))
    assert webhook_endpoints.get("demo", name).secrets == (only,)


def test_a_failed_message_is_resent_once_the_webhook_is_enabled(
    owner: Desk, site: records.Site, told: loopback_servers.Receiver, at: webhook_site.Time
) -> None:
    name = _add(owner, told.url)
    told.status = 410
    sent = webhook_site.post(site)
    message_sender.serve(at)
    (letter,) = dead_letters.dead().letters
    page = owner.page("/connections")
    assert "Disabled: answered 410." in page
    assert "Failed: answered 410" in page
    assert html_validator.complaints([page]) == [[]]
    told.status = 200
    _change(owner, "enable", name)
    _change(owner, "resend", name, letter=letter.id)
    at.now = datetime.now(UTC)
    message_sender.serve(at)
    assert told.ids == [sent, sent]
    page = owner.page("/connections")
    assert "Enabled." in page
    assert "Delivered (answered 200)" in page
    assert letter.id not in page


def test_a_failed_message_is_discarded_and_one_of_another_site_is_not(
    owner: Desk, site: records.Site, told: loopback_servers.Receiver, at: webhook_site.Time
) -> None:
    name = _add(owner, told.url)
    told.status = 410
    webhook_site.post(site)
    message_sender.serve(at)
    (letter,) = dead_letters.dead().letters
    site_settings.add("blog", [], scheme=sample_threads.SETTINGS.scheme, now=at())
    other = webhook_endpoints.new(f"{told.url}2", webhooks.PUBLIC_TYPES, now=at())
    webhook_endpoints.add("blog", other, message_sender.OUTBOUND.get())
    for act in ("resend", "discard"):
        form = {"act": act, "id": other.id, "letter": letter.id}
        owner.settle("/connections/change", desk="/admin/sites/blog", status=404, **form)
        _change(owner, act, name, status=400)
    assert dead_letters.show(letter.id).is_dead
    _change(owner, "discard", name, letter=letter.id)
    assert dead_letters.dead().letters == ()


def test_all_failed_messages_of_a_webhook_are_resent_or_discarded(
    owner: Desk, site: records.Site, told: loopback_servers.Receiver, at: webhook_site.Time
) -> None:
    name, other = _add(owner, told.url), _add(owner, f"{told.url}2")
    told.status = 410
    for _ in range(2):
        webhook_site.post(site)
        message_sender.serve(at)
        _change(owner, "enable", name)
        _change(owner, "enable", other)
    assert len(dead_letters.dead().letters) == 4
    page = owner.page("/connections")
    assert "Discard all" in page
    assert html_validator.complaints([page]) == [[]]
    assert "2 messages will be sent again" in _change(owner, "resend-all", name)
    assert {each.what.endswith(other) for each in dead_letters.dead().letters} == {True}
    assert "2 messages discarded." in _change(owner, "discard-all", other)
    assert dead_letters.dead().letters == ()
    assert "0 messages discarded." in _change(owner, "discard-all", name)
    told.status = 200
    at.now = datetime.now(UTC)
    message_sender.serve(at)
    assert len(told.ids) == 2 * 2 + 2


def test_a_removed_webhook_is_gone(owner: Desk, told: loopback_servers.Receiver) -> None:
    name = _add(owner, told.url)
    assert "Webhook removed." in _change(owner, "remove", name)
    assert webhook_endpoints.every("demo") == ()
    for act in ("remove", "test", "enable", "rotate"):
        _change(owner, act, name, status=404)


def test_moderators_neither_see_nor_change_webhooks(
    owner: Desk, desk: Desk, told: loopback_servers.Receiver
) -> None:
    name = _add(owner, told.url)
    desk.settle("/connections", url=f"{told.url}2", posted="on", status=403)
    desk.settle("/connections/change", act="remove", id=name, status=403)
    assert len(webhook_endpoints.every("demo")) == 1
    assert "Connections" not in desk.page("/queue")
    assert told.url not in desk.page("/log")


TOKEN = "123456:" + "c4n4ry" * 6


def test_chats_are_added_and_their_secrets_never_shown(
    owner: Desk, told: loopback_servers.Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook_endpoints, "TELEGRAM", told.url.removesuffix("/in"))
    hidden = f"{told.url}/c4n4ry"
    boxes = {"posted": "on", "held": "on"}
    pages = [
        owner.settle("/connections", kind="slack", url=hidden, status=200, **boxes),
        owner.settle(
            "/connections", kind="telegram", token=TOKEN, chat="@news", status=200, **boxes
        ),
        owner.settle("/connections", kind="slack", url=hidden, status=409, **boxes),
    ]
    slack, telegram = webhook_endpoints.every("demo")
    assert (slack.types, telegram.types) == (webhooks.CHAT_TYPES, webhooks.CHAT_TYPES)
    pages += [_change(owner, "test", hook.id) for hook in (slack, telegram)]
    assert [heard.path for heard in told.heard] == ["/in/c4n4ry", f"/bot{TOKEN}/sendMessage"]
    pages += [_change(owner, "rotate", slack.id, status=409), owner.page("/connections")]
    pages.append(owner.page("/log"))
    assert not any("c4n4ry" in page or "whsec_" in page for page in pages)
    assert "Telegram: <bdi>@news</bdi>" in pages[-2]
    assert html_validator.complaints([pages[-2]]) == [[]]


@pytest.mark.parametrize(
    "form",
    [
        {"kind": "telegram", "token": TOKEN},
        {"kind": "telegram", "token": "12:short", "chat": "1"},
        {"kind": "telegram", "token": f"{TOKEN}/../x", "chat": "1"},
        {"kind": "telegram", "token": TOKEN, "chat": "a b"},
        {"kind": "discord"},
        {"kind": "discord", "url": "https://10.0.0.1/x"},
        {"kind": "irc", "url": "https://hooks.example/in"},
    ],
)
def test_an_incomplete_or_unsafe_chat_is_refused(
    owner: Desk, told: loopback_servers.Receiver, form: dict[str, str]
) -> None:
    owner.settle("/connections", status=400, posted="on", **form)
    assert webhook_endpoints.every("demo") == ()
