"""Test the texts and messages that chats get."""

import json
from collections.abc import Iterator

import pytest

from comments import config
from comments.domain import records
from comments.events import dispatcher, message_sender, webhook_endpoints, webhooks
from comments.events.webhooks import MessageForm as Form
from comments.events.webhooks import Type
from comments.moderation import decisions
from comments.moderation.policy import policy_changes, rules
from comments.notifications import chat_texts
from comments.posting import own_comment
from comments.store import connection
from comments.upkeep import wiring
from tests.support import loopback_servers
from tests.support.histories import counter_oracle
from tests.support.outside import webhook_site
from tests.support.threads import sample_threads

TOKEN = "123456:" + "c4n4ry" * 6
ADA = records.Actor("cli", "Ada")
SETTINGS = config.Settings(secret="s", public_url="https://comments.example")


@pytest.fixture
def told(
    open_store: connection.Store, site: records.Site, monkeypatch: pytest.MonkeyPatch
) -> Iterator[loopback_servers.Receiver]:
    """A receiver in place of every chat service, inside the store's context."""
    with loopback_servers.receiver() as made, open_store.context():
        monkeypatch.setattr(webhook_endpoints, "TELEGRAM", made.url.removesuffix("/in"))
        message_sender.OUTBOUND.put(open_store, loopback_servers.client(made.port))
        yield made


def _add(form: Form, url: str, types: tuple[Type, ...] = tuple(Type)) -> str:
    now = sample_threads.START
    if form is Form.TELEGRAM:
        made = webhook_endpoints.new_telegram(TOKEN, "-1001234", types, now=now)
    else:
        made = webhook_endpoints.new_chat(form, url, types, now=now)
    webhook_endpoints.add("demo", made, message_sender.OUTBOUND.get())
    return made.id


def _deliver(at: webhook_site.Time) -> None:
    dispatcher.deliver(counter_oracle.events(), now=at(), handlers=wiring.HANDLERS)
    message_sender.serve(at, reach=wiring.channels(SETTINGS))


def _hold_everything() -> None:
    rule = rules.Rule(id="strict", action=rules.Action.HOLD, words=("text",))
    policy_changes.put_rule("demo", rule, ADA, now=sample_threads.START)


@pytest.mark.parametrize(
    ("form", "rest"),
    [
        (Form.SLACK, {}),
        (Form.DISCORD, {"allowed_mentions": {"parse": []}, "flags": 4}),
        (Form.TELEGRAM, {"chat_id": "-1001234", "link_preview_options": {"is_disabled": True}}),
    ],
)
def test_a_chat_gets_a_text_about_a_new_comment(
    told: loopback_servers.Receiver,
    site: records.Site,
    at: webhook_site.Time,
    form: Form,
    rest: dict[str, object],
) -> None:
    _add(form, told.url)
    row = sample_threads.post(site, "Nice", author=records.Author("Ann", id="g:ann"))
    _deliver(at)
    (heard,) = told.heard
    body = json.loads(heard.body)
    text = body.pop("content" if form is Form.DISCORD else "text")
    assert text == (
        f"Ann commented on demo:\nNice\nhttps://comments.example/admin/sites/demo/comments/{row.id}"
    )
    assert body == rest
    assert heard.path == (f"/bot{TOKEN}/sendMessage" if form is Form.TELEGRAM else "/in")
    assert "webhook-signature" not in heard.headers


def test_a_held_comment_is_announced_with_the_reason_and_a_link_to_the_queue(
    told: loopback_servers.Receiver, site: records.Site, at: webhook_site.Time
) -> None:
    _add(Form.TELEGRAM, "", webhooks.CHAT_TYPES)
    _hold_everything()
    row = sample_threads.post(site, "some text", author=records.Author("Ann", id="g:ann"))
    assert row.status is records.Status.PENDING
    _deliver(at)
    decisions.decide("demo", row.id, records.Verb.APPROVE, ADA, now=at())
    _deliver(at)
    held, posted = (json.loads(heard.body)["text"] for heard in told.heard)
    assert held.startswith("A comment by Ann on demo awaits approval:\nsome text\nReason: Rule ")
    assert held.endswith("\nhttps://comments.example/admin/sites/demo/queue")
    assert posted.startswith("Ann commented on demo:\nsome text\n")


