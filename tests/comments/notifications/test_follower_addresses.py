"""Owners see only addresses whose owners agreed, and each list is in the audit log."""

from datetime import UTC, datetime

import pytest
from flask.testing import FlaskCliRunner

from comments import app as apps
from comments.events import audit_log
from comments.notifications import (
    double_opt_in,
    follower_addresses,
    reader_follows,
    subscriptions,
)
from tests.support.html import page_buttons
from tests.support.outside import mail_subscriber
from tests.support.outside.mail_subscriber import THREAD, Asker

SHOWN, HIDDEN = "shown@example.org", "hidden@example.org"
UNSHARE = "Stop showing my address to the owner of demo"


def follow(asker: Asker, email: str, number: int, **checked: str) -> str:
    """Subscribe an address; return its unsubscribe link."""
    assert asker.ask(email, address=f"203.0.113.{number}").status_code == 202
    asker.deliver()
    pressed = page_buttons.press(asker.client, asker.box.link(), "Confirm", **checked)
    assert pressed.status_code == 200
    secret = asker.settings.secret
    who = double_opt_in.subscriber_of(email, secret)
    ending = double_opt_in.Unsubscription(who, (subscriptions.name_of_thread(THREAD),))
    return f"/subscriptions/unsubscribe?token={double_opt_in.unsubscribe_link(ending, secret)}"


def addresses(asker: Asker) -> list[str]:
    with asker.store.context():
        actor, now = mail_subscriber.ACTOR, datetime.now(UTC)
        secret = asker.settings.secret
        return list(follower_addresses.list_addresses(THREAD, actor, secret=secret, now=now))


def test_only_addresses_whose_owners_agreed_are_listed(
    asker: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower_addresses, "_AT_ONCE", 2)
    follow(asker, HIDDEN, 1)
    assert addresses(asker) == []
    expected = [f"shown{number}@example.org" for number in range(3)]
    for number, email in enumerate(expected, 2):
        follow(asker, email, number, share="on")
    with asker.store.context():
        reader_follows.follow(THREAD, "g:ann", now=datetime.now(UTC))
    assert sorted(addresses(asker)) == expected


def test_consent_is_withdrawn_on_the_page_that_unsubscribes_and_mail_continues(
    asker: Asker,
) -> None:
    link = follow(asker, SHOWN, 1, share="on")
    other = follow(asker, HIDDEN, 2)
    assert UNSHARE not in page_buttons.buttons(asker.client.get(other).text)
    asker.client.get(link)  # Opening the page changes nothing
    assert addresses(asker) == [SHOWN]
    assert page_buttons.press(asker.client, link, UNSHARE).status_code == 200
    assert addresses(asker) == []
    assert asker.is_following(SHOWN)
    assert UNSHARE not in page_buttons.buttons(asker.client.get(link).text)


def test_the_last_confirmation_decides_and_unsubscribing_ends_the_consent(asker: Asker) -> None:
    link = follow(asker, SHOWN, 1, share="on")
    follow(asker, SHOWN, 1)
    assert addresses(asker) == []
    follow(asker, SHOWN, 1, share="on")
    assert addresses(asker) == [SHOWN]
    page_buttons.press(asker.client, link, "E-mails like this one")
    assert addresses(asker) == []


def test_a_request_for_replies_does_not_ask_to_share_the_address(asker: Asker) -> None:
    asker.ask(SHOWN, thread=False, replies=True)
    asker.deliver()
    assert 'name="share"' not in asker.client.get(asker.box.link()).text
    assert page_buttons.press(
        asker.client, asker.box.link(), "Confirm", share="on"
    ).status_code == 200  # fmt: skip
    assert addresses(asker) == []


def test_a_checkbox_with_another_value_is_refused(asker: Asker) -> None:
    asker.ask(SHOWN)
    asker.deliver()
    pressed = page_buttons.press(asker.client, asker.box.link(), "Confirm", share="yes")
    assert pressed.status_code == 400
    assert not asker.is_following(SHOWN)


def test_the_command_counts_followers_and_records_each_list(asker: Asker) -> None:
    follow(asker, SHOWN, 1, share="on")
    follow(asker, HIDDEN, 2)
    with asker.store.context():
        reader_follows.follow(THREAD, "g:ann", now=datetime.now(UTC))
    app = apps.create_app(asker.settings, asker.store)
    runner: FlaskCliRunner = app.test_cli_runner()

    def said(*more: str) -> str:
        result = runner.invoke(args=["thread", "followers", "demo", "page", *more])
        assert result.exit_code == 0, result.output
        return str(result.output)

    assert said() == "3 followers: 2 by mail, 1 without.\n"
    assert said("--json").strip() == (
        '{"followers":3,"mail":2,"readers":1,"addresses":null,"names":null}'
    )
    with asker.store.context():
        assert audit_log.log("demo") == []
    assert said("--addresses", "--reason", "a prize draw").endswith(f"without.\n{SHOWN}\n")
    with asker.store.context():
        (entry,) = audit_log.log("demo")
    assert (entry.verb, entry.subject, entry.reason) == (
        follower_addresses.VERB, "thread:page", "a prize draw",
    )  # fmt: skip
    assert SHOWN not in str(entry)
