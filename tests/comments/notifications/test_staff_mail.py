"""Staff get the mail that they chose: each comment, held ones, or a daily digest.

The mail server is real, and tests advance the time.
"""

from datetime import timedelta

import pytest

from comments import app as apps
from comments.accounts import accounts, sessions
from comments.domain import records
from comments.domain.languages import catalogue
from comments.domain.moderation.staff_notices import NoticeChoice
from comments.domain.records import Verb
from comments.events import audit_log, backlog
from comments.moderation import decisions
from comments.sites import notice_recipients, site_deletion, site_settings
from tests.support.histories import counter_oracle
from tests.support.outside import mail_server
from tests.support.outside.mail_service import START, MailService
from tests.support.people import account_holders

pytestmark = pytest.mark.slow

ADA = records.Actor("cli", "Ada")
MORNING = START.replace(hour=8, minute=0, second=0, microsecond=0) + timedelta(days=2)


def choose(who: str, choice: NoticeChoice, hour: int = 8, zone: str = "UTC") -> None:
    noted = audit_log.Noted(audit_log.Act(ADA, "set-site"), START - timedelta(hours=1))
    notice_recipients.choose("demo", who, choice, hour=hour, zone=zone, noted=noted)


@pytest.fixture
def mod(mailer: MailService) -> accounts.Account:
    """A moderator of the site with an address."""
    return account_holders.account("mod", account_holders.moderator(), mail="mod@example.org")


def hold(mailer: MailService, text: str) -> records.Comment:
    posted = mailer.say(text)
    return decisions.decide("demo", posted.id, Verb.HOLD, ADA, now=mailer.now, reason="why not")


def plan(mailer: MailService) -> None:
    notice_recipients.plan_digests(mailer.now)
    mailer.deliver()


def test_by_default_only_the_listed_addresses_get_mail_about_held_comments(
    mailer: MailService, mod: accounts.Account
) -> None:
    site_settings.change("demo", moderators=["old@example.org"])
    mailer.say("published")
    hold(mailer, "held")
    mailer.deliver()
    assert mailer.told("held") == ["old@example.org"]
    assert mailer.told("published") == []


@pytest.mark.parametrize(
    ("choice", "published", "held"),
    [
        (NoticeChoice.EACH, 1, 1),
        (NoticeChoice.HELD, 0, 1),
        (NoticeChoice.DAILY, 0, 0),
        (NoticeChoice.NONE, 0, 0),
    ],
)
@pytest.mark.parametrize("is_account", [True, False])
def test_a_recipient_gets_mail_about_the_chosen_comments(
    mailer: MailService,
    mod: accounts.Account,
    choice: NoticeChoice,
    published: int,
    held: int,
    *,
    is_account: bool,
) -> None:
    who = mod.author if is_account else "mod@example.org"
    choose(who, NoticeChoice.EACH)
    choose(who, choice)
    mailer.say("published")
    mailer.deliver()
    first = hold(mailer, "to be held")
    mailer.box.taken.clear()
    mailer.deliver()
    assert len(mailer.told("to be held")) == held
    decisions.decide("demo", first.id, Verb.APPROVE, ADA, now=mailer.now)
    mailer.box.taken.clear()
    mailer.deliver()
    assert mailer.box.taken == [], "no second mail about the comment"
    mailer.say("the last")
    mailer.deliver()
    assert len(mailer.told("the last")) == published


def test_staff_get_no_mail_about_their_own_comment_and_one_if_they_also_follow(
    mailer: MailService, mod: accounts.Account
) -> None:
    choose(mod.author, NoticeChoice.EACH)
    mailer.subscribe("mod@example.org")
    mailer.say("one")
    mailer.deliver()
    assert mailer.told("one") == ["mod@example.org"]
    mailer.box.taken.clear()
    mailer.say("mine", author=mod.author)
    mailer.deliver()
    assert len(mailer.told("mine")) == 1, "as a follower, whose address may be another person's"


def test_an_account_without_its_role_gets_nothing(
    mailer: MailService, mod: accounts.Account
) -> None:
    choose(mod.author, NoticeChoice.EACH)
    accounts.grant(mod.id, None, "demo", account_holders.cause())
    mailer.say("one")
    hold(mailer, "two")
    mailer.deliver()
    assert mailer.box.taken == []


