"""Bans recognize a banned author by network or mailbox."""

import dataclasses
from datetime import UTC, datetime, timedelta
from typing import Any

import flask
import pytest

from comments import app as apps
from comments import config, errors
from comments.domain import records
from comments.domain.crypto import caller_marks, client_networks, secret_rotation
from comments.domain.moderation import classifier_verdicts
from comments.domain.records import Status
from comments.events import audit_log
from comments.limits.site_request import SiteRequest
from comments.moderation import bans, retention
from comments.moderation.policy import policy_changes, rulebook
from comments.posting import admission, new_comment
from comments.sites import site_settings
from comments.store import connection, reads
from comments.store.memory import per_process
from comments.store.models import comment_rows
from tests.support.people import account_holders
from tests.support.people.console_browser import Desk
from tests.support.threads import sample_threads

ADA = records.Actor("cli", "Ada")
NOW = sample_threads.START
SECRET = sample_threads.SETTINGS.secret
HOME, ELSEWHERE = "203.0.113.7", "198.51.100.9"


def post(
    site: records.Site, address: str = HOME, *, now: datetime = NOW, **more: Any
) -> records.Comment:
    """Post as a first-time guest from the given network address."""
    author = records.Author("Eve", email=more.pop("email", ""), id=more.pop("id", ""))
    sender = classifier_verdicts.Sender(client_networks.of(address))
    draft = admission.Submission("page", None, author, "an excerpt of it", **more)
    return new_comment.post(draft, SiteRequest(site, sample_threads.SETTINGS, now, sender)).comment


def ban(row: records.Comment, *, now: datetime = NOW, **wanted: Any) -> rulebook.Rulebook:
    more = {name: wanted.pop(name) for name in ("until", "is_shadow") if name in wanted}
    return bans.ban(
        "demo", row.author.id, bans.BanScope(**wanted), ADA, secret=SECRET, now=now, **more
    )


def stored(row: records.Comment) -> comment_rows.CommentRow:
    found: comment_rows.CommentRow = reads.get(comment_rows.comment_key(row.id))
    return found


# --- The network --------------------


def test_a_banned_network_keeps_out_a_guest_with_a_new_token(
    store: connection.Store, site: records.Site
) -> None:
    row = post(site)
    ban(row, network_days=7)
    with pytest.raises(errors.Forbidden) as refused:
        post(site)
    assert refused.value.code == "author-banned"
    assert post(site, ELSEWHERE).status is Status.APPROVED


def test_without_days_only_the_author_is_banned(
    store: connection.Store, site: records.Site
) -> None:
    ban(post(site))
    assert post(site).status is Status.APPROVED


def test_a_network_ban_ends_after_its_days_and_the_authors_ban_does_not(
    store: connection.Store, site: records.Site
) -> None:
    row = post(site)
    ban(row, network_days=7)
    over = NOW + timedelta(days=7)
    with pytest.raises(errors.Forbidden):
        post(site, now=over - timedelta(seconds=1))
    assert post(site, now=over).status is Status.APPROVED
    with pytest.raises(errors.Forbidden):
        post(site, id=row.author.id, now=over)


def test_an_ipv6_network_is_the_64_of_a_customer(
    store: connection.Store, site: records.Site
) -> None:
    ban(post(site, "2001:db8:1:2::3"), network_days=7)
    with pytest.raises(errors.Forbidden):
        post(site, "2001:db8:1:2:ffff::9")
    assert post(site, "2001:db8:1:3::3").status is Status.APPROVED


def test_a_shadow_ban_of_a_network_is_not_revealed(
    store: connection.Store, site: records.Site
) -> None:
    ban(post(site), network_days=7, is_shadow=True)
    assert post(site).status is Status.SHADOWED


def test_a_ban_is_for_one_site(store: connection.Store, site: records.Site) -> None:
    other = site_settings.add(
        "other", ["https://o.example"], scheme=sample_threads.SETTINGS.scheme, now=NOW
    )
    ban(post(site), network_days=7)
    assert post(other).status is Status.APPROVED


