"""Double opt-in sends one confirmation mail per request and stores nothing before confirmation.

The tests use HTTP and a real mail server, as readers do.
"""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from comments import errors
from comments.domain.crypto import encryption
from comments.notifications import (
    double_opt_in,
    form_tokens,
    subscriptions,
    thread_followers,
)
from comments.store import connection, reads
from comments.store.large_sets import set_compaction, set_search
from comments.store.models import comment_rows
from datastore_emulator import inprocess, testing
from tests.support.html import page_buttons
from tests.support.outside import mail_subscriber

YES = "Confirm"
ONE_CLICK = {
    "data": "List-Unsubscribe=One-Click",
    "content_type": "application/x-www-form-urlencoded",
}


def test_an_address_gets_one_confirmation_mail_and_nothing_of_it_is_stored(
    asker: mail_subscriber.Asker,
) -> None:
    assert asker.ask(replies=True).json == {"status": "asked"}
    asker.deliver()
    assert asker.box.recipients == [mail_subscriber.ANN]
    assert "replies to your comments" in asker.box.text()
    assert "new comments in a discussion" in asker.box.text()
    assert asker.stored() == {}
    assert not asker.is_following()


def test_the_confirmation_mail_contains_nothing_that_a_stranger_chose(
    asker: mail_subscriber.Asker,
) -> None:
    asker.ask(replies=True)
    asker.deliver()
    made = asker.box.taken[0][1].as_string()
    for word in ("Mallory", "pills", "page?", "token=thread"):
        assert word not in made
    assert "List-Unsubscribe" not in asker.box.taken[0][1]


def test_a_forged_host_is_in_no_mail(asker: mail_subscriber.Asker) -> None:
    evil = {"Host": "evil.example", "X-Forwarded-Host": "evil.example"}
    sent = {"email": mail_subscriber.ANN, "thread": True}
    assert asker.client.put(mail_subscriber.URL, json=sent, headers=evil).status_code == 202
    asker.deliver()
    assert "evil" not in asker.box.taken[0][1].as_string()
    assert asker.settings.public_url.startswith("https://")
    assert f"{asker.settings.public_url}/" in asker.box.text()


def test_opening_the_link_changes_nothing_and_its_button_subscribes(
    asker: mail_subscriber.Asker,
) -> None:
    asker.ask()
    asker.deliver()
    link = asker.box.link(page="confirm")
    for method in ("get", "head"):
        shown = getattr(asker.client, method)(link)
        assert shown.status_code == 200
        assert asker.stored() == {}
    assert 'method="post"' in asker.client.get(link).text
    assert "Cheap pills" in asker.client.get(link).text
    assert asker.press(YES).status_code == 200
    assert asker.is_following()
    asker.deliver()
    assert asker.stored() == {"Subscriber": 1, "Subscription": 1, "FollowerMark": 1}


def test_a_confirmation_link_is_valid_once(asker: mail_subscriber.Asker) -> None:
    asker.ask()
    asker.deliver()
    link = asker.box.link(page="confirm")
    _, fields = page_buttons.buttons(asker.client.get(link).text)[YES]
    assert asker.client.post("/subscriptions/confirm", data=fields).status_code == 200
    assert asker.is_following()
    asker.client.post(f"/subscriptions/unsubscribe?token={_one_click(asker)}", **ONE_CLICK)
    # Neither the link in the mail nor the button's request may work a second time.
    opened = asker.client.get(link)
    pressed = asker.client.post("/subscriptions/confirm", data=fields)
    spelled = asker.client.get(f"{link}!")
    for answer in (opened, pressed, spelled):
        assert answer.status_code == 400
        assert "already used" in answer.text or "is not valid" in answer.text
        assert YES not in answer.text
    assert not asker.is_following()
    # A new link for the same subscription is valid.
    asker.follow()
    assert asker.is_following()


def test_concurrent_presses_of_the_button_subscribe_once(asker: mail_subscriber.Asker) -> None:
    asker.ask()
    asker.deliver()
    _, fields = page_buttons.buttons(asker.client.get(asker.box.link()).text)[YES]
    with ThreadPoolExecutor(8) as pool:
        answers = pool.map(
            lambda _: asker.client.application.test_client().post(
                "/subscriptions/confirm", data=fields
            ),
            range(8),
        )
        assert sorted(each.status_code for each in answers) == [200] + [400] * 7
    assert asker.is_following()


def test_a_link_of_an_older_release_confirms_once(asker: mail_subscriber.Asker) -> None:
    sealing = {"secret": asker.settings.secret, "now": datetime.now(UTC)}
    text = msgspec.json.encode([mail_subscriber.ANN, "demo", "demo/page", "", False]).decode()
    link = encryption.seal(text, "confirm", **sealing)  # type: ignore[arg-type]
    with asker.store.context():
        double_opt_in.confirm(link, **sealing)  # type: ignore[arg-type]
        with pytest.raises(errors.BadLink) as caught:
            double_opt_in.confirm(link, **sealing)  # type: ignore[arg-type]
    assert caught.value.code == "link-used"