def test_a_click_in_each_mail_unsubscribes(mailer: MailService, mod: accounts.Account) -> None:
    choose(mod.author, NoticeChoice.EACH)
    choose("old@example.org", NoticeChoice.HELD)
    hold(mailer, "held")
    mailer.deliver()
    assert sorted(mailer.box.recipients) == ["mod@example.org", "old@example.org"]
    client = apps.create_app(mailer.settings, mailer.store).test_client()
    for _, made in mailer.box.taken:
        assert made["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
        path = made["List-Unsubscribe"].strip("<>").removeprefix(mail_server.PUBLIC)
        assert "Stop this mail" in client.get(path).text
        assert site_settings.get("demo").recipients, "opening a link changes nothing"
        assert client.post(path, data={"List-Unsubscribe": "One-Click"}).status_code == 200
    assert site_settings.get("demo").recipients == ()
    assert client.get("/notices/unsubscribe?token=x").status_code == 400


def test_a_digest_lists_the_new_comments_once(mailer: MailService, mod: accounts.Account) -> None:
    choose(mod.author, NoticeChoice.DAILY, 10, "Europe/Athens")
    mailer.say("news")
    hold(mailer, "to decide")
    mailer.now = MORNING - timedelta(minutes=1)
    mailer.deliver()
    mailer.box.taken.clear()
    notice_recipients.plan_digests(START)
    assert counter_oracle.events() == []
    mailer.now = MORNING
    plan(mailer)
    (made,) = mailer.box.taken
    assert made[0] == "mod@example.org"
    text = mailer.box.text()
    assert "> news" in text
    assert "1 comment is waiting for approval." in text
    assert f"{mail_server.PUBLIC}/admin/sites/demo/queue" in text
    assert made[1]["List-Unsubscribe"]
    plan(mailer)
    mailer.now += timedelta(days=1)
    plan(mailer)
    assert len(mailer.box.taken) == 1, "an empty digest is not sent"


def test_a_digest_that_fails_is_sent_later_and_a_repeated_one_has_the_same_id(
    mailer: MailService, mod: accounts.Account
) -> None:
    choose(mod.author, NoticeChoice.DAILY)
    mailer.say("news")
    mailer.deliver()
    mailer.now = MORNING
    mailer.box.refuse = lambda _: "451 later"
    plan(mailer)
    assert mailer.box.taken == []
    mailer.box.refuse = lambda _: None
    mailer.now += timedelta(hours=1)
    mailer.deliver()
    assert mailer.box.recipients == ["mod@example.org"]


def test_a_killed_process_loses_and_repeats_no_digest(
    mailer: MailService, mod: accounts.Account
) -> None:
    """The commit that moves the end of the digest contains its event."""
    choose(mod.author, NoticeChoice.DAILY)
    mailer.say("news")
    mailer.deliver()
    mailer.now = MORNING
    notice_recipients.plan_digests(mailer.now)
    backlog.BACKLOG.forget(mailer.store)
    assert len(counter_oracle.events()) == 1
    notice_recipients.plan_digests(mailer.now)
    assert len(counter_oracle.events()) == 1
    mailer.deliver()
    assert mailer.box.recipients == ["mod@example.org"]


def test_a_deleted_site_sends_no_digest(mailer: MailService, mod: accounts.Account) -> None:
    choose(mod.author, NoticeChoice.DAILY)
    mailer.say("news")
    mailer.deliver()
    site_deletion.delete("demo", ADA, now=START)
    mailer.now = MORNING
    plan(mailer)
    assert mailer.box.taken == []


def test_an_address_gets_a_limited_number_of_mails_a_day(
    mailer: MailService, mod: accounts.Account
) -> None:
    choose(mod.author, NoticeChoice.EACH)
    for number in range(mailer.settings.mails_per_day + 2):
        mailer.say(f"comment {number}")
    mailer.deliver()
    assert len(mailer.box.taken) == mailer.settings.mails_per_day


def sign_in(account: accounts.Account, language: str) -> None:
    cause = account_holders.cause(START)._replace(language=language)
    sessions.begin(account.id, account_holders.SECRET, now=START, cause=cause)


@pytest.mark.parametrize("language", catalogue.languages())
def test_mails_about_comments_are_in_the_language_of_the_last_sign_in(
    mailer: MailService, mod: accounts.Account, language: str
) -> None:
    site_settings.change("demo", options={"language": "fr"})
    sign_in(mod, language)
    choose(mod.author, NoticeChoice.EACH)
    choose("other@example.org", NoticeChoice.EACH)
    hold(mailer, "held")
    mailer.say("published")
    mailer.deliver()
    for address, tag in (("mod@example.org", language), ("other@example.org", "fr")):
        words = catalogue.of(tag).text
        mails = [made for to, made in mailer.box.taken if to == address]
        subjects = {made["Subject"] for made in mails}
        assert subjects == {
            words("comment-mail.held-subject-untitled"),
            words("comment-mail.comment-subject-untitled", name="Bob"),
        }
        direction = "rtl" if tag == "ar" else "ltr"
        for made in mails:
            page = made.get_body(("html",)).get_content()
            assert f'<html lang="{tag}" dir="{direction}">' in page
            assert f'<div dir="{direction}">' in page
            assert words("comment-mail.wrote", name="Bob") in page
            assert words("comment-mail.unsubscribe") in made.get_body(("plain",)).get_content()


@pytest.mark.parametrize(
    ("is_known", "subject"),
    [(True, "demo の新しいコメント 2 件"), (False, "تعليقان جديدان على \u2068demo\u2069")],
)
def test_the_digest_is_in_the_language_of_the_account_or_else_of_the_site(
    mailer: MailService, mod: accounts.Account, subject: str, *, is_known: bool
) -> None:
    site_settings.change("demo", options={"language": "ar"})
    if is_known:
        sign_in(mod, "ja")
    choose(mod.author, NoticeChoice.DAILY)
    mailer.say("news")
    mailer.deliver()
    mailer.now = MORNING
    plan(mailer)
    made = mailer.box.taken[0][1]
    assert made["Subject"] == subject
    page = made.get_body(("html",)).get_content()
    assert f'<html lang="{"ja" if is_known else "ar"}"' in page
