"""A staging copy has the settings of its original, names nobody, and sends nothing."""

import functools

import click.testing
import pytest

from comments import app as apps
from comments import errors
from comments.domain import records
from comments.domain.moderation.staff_notices import NoticeChoice
from comments.domain.records import Policy
from comments.events import audit_log, message_sender, webhook_endpoints, webhooks
from comments.moderation.policy import policy_changes, rulebook, rules
from comments.sites import mail_server, notice_recipients, site_settings
from comments.store import connection
from comments.transfer.uploads import site_copy, upload_steps
from tests.support import store_snapshot
from tests.support.outside.mail_server import Box
from tests.support.outside.mail_service import MailService
from tests.support.people.account_holders import SECRET
from tests.support.people.console_browser import Desk
from tests.support.threads import sample_threads

NOW = sample_threads.START
ADA = records.Actor("cli", "Ada")
ORIGIN = "https://staging.example"
WORDS = rules.Rule("bets", rules.Action.HOLD, words=("casino*",))
NETWORK = rules.Rule("net", rules.Action.HOLD, networks=("203.0.113.0/24",))


def _copy(new: str = "demo-staging", *origins: str) -> records.Site:
    return site_copy.copy("demo", new, origins or (ORIGIN,), ADA, now=NOW)


def test_a_copy_has_the_settings_and_the_rules_but_names_nobody(
    store: connection.Store, site: records.Site
) -> None:
    site_settings.change(
        "demo", title="The Blog", moderators=["mod@example.org"], query_keys=["id"], cdn_seconds=7,
        filed=["news"], options={"votes": False, "language": "de"}, guard={"proof_of_work": 10},
    )  # fmt: skip
    policy_changes.set_policy("demo", ADA, now=NOW, policy=Policy.ALL, close_after=9)
    for rule in (WORDS, NETWORK):
        policy_changes.put_rule("demo", rule, ADA, now=NOW)
    policy_changes.ban("demo", "g:eve", ADA, now=NOW)
    sample_threads.post(site, "hello")
    before = store_snapshot.everything("AuditEntry", "Site", "Rulebook")
    made, original = _copy(), site_settings.get("demo")
    assert made.copy_of == "demo"
    assert made.origins == (ORIGIN,)
    assert made.moderators == made.recipients == ()
    for name in ("title", "query_keys", "cdn_seconds", "categories", "options", "guard", "scheme"):
        assert getattr(made, name) == getattr(original, name), name
    book = rulebook.from_store("demo-staging")
    assert (book.policy, book.close_after, book.bans) == (Policy.ALL, 9, ())
    assert [rule.id for rule in book.rules] == ["bets"]
    assert store_snapshot.everything("AuditEntry", "Site", "Rulebook") == before
    (entry,) = audit_log.log("demo-staging")
    assert (entry.verb, entry.after) == ("copy-site", "demo")


@pytest.mark.parametrize(
    ("new", "origin", "error"),
    [
        ("a b", ORIGIN, errors.BadInput),
        ("demo", ORIGIN, errors.Conflict),
        ("other", "ftp://x", errors.BadInput),
    ],
)
def test_a_wrong_copy_is_refused_and_nothing_stored(
    store: connection.Store, site: records.Site, new: str, origin: str, error: type[Exception]
) -> None:
    before = store_snapshot.everything()
    with pytest.raises(error):
        _copy(new, origin)
    with pytest.raises(errors.NotFound):
        site_copy.copy("none", "new", (ORIGIN,), ADA, now=NOW)
    assert store_snapshot.everything() == before


def test_a_copy_sends_no_mail(store: connection.Store, site: records.Site, box: Box) -> None:
    """Neither to staff who chose it there, nor to readers, who cannot subscribe."""
    mailer, copied = MailService(store, box.settings(), box), _copy()
    for who, choice in (
        ("a@example.org", NoticeChoice.EACH),
        ("b@example.org", NoticeChoice.DAILY),
    ):
        noted = audit_log.Noted(audit_log.Act(ADA, "set-site"), NOW)
        notice_recipients.choose("demo-staging", who, choice, noted=noted)
    sample_threads.post(copied, "hello")
    mailer.deliver()
    notice_recipients.plan_digests(mailer.now)
    mailer.deliver()
    assert box.taken == []
    assert mail_server.sends_mail_of(site, mailer.settings)
    assert not mail_server.sends_mail_of(copied, mailer.settings)
    client = apps.create_app(mailer.settings, store).test_client()
    call = "/api/v1/sites/demo-staging"
    assert not client.get(f"{call}/subscription").json["mail"]
    asked = {"email": "ann@example.org", "thread": True}
    assert client.put(f"{call}/subscription?thread=page", json=asked).status_code == 409
    assert client.post(f"{call}/sign-in", json={"email": "ann@example.org"}).status_code == 409


def test_a_copy_gets_no_webhook_and_no_classifier(
    open_store: connection.Store, owner: Desk, site: records.Site
) -> None:
    _copy()
    with pytest.raises(errors.Conflict, match="site-copy"):
        webhook_endpoints.add(
            "demo-staging",
            webhook_endpoints.new("https://hooks.example/in", (webhooks.Type.POSTED,), now=NOW),
            message_sender.OUTBOUND.get(),
        )
    desk = "/admin/sites/demo-staging"
    form = {"act": "set", "name": "akismet", "key": "abc"}
    said = owner.settle("/advisers", desk=desk, status=409, **form)
    assert "A staging copy sends no webhooks" in said


def test_an_owner_makes_a_copy_in_the_console(owner: Desk, site: records.Site) -> None:
    assert 'value="demo-staging"' in owner.page("/settings")
    owner.settle("/settings/copy", copy_name="demo", origin=ORIGIN, status=409)
    owner.settle("/settings/copy", copy_name="demo-staging", origin=ORIGIN)
    page = owner.client.get("/admin/sites/demo-staging/settings").text
    assert "This is a staging copy of demo." in page
    assert "Make a staging copy" not in page
    assert "staging copy of demo" in owner.client.get("/admin").text
    assert "Made this staging copy" in owner.client.get("/admin/sites/demo-staging/log").text


def test_an_owner_makes_a_copy_with_comments_in_the_console(
    owner: Desk, store: connection.Store, site: records.Site
) -> None:
    sample_threads.post(site, "a text to copy")
    new, send = "demo-staging", functools.partial(owner.settle, "/settings/copy", comments="on")
    refused = send(copy_name=new, origin="ftp://x", status=400)
    assert 'name="comments" value="on" checked' in refused
    send(copy_name=new, origin=ORIGIN)
    copy = "/admin/sites/demo-staging"
    assert "Copying the comments of demo…" in owner.client.get(f"{copy}/imports").text
    assert owner.client.get(f"{copy}/imports/status").json["state"] == "copying"
    while upload_steps.do_next_step("demo-staging", SECRET):
        pass
    assert "a text to copy" in owner.client.get(f"{copy}/queue?status=any").text


def test_the_command_makes_a_copy(
    open_store: connection.Store, site: records.Site, box: Box
) -> None:
    runner = apps.create_app(box.settings(secret=SECRET), open_store).test_cli_runner()
    arguments = ["site", "copy", "demo", "new", "--origin", ORIGIN]
    result: click.testing.Result = runner.invoke(args=arguments)
    assert result.output == f"Added new, a staging copy of demo ({ORIGIN}).\n"
    assert runner.invoke(args=arguments).exit_code == 1