def test_a_member_is_banned_without_the_network(
    store: connection.Store, site: records.Site
) -> None:
    account = account_holders.account("ann")
    ban(post(site), network_days=7)
    assert post(site, id=account.author).status is Status.APPROVED
    with pytest.raises(errors.Conflict) as refused:
        ban(post(site, id=account.author), network_days=7)
    assert refused.value.code == "network-unknown"


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "nonsense"])
def test_local_and_unknown_networks_cannot_be_banned(
    store: connection.Store, site: records.Site, address: str
) -> None:
    with pytest.raises(errors.Conflict):
        ban(post(site, address), network_days=7)


@pytest.mark.parametrize("days", [0, -1, 366])
def test_a_network_is_banned_for_a_year_at_most(
    store: connection.Store, site: records.Site, days: int
) -> None:
    with pytest.raises(errors.BadInput, match="network_days"):
        ban(post(site), network_days=days)


def test_the_named_comment_determines_the_banned_network(
    store: connection.Store, site: records.Site
) -> None:
    first = post(site)
    post(site, ELSEWHERE, id=first.author.id, now=NOW + timedelta(minutes=1))
    other = post(site)
    with pytest.raises(errors.BadInput, match="comment"):
        ban(first, network_days=7, comment=other.id)
    ban(first, network_days=7, comment=first.id)
    with pytest.raises(errors.Forbidden):
        post(site)
    assert post(site, ELSEWHERE).status is Status.APPROVED


# --- The mailbox --------------------


def test_a_banned_mailbox_covers_each_spelling_of_its_address(
    store: connection.Store, site: records.Site
) -> None:
    ban(post(site, email="Eve.Eden+one@mailbox.example"), mailbox=True)
    for address in ("eveeden@mailbox.example", "eve.eden+two@MAILBOX.example"):
        with pytest.raises(errors.Forbidden):
            post(site, ELSEWHERE, email=address)
    assert post(site, ELSEWHERE, email="adam@mailbox.example").status is Status.APPROVED


def test_an_accounts_address_is_recognized_in_a_guests_post(
    store: connection.Store, site: records.Site
) -> None:
    account = account_holders.account("ann", mail="ann@mailbox.example")
    ban(post(site, id=account.author), mailbox=True)
    with pytest.raises(errors.Forbidden):
        post(site, ELSEWHERE, email="ann+2@mailbox.example")
    assert post(site, ELSEWHERE, email="bob@mailbox.example").status is Status.APPROVED


def test_a_guests_address_is_recognized_in_an_account(
    store: connection.Store, site: records.Site
) -> None:
    account = account_holders.account("ann", mail="ann@mailbox.example")
    ban(post(site, email="ann+2@mailbox.example"), mailbox=True)
    with pytest.raises(errors.Forbidden):
        post(site, ELSEWHERE, id=account.author)
    # The service has lost the secret that encrypted the account's address, so the account may post.
    lost = dataclasses.replace(sample_threads.SETTINGS, secret="another secret of 32 characters.")
    draft = admission.Submission("page", None, records.Author("Ann", id=account.author), "hello")
    assert new_comment.post(draft, SiteRequest(site, lost, NOW)).comment.status is Status.APPROVED


def test_an_unknown_mailbox_cannot_be_banned(store: connection.Store, site: records.Site) -> None:
    with pytest.raises(errors.Conflict) as refused:
        ban(post(site), mailbox=True)
    assert refused.value.code == "mailbox-unknown"


def test_marks_under_the_old_secret_are_recognized(
    store: connection.Store, site: records.Site
) -> None:
    ban(post(site, email="eve@mailbox.example"), network_days=7, mailbox=True)
    rotated = secret_rotation.Secret("another secret of 32 characters.", SECRET)
    book = rulebook.from_store("demo")
    for marks in (
        caller_marks.of("demo", HOME, (), rotated),
        caller_marks.of("demo", "", ["eve@mailbox.example"], rotated),
    ):
        assert book.strictest_ban(marks, NOW) is not None
    assert book.strictest_ban(caller_marks.of("demo", HOME, (), "another"), NOW) is None


# --- What is stored, and for how long --------------------


def test_stored_marks_do_not_reveal_which_comments_share_a_network(
    store: connection.Store, site: records.Site
) -> None:
    rows = [stored(post(site)), stored(post(site))]
    assert all(row.came_from and HOME not in row.came_from for row in rows)
    assert rows[0].came_from != rows[1].came_from
    marks = {caller_marks.open_mark(row.came_from, SECRET, now=NOW) for row in rows}
    assert len(marks) == 1


