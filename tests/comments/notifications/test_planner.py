"""Mail notifications have the right recipients and content.

The mail server is real, tests advance the time, and each delivery step is one sweep.
"""

import itertools
from datetime import timedelta

import pytest

from comments import app as apps
from comments.accounts import identities, reader_accounts
from comments.domain import records
from comments.domain.ids import imported_ids
from comments.domain.records import Policy, Status, Verb
from comments.events import mail_jobs, outbox
from comments.moderation import decisions
from comments.moderation.policy import author_links
from comments.notifications import planner, subscriptions, thread_followers
from comments.posting import own_comment
from comments.sites import site_deletion, site_settings
from comments.store import connection, ownership, reads, transactions
from comments.store.large_sets import set_compaction
from comments.store.models import comment_rows
from comments.threads import thread_cache
from comments.tree import values
from datastore_emulator import inprocess, testing
from tests.support.histories import counter_oracle
from tests.support.outside import mail_server
from tests.support.outside.mail_server import Box
from tests.support.outside.mail_service import SITE, START, THREAD, MailService
from tests.support.threads import moderated_site, sample_threads

pytestmark = pytest.mark.slow


def _held(text: str, status: Status = Status.PENDING) -> records.Comment:
    """Store and return a held comment, with its row and event in one commit as moderation does."""
    node = sample_threads.post(SITE, text, author=records.Author("Eve", id="g:eve"))
    events = outbox.read([f"{node.id}.1"])

    def body() -> None:
        row = reads.get(comment_rows.comment_key(node.id))
        row.status, row.listed = status.value, False
        transactions.apply(ownership.Writes("tree", put=(row,)))
        for event in events:
            (change,) = outbox.record(event).changes
            assert change.new is not None
            new = change.new._replace(status=status.value, listed=False)
            told = [change._replace(new=new)]
            transactions.apply(
                outbox.event_writes(outbox.EventKind.POSTED, event.key.id(), told, now=START)
            )

    transactions.transaction(body)
    return node


def test_a_reply_is_mailed_to_the_parents_author_alone(mailer: MailService) -> None:
    first = mailer.say("a question", author="g:ann")
    mailer.subscribe("ann@example.org", author="g:ann", replies=True)
    mailer.subscribe("cid@example.org", author="g:cid", replies=True)
    mailer.say("an answer", first.id)
    mailer.say("elsewhere")
    mailer.deliver()
    assert mailer.box.recipients == ["ann@example.org"]
    made = mailer.box.taken[0][1]
    assert made["Subject"] == "Bob replied to your comment"
    assert "> an answer\n" in mailer.box.text()
    assert counter_oracle.events() == []


def test_a_reply_to_an_imported_comment_is_mailed_to_the_reader_who_claimed_it(
    mailer: MailService,
) -> None:
    secret, address = mailer.settings.secret, "ann@example.org"
    (imported,) = imported_ids.author_ids_of_address(secret, "demo", address)
    node = sample_threads.node("a question", author=imported)
    sample_threads.store_imported(THREAD, node)
    mailer.deliver()
    reader = reader_accounts.Reader(identities.of_address(address), "Ann")
    ann = reader_accounts.sign_in(reader, secret=secret, now=START)
    mailer.subscribe(address, author=ann.author, replies=True)
    mailer.say("not hers yet", node.id)
    mailer.deliver()
    assert mailer.box.recipients == []
    assert author_links.claim(SITE, address, ann, secret=secret, now=START) == 1
    mailer.say("an answer", node.id)
    mailer.deliver()
    assert mailer.box.recipients == [address]


def test_no_mail_about_a_deleted_site_is_sent(mailer: MailService) -> None:
    """Neither mail that was planned before the deletion, nor mail about the last comments."""
    ada = records.Actor("cli", "Ada")
    mailer.subscribe("ann@example.org")
    mailer.say("one")
    mailer.now += outbox.SWEPT_AFTER
    mailer.sweep()
    mailer.say("two")
    site_deletion.delete("demo", ada, now=START)
    mailer.deliver()
    assert mailer.box.recipients == []
    assert counter_oracle.events() == []
    site_deletion.restore("demo", ada, now=START)
    mailer.say("three")
    mailer.deliver()
    assert mailer.box.recipients == ["ann@example.org"]
    assert "> three\n" in mailer.box.text()


def test_mail_names_the_site_as_its_owner_does(mailer: MailService) -> None:
    site_settings.change("demo", title="Rock & Roll")
    mailer.subscribe("ann@example.org")
    mailer.say("one")
    mailer.deliver()
    assert mailer.box.taken[0][1]["From"].startswith("Rock & Roll <")