def test_only_the_page_of_a_link_can_act_and_the_link_itself_cannot(
    asker: mail_subscriber.Asker,
) -> None:
    asker.follow(replies=True)
    link = _one_click(asker)
    page = asker.client.get(f"/subscriptions/unsubscribe?token={link}").text
    assert link not in page
    (slip,) = {fields["token"] for _, fields in page_buttons.buttons(page).values()}
    asker.ask("bob@example.org")
    asker.deliver()
    confirming = asker.box.link(page="confirm").partition("token=")[2]
    for url, data in (
        (f"/subscriptions/confirm?token={confirming}", {}),
        ("/subscriptions/confirm", {"token": confirming}),
        ("/subscriptions/confirm", {"token": slip}),
        (f"/subscriptions/unsubscribe/all?token={link}", {}),
        ("/subscriptions/unsubscribe/all", {"token": link}),
        ("/subscriptions/unsubscribe/address", {"token": link}),
        (f"/subscriptions/unsubscribe/all?token={slip}", {}),
        ("/subscriptions/unsubscribe", {"token": link}),
        (f"/subscriptions/unsubscribe?token={slip}", {}),
    ):
        assert asker.client.post(url, data=data).status_code == 400, url
    assert asker.is_following()
    assert not asker.is_following("bob@example.org")