def test_a_comments_network_is_erased_with_it_and_after_thirty_days(
    store: connection.Store, site: records.Site
) -> None:
    gone, old = post(site), post(site)
    sample_threads.retract(gone)
    assert stored(gone).came_from == ""
    assert stored(old).came_from
    retention.expire(NOW + retention.TERM)
    assert (stored(old).came_from, stored(old).body) == ("", "an excerpt of it")
    with pytest.raises(errors.Conflict):
        ban(old, network_days=7)


def test_a_networks_mark_leaves_the_rulebook_when_the_ban_ends(
    store: connection.Store, site: records.Site
) -> None:
    ban(post(site), network_days=7)
    mark = rulebook.from_store("demo").bans[0].known.network
    assert mark
    per_process.fresh_process(store)
    assert bans.expire(NOW + timedelta(days=6)) == 0
    per_process.fresh_process(store)
    assert bans.expire(NOW + timedelta(days=7)) == 1
    assert rulebook.from_store("demo").bans[0].known.network == ""
    for message in reads.fetch(reads.Query("Rulebook")):
        assert mark not in str(message)
    assert "with the network until" in audit_log.log("demo")[0].after


def test_the_log_contains_no_mark_and_undoes_a_ban(
    store: connection.Store, site: records.Site
) -> None:
    row = post(site, email="eve@mailbox.example")
    ban(row, network_days=7, mailbox=True)
    known = rulebook.from_store("demo").bans[0].known
    policy_changes.unban("demo", row.author.id, ADA, now=NOW)
    assert post(site).status is Status.APPROVED
    for message in reads.fetch(reads.Query("AuditEntry")):
        assert known.network not in str(message)
        assert known.mailbox not in str(message)
    (entry,) = [each for each in audit_log.log("demo") if each.verb == "unban"]
    policy_changes.undo("demo", entry.id, ADA, now=NOW)
    assert rulebook.from_store("demo").ban_of(row.author.id, NOW) is not None


# --- The admin console --------------------


def test_the_list_of_bans_shows_a_name_and_an_excerpt_while_the_comment_exists(
    desk: Desk, site: records.Site
) -> None:
    row = post(site)
    ban(row, network_days=7, now=datetime.now(UTC))
    page = desk.page("/authors")
    assert "<bdi>Eve</bdi>" in page
    assert "an excerpt of it" in page
    assert "network banned until" in page
    sample_threads.retract(row)
    page = desk.page("/authors")
    assert row.author.id in page
    assert "an excerpt of it" not in page


def test_the_console_bans_a_network_and_reports_when_it_cannot(
    desk: Desk, site: records.Site
) -> None:
    now = datetime.now(UTC)
    row, local = post(site, now=now), post(site, "127.0.0.1", now=now)
    where = f"/bans?id={row.author.id}"
    assert "Also ban the author&#39;s network" in desk.page(f"/author?id={row.author.id}")
    desk.settle(where, act="ban", network_days="0", status=400)
    desk.settle(where, act="ban", network_days="many", status=400)
    desk.settle(where, act="ban", network_days="7")
    with pytest.raises(errors.Forbidden):
        post(site, now=now)
    assert "network banned until" in desk.page(f"/author?id={row.author.id}")
    desk.settle(f"/bans?id={local.author.id}", act="ban", network_days="7", status=409)


def test_a_banned_guest_who_clears_the_browser_stays_banned(
    open_store: connection.Store, settings: config.Settings, site: records.Site
) -> None:
    app: flask.Flask = apps.create_app(dataclasses.replace(settings, trusted_proxies=1), open_store)

    def send(address: str) -> Any:
        return app.test_client().post(
            "/api/v1/sites/demo/comments?thread=page",
            json={"body": "text", "name": "Eve"},
            headers={"X-Forwarded-For": address},
        )

    first = send(HOME)
    assert first.status_code == 201
    with open_store.context():
        row = reads.get(comment_rows.comment_key(first.json["comment"]["id"]))
        bans.ban(
            "demo", row.author_id, bans.BanScope(7), ADA,
            secret=settings.secret, now=datetime.now(UTC),
        )  # fmt: skip
    assert (send(HOME).status_code, send(ELSEWHERE).status_code) == (403, 201)