def test_a_comment_that_was_decided_meanwhile_is_not_announced_as_held(
    told: loopback_servers.Receiver, site: records.Site, at: webhook_site.Time
) -> None:
    _add(Form.SLACK, told.url, webhooks.CHAT_TYPES)
    _hold_everything()
    row = sample_threads.post(site, "some text")
    dispatcher.deliver(counter_oracle.events(), now=at(), handlers=wiring.HANDLERS)
    decisions.decide("demo", row.id, records.Verb.SPAM, ADA, now=at())
    _deliver(at)
    assert told.heard == []
    assert webhook_site.left() == []


def test_the_text_about_a_removed_comment_has_no_content(
    told: loopback_servers.Receiver, site: records.Site, at: webhook_site.Time
) -> None:
    _add(Form.SLACK, told.url)
    row = sample_threads.post(site, "a canary", author=records.Author("Ann", id="g:ann"))
    own_comment.retract(row.id, author_id="g:ann", revision=None, now=sample_threads.START)
    _deliver(at)
    assert [json.loads(heard.body)["text"] for heard in told.heard] == [
        "A comment on demo was removed."
    ]


@pytest.mark.parametrize(
    ("form", "name", "expected"),
    [
        (Form.SLACK, "<!channel> & co", "&lt;!channel&gt; &amp; co"),
        (Form.DISCORD, "**Ann** <#1> `x`", r"\*\*Ann\*\* \<\#1\> \`x\`"),
        (Form.TELEGRAM, "*Ann* <b>", "*Ann* <b>"),
        (Form.SLACK, "@everyone https://evil.example", "[link] [link]"),
    ],
)
def test_names_titles_and_texts_are_escaped_and_contain_no_links(
    site: records.Site, store: connection.Store, form: Form, name: str, expected: str
) -> None:
    row = sample_threads.post(site, name, author=records.Author(name, id="g:ann"))
    case = decisions.case("demo", row.id)
    lines = chat_texts.text("", form, Type.POSTED, case, None).split("\n")
    shown = "[link\\] [link\\]" if form is Form.DISCORD and "link" in expected else expected
    assert lines == [f"{shown} commented on demo:", shown]


def test_a_long_text_is_cut(site: records.Site, store: connection.Store) -> None:
    row = sample_threads.post(site, "*" * 5_000, author=records.Author("*" * 40, id="g:ann"))
    case = decisions.case("demo", row.id)
    text = chat_texts.text("", Form.DISCORD, Type.HELD, case, None)
    assert text.split("\n")[1] == r"\*" * chat_texts.MAX_TEXT + "…"
    assert len(text) < 2_000  # Discord's limit


def test_a_test_message_reaches_each_chat(told: loopback_servers.Receiver) -> None:
    for form in (Form.SLACK, Form.TELEGRAM):
        name = _add(form, told.url)
        outcome = webhook_endpoints.send_test(
            message_sender.OUTBOUND.get(), "demo", name, now=sample_threads.START
        )
        assert outcome.reason == "answered 200"
        text = json.loads(told.heard[-1].body)["text"]
        assert text == "Test message from Flatthread about the comments of demo."


def test_a_failing_chat_logs_and_stores_no_token(
    told: loopback_servers.Receiver,
    site: records.Site,
    at: webhook_site.Time,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(0)
    name = _add(Form.TELEGRAM, "")
    told.status, told.answer = 401, TOKEN.encode()
    sample_threads.post(site, "Nice")
    _deliver(at)
    hook = webhook_endpoints.get("demo", name)
    assert hook.reason == "answered 401"
    assert (hook.public_address, hook.secrets) == ("-1001234", ())
    assert "c4n4ry" not in caplog.text
    assert caplog.text