def test_one_click_in_the_headers_unsubscribes(mailer: MailService) -> None:
    mailer.subscribe("ann@example.org")
    mailer.say("one")
    mailer.deliver()
    made = mailer.box.taken[0][1]
    assert made["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    link = made["List-Unsubscribe"].strip("<>")
    assert link.startswith(f"{mail_server.PUBLIC}/subscriptions/unsubscribe?token=")
    client = apps.create_app(mailer.settings, mailer.store).test_client()
    path = link.removeprefix(mail_server.PUBLIC)
    assert client.post(path, data={"List-Unsubscribe": "One-Click"}).status_code == 200
    mailer.say("two")
    mailer.deliver()
    assert mailer.told("two") == []
    assert len(mailer.box.taken) == 1


def test_followers_are_mailed_in_pages_and_each_once(
    mailer: MailService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planner, "PAGE", 3)
    emails = [f"a{number}@example.org" for number in range(10)]
    for email in emails:
        mailer.subscribe(email)
    mailer.say("news")
    mailer.now += outbox.SWEPT_AFTER
    sent = [0]
    while mailer.sweep().delivered:
        # Only the next page's job is stored; followers do not get separate events.
        assert len(counter_oracle.events()) <= 1
        sent.append(len(mailer.box.taken))
    assert max(after - before for before, after in itertools.pairwise(sent)) == 3
    assert mailer.told("news") == sorted(emails)
    assert len({made["Message-ID"] for _, made in mailer.box.taken}) == 10


def test_a_follower_with_several_reasons_gets_one_mail_and_none_for_their_own_comment(
    mailer: MailService,
) -> None:
    first = mailer.say("mine", author="g:ann")
    mailer.deliver()
    mailer.subscribe("ann@example.org", author="g:ann", replies=True)
    mailer.subscribe("ann@example.org", author="g:ann")
    mailer.subscribe("bob@example.org", author="g:bob")
    mailer.say("by bob", first.id)
    mailer.say("by ann", first.id, author="g:ann")
    mailer.deliver()
    assert mailer.told("by bob") == ["ann@example.org"]
    assert mailer.told("by ann") == ["bob@example.org"]


def test_a_follower_who_unsubscribed_meanwhile_gets_no_mail(mailer: MailService) -> None:
    first = mailer.say("mine", author="g:ann")
    mailer.deliver()
    mailer.subscribe("ann@example.org", author="g:ann", replies=True)
    ann = mailer.subscribe("ann@example.org", author="g:another", replies=True)
    cid = mailer.subscribe("cid@example.org")
    mailer.say("late", first.id)
    mailer.now += outbox.SWEPT_AFTER
    mailer.sweep()  # Chooses the recipients
    assert len(counter_oracle.events()) == 2
    # Ann ends one subscription, but the other one keeps the address stored.
    subscriptions.unsubscribe(ann, [subscriptions.name_of_replies("demo", "g:ann")], now=START)
    subscriptions.unsubscribe(cid, [subscriptions.name_of_thread(THREAD)], now=START)
    mailer.deliver()
    assert mailer.box.taken == []


@pytest.mark.parametrize("sweeps", [0, 1])
def test_a_comment_retracted_meanwhile_is_not_mailed(mailer: MailService, sweeps: int) -> None:
    mailer.subscribe("ann@example.org")
    row = mailer.say("regretted")
    mailer.now += outbox.SWEPT_AFTER
    for _ in range(sweeps):
        mailer.sweep()
    own_comment.retract(row.id, author_id="g:bob", revision=None, now=START)
    mailer.deliver()
    assert mailer.box.taken == []
    assert counter_oracle.events() == []


def test_a_held_comment_is_mailed_to_moderators_alone(
    mailer: MailService,
) -> None:
    site_settings.change("demo", moderators=["mod@site.example", "two@site.example"])
    mailer.subscribe("ann@example.org")
    _held("waits")
    _held("spam", Status.SPAM)
    mailer.deliver()
    assert mailer.told("waits") == ["mod@site.example", "two@site.example"]
    assert mailer.told("spam") == []
    assert len(mailer.box.taken) == 2
    made = mailer.box.taken[0][1]
    assert made["Subject"] == "New comment awaiting approval"


def test_mail_contains_no_title_or_url_of_a_held_comment(
    store: connection.Store, site: records.Site, box: Box
) -> None:
    mailer = MailService(store, box.settings(), box)
    site_settings.change("demo", moderators=["mod@site.example"])
    moderated_site.policy(Policy.ALL)
    draft = {"title": "Win a prize", "url": "http://localhost:8080/prize"}
    held = sample_threads.post(site, "waits", **draft)  # type: ignore[arg-type]
    mailer.deliver()
    assert "prize" not in mailer.box.taken[0][1].as_string()
    mailer.subscribe("ann@example.org")
    moderated_site.policy(Policy.OFF)
    sample_threads.post(site, "seen", title="A page", now=START + timedelta(minutes=1))
    mailer.deliver()
    assert len(mailer.box.taken) == 2
    assert "prize" not in mailer.box.taken[1][1].as_string()
    assert mailer.box.taken[1][1]["Subject"].endswith('on "A page"')
    decisions.decide("demo", held.id, Verb.APPROVE, moderated_site.ADA, now=START)
    mailer.say("later")
    mailer.deliver()
    assert mailer.box.taken[-1][1]["Subject"].endswith('on "Win a prize"')


def test_edits_and_imports_are_not_mailed(mailer: MailService) -> None:
    mailer.subscribe("ann@example.org")
    row = mailer.say("seen")
    mailer.deliver()
    own_comment.edit(
        row.id,
        author_id="g:bob",
        body="again",
        revision=None,
        settings=sample_threads.SETTINGS,
        now=START,
    )
    text = values.RenderedText("imported", "<p>imported</p>", "html-2")
    node = records.ImportedComment(
        id="a" * 26,
        reply_to=None,
        author=records.Author("Old"),
        body=text.body,
        html=text.html,
        renderer=text.renderer,
        status=Status.APPROVED,
        created=START,
        source="test",
    )
    assert sample_threads.store_imported(THREAD, node) == 1
    mailer.deliver()
    assert len(mailer.box.taken) == 1


def test_mails_per_address_and_day_are_limited(mailer: MailService) -> None:
    mailer.settings = mailer.box.settings(mails_per_day=2)
    mailer.subscribe("ann@example.org")
    for text in ("1", "2", "3"):
        mailer.say(text)
        mailer.deliver()
    assert len(mailer.box.taken) == 2
    mailer.now += timedelta(days=1)
    mailer.say("4")
    mailer.deliver()
    assert mailer.told("4") == ["ann@example.org"]


def test_a_link_leads_to_the_sites_page_or_to_ours(mailer: MailService) -> None:
    mailer.subscribe("ann@example.org")
    row = mailer.say("news")
    mailer.deliver()
    assert f"{mail_server.PUBLIC}/embed/demo?thread=page&around={row.id}#comment-{row.id}" in (
        mailer.box.text()
    )

    def place(url: str) -> None:
        thread = reads.get(comment_rows.thread_key(THREAD))
        thread.url = url
        transactions.apply(ownership.Writes("tests", put=(thread,)))
        thread_cache.COPIES.forget(mailer.store)

    for url, is_ours in (
        ("http://localhost:8080/post", False),
        ('http://localhost:8080/ü"x', True),
        ("https://evil.example/", True),
    ):
        transactions.transaction(lambda url=url: place(url))  # type: ignore[misc]
        row = mailer.say(f"at {len(url)}")
        mailer.deliver()
        ours = f"{mail_server.PUBLIC}/embed/"
        assert (ours in mailer.box.text()) is is_ours
        assert is_ours or f"{url}#comment-{row.id}" in mailer.box.text()
        assert "evil" not in mailer.box.text()


def test_a_page_of_a_long_list_costs_the_same_as_of_a_short_one(
    mailer: MailService, engine: inprocess.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planner, "PAGE", 5)
    for number in range(5):
        mailer.subscribe(f"a{number}@example.org")

    def reads() -> int:
        mailer.say("news")
        mailer.now += outbox.SWEPT_AFTER
        mailer.sweep()
        with testing.meter(engine) as cost:
            mailer.sweep()  # Sends the first page
        assert len(mailer.box.taken) % 5 == 0
        drops = [outbox.drop_writes(row) for row in outbox.read(counter_oracle.events())]
        transactions.transaction(lambda: transactions.apply(*drops))
        return cost.reads

    short = reads()
    # Readers who follow without mail are members of the same set.
    set_compaction.load(
        thread_followers.set_of(THREAD), (f"~{number:06d}" for number in range(30_000))
    )
    assert thread_followers.count(THREAD).all == 30_005
    assert reads() <= short + 4
    assert len(mailer.box.taken) == 10


def test_the_stored_names_of_mail_jobs_are_stable() -> None:
    # The name is part of the event's id, so a different name would send pending mail a second time.
    jobs: list[mail_jobs.MailJob] = [
        mail_jobs.ConfirmationMail("link"),
        mail_jobs.LoginMail("link"),
        mail_jobs.InvitationMail("link"),
        mail_jobs.ReplyMail("e.1", "g:a", ["b"]),
        mail_jobs.FollowerMail("e.1", []),
        mail_jobs.RepeatedMail("e.1", "b"),
        mail_jobs.HeldCommentMail("e.1"),
    ]
    words = ["asked", "entering", "invited", "replied", "followed", "again", "held"]
    assert [mail_jobs.tag(each) for each in jobs] == words
    assert [mail_jobs.decode(mail_jobs.encode(each)) for each in jobs] == jobs
    assert all(
        f'"type":"{word}"' in mail_jobs.encode(each) for each, word in zip(jobs, words, strict=True)
    )