def test_a_page_that_was_open_too_long_cannot_act(
    asker: mail_subscriber.Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    asker.follow()
    link = f"/subscriptions/unsubscribe?token={_one_click(asker)}"
    _, fields = page_buttons.buttons(asker.client.get(link).text)["E-mails like this one"]
    monkeypatch.setattr(form_tokens, "TERM", timedelta(seconds=-1))
    refused = asker.client.post("/subscriptions/unsubscribe", data=fields)
    assert refused.status_code == 400
    assert "Open the link in the e-mail again" in refused.text
    assert asker.is_following()
    # The link itself stays valid, both for its page and for one-click unsubscribing.
    monkeypatch.undo()
    assert asker.press("E-mails like this one", link).status_code == 200
    assert not asker.is_following()


def test_upper_and_lower_case_are_one_address(asker: mail_subscriber.Asker) -> None:
    asker.follow("Ann@Example.org")
    assert asker.is_following("ann@example.org")


def _one_click(asker: mail_subscriber.Asker) -> str:
    with asker.store.context():
        ending = double_opt_in.Unsubscription(
            double_opt_in.subscriber_of(mail_subscriber.ANN, asker.settings.secret),
            (subscriptions.name_of_thread(mail_subscriber.THREAD),),
        )
        return double_opt_in.unsubscribe_link(ending, asker.settings.secret)


def test_one_click_unsubscribes_and_opening_the_link_does_not(asker: mail_subscriber.Asker) -> None:
    asker.follow()
    link = f"/subscriptions/unsubscribe?token={_one_click(asker)}"
    for method in ("get", "head"):
        assert getattr(asker.client, method)(link).status_code == 200
        assert asker.is_following()
    for _ in range(2):
        assert asker.client.post(link, **ONE_CLICK).status_code == 200
        assert not asker.is_following()
    asker.deliver()
    # The address is erased together with its last subscription.
    assert set(asker.stored()) <= {"FollowerMark"}


def test_one_subscription_can_end_alone_or_all_together(asker: mail_subscriber.Asker) -> None:
    asker.follow(replies=True)
    link = f"/subscriptions/unsubscribe?token={_one_click(asker)}"
    assert asker.press("E-mails like this one", link).status_code == 200
    asker.deliver()
    assert asker.stored() == {"Subscriber": 1, "Subscription": 1, "FollowerMark": 1}
    asker.follow(replies=True)
    assert asker.press("All e-mails to this address", link).status_code == 200
    asker.deliver()
    assert set(asker.stored()) <= {"FollowerMark"}
    assert not asker.is_following()


def test_a_link_is_valid_for_one_purpose_and_two_days(asker: mail_subscriber.Asker) -> None:
    asker.ask()
    asker.deliver()
    confirming = asker.box.link(page="confirm").partition("token=")[2]
    for page, token in (
        ("unsubscribe", confirming),
        ("unsubscribe/all", confirming),
        ("confirm", _one_click(asker)),
        ("confirm", asker.token),
        ("unsubscribe", asker.token),
        ("confirm", confirming[:-2]),
        ("unsubscribe", "x" * 2000),
    ):
        for refused in (
            asker.client.post(f"/subscriptions/{page}?token={token}"),
            asker.client.post(f"/subscriptions/{page}", data={"token": token}),
            asker.client.get(f"/subscriptions/{page.partition('/')[0]}?token={token}"),
        ):
            assert refused.status_code == 400, page
            assert refused.mimetype == "text/html"
    refused = asker.client.delete(
        f"/api/v1/comments/{'a' * 26}", headers={"Authorization": f"Bearer {_one_click(asker)}"}
    )
    assert refused.status_code in {401, 404}
    late = datetime.now(UTC) + double_opt_in.TERM + timedelta(minutes=1)
    with asker.store.context(), pytest.raises(errors.BadLink) as caught:
        double_opt_in.confirm(confirming, secret=asker.settings.secret, now=late)
    assert caught.value.code == "link-expired"
    assert asker.stored() == {}


def test_a_confirmation_costs_at_most_six_reads_and_five_writes(
    asker: mail_subscriber.Asker, engine: inprocess.Engine
) -> None:
    asker.ask()
    asker.deliver()
    _, fields = page_buttons.buttons(asker.client.get(asker.box.link()).text)[YES]
    with testing.meter(engine) as cost:
        assert asker.client.post("/subscriptions/confirm", data=fields).status_code == 200
    assert cost.reads <= 6  # Includes the page's title and the check for a used link
    assert cost.writes <= 5


def test_the_pages_run_no_scripts_and_leak_their_url_to_nobody(
    asker: mail_subscriber.Asker,
) -> None:
    asker.ask()
    asker.deliver()
    for answer in (
        asker.client.get(asker.box.link()),
        asker.client.get("/subscriptions/confirm"),
        asker.client.get(f"/subscriptions/unsubscribe?token={_one_click(asker)}"),
        asker.press(
            "All e-mails to this address", f"/subscriptions/unsubscribe?token={_one_click(asker)}"
        ),
    ):
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["X-Robots-Tag"] == "noindex"
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "script-src" not in policy
        assert "frame-ancestors 'none'" in policy


def _everything(engine: inprocess.Engine, store: connection.Store) -> str:
    """Return all stored rows as text."""
    with store.context():
        kinds = (
            "Subscriber",
            "Subscription",
            "RateBucket",
            "Event",
            "Job",
            *mail_subscriber.KINDS[2:5],
        )
        rows = [str(row) for kind in kinds for row in reads.fetch(reads.Query(kind))]
    return "".join(rows)


def test_an_address_is_never_stored_in_plain_text(
    asker: mail_subscriber.Asker, engine: inprocess.Engine
) -> None:
    asker.ask()
    assert "example.org" not in _everything(engine, asker.store).lower()
    asker.deliver()
    asker.client.post(asker.box.link())
    assert "example.org" not in _everything(engine, asker.store).lower()


def test_a_forgotten_address_is_deleted_from_every_row_and_segment(
    asker: mail_subscriber.Asker, engine: inprocess.Engine
) -> None:
    others = [f"other{number}@example.org" for number in range(3)]
    for number, email in enumerate([mail_subscriber.ANN, *others]):
        asker.follow(email, address=f"203.0.113.{number}")
    secret = asker.settings.secret
    who = double_opt_in.subscriber_of(mail_subscriber.ANN, secret)
    with asker.store.context():
        assert set_compaction.compact(mail_subscriber.LIST)
        assert list(set_search.sets_with(who)) == [mail_subscriber.LIST]
        # The subscriber unfollowed earlier, so only the compacted list still contains the id.
        name = subscriptions.name_of_thread(mail_subscriber.THREAD)
        subscriptions.unsubscribe(who, [name], now=datetime.now(UTC))
        assert subscriptions.of_subscriber(who) == []
        assert double_opt_in.forget(mail_subscriber.ANN, secret, now=datetime.now(UTC)) == 0
        assert list(set_search.sets_with(who)) == []
        kept = thread_followers.subscribers(mail_subscriber.THREAD, limit=9).ids
        assert sorted(kept) == sorted(double_opt_in.subscriber_of(each, secret) for each in others)
        # The subscriber follows again, which leaves uncompacted marks.
        sealed = encryption.seal(mail_subscriber.ANN, "address", secret, now=datetime.now(UTC))
        key = comment_rows.thread_key_name(mail_subscriber.THREAD)
        where = subscriptions.SubscriptionTarget("demo", key)
        subscriptions.subscribe(who, sealed, where, now=datetime.now(UTC))
        assert double_opt_in.forget(mail_subscriber.ANN.upper(), secret, now=datetime.now(UTC)) == 1
        assert list(set_search.sets_with(who)) == []
        assert double_opt_in.forget(mail_subscriber.ANN, secret, now=datetime.now(UTC)) == 0
    assert who not in _everything(engine, asker.store)
    for email in others:
        assert asker.is_following(email)


def test_an_address_stored_under_another_secret_is_unreadable(asker: mail_subscriber.Asker) -> None:
    now = datetime.now(UTC)
    stored = encryption.seal(mail_subscriber.ANN, "address", "another secret", now=now)
    with pytest.raises(errors.BadLink):
        double_opt_in.address(stored, secret=asker.settings.secret, now=now)
