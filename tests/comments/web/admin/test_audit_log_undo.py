"""Moderators can undo bans, thread locks and policies from a site's audit log."""

import re
from datetime import UTC, datetime

from comments.domain import records
from comments.domain.records import Policy, Status, Verb
from comments.events import audit_log, dispatcher
from comments.moderation import decisions
from comments.moderation.policy import policy_changes, rulebook, rules, thread_overrides
from comments.sites import site_settings
from comments.upkeep import wiring
from tests.support import stored_state
from tests.support.people.console_browser import Desk
from tests.support.threads import sample_threads

ADA = records.Actor("cli", "Ada")
EVE = records.Author("Eve", id="g:eve")


def now() -> datetime:
    return datetime.now(UTC)


def _undo(desk: Desk, verb: str, status: int = 303) -> str:
    entry = next(each for each in audit_log.log("demo") if each.verb == verb)
    return desk.settle("/log", entry=entry.id, status=status)


def test_a_ban_is_undone_from_the_log_and_its_hidden_comments_on_the_authors_page(
    desk: Desk, site: records.Site
) -> None:
    row = sample_threads.post(site, "text", author=EVE)
    desk.settle("/bans?id=g%3Aeve", act="ban", days="7", hide="on")
    assert "Undo" in desk.page("/log")
    _undo(desk, "ban")
    assert rulebook.from_store("demo").bans == ()
    assert audit_log.log("demo")[0].verb == "unban"
    _undo(desk, "ban", status=409)  # The ban is no longer in effect
    _settle_events()
    assert "Restore hidden comments" in desk.page("/author?id=g%3Aeve")
    desk.settle("/bans?id=g%3Aeve", act="restore")
    assert decisions.case("demo", row.id).comment.status is Status.APPROVED
    _undo(desk, "unban")  # Restores the lifted ban with its end date
    ban = rulebook.from_store("demo").ban_of("g:eve", now())
    assert ban is not None
    assert ban.until is not None
    _settle_events()
    stored_state.assert_sums()


def test_undoing_a_ban_restores_the_ban_it_replaced(desk: Desk, site: records.Site) -> None:
    sample_threads.post(site, "text", author=EVE)
    policy_changes.ban("demo", "g:eve", ADA, now=now(), is_shadow=True)
    policy_changes.ban("demo", "g:eve", ADA, now=now())
    _undo(desk, "ban")
    ban = rulebook.from_store("demo").ban_of("g:eve", now())
    assert ban is not None
    assert ban.is_shadow
    assert audit_log.log("demo")[0].verb == "ban"


def test_a_closed_thread_is_reopened_from_the_log(desk: Desk, site: records.Site) -> None:
    sample_threads.post(site, "text")
    desk.settle("/thread/state?thread=page", state="closed", policy="all")
    _undo(desk, "set-thread")
    found = next(iter(stored_state.rows("Thread")))
    assert found.properties["state"].string_value == "open"
    assert found.properties["policy"].string_value == ""
    _undo(desk, "set-thread")  # The undo is itself an entry
    assert next(iter(stored_state.rows("Thread"))).properties["policy"].string_value == "all"
    # The page cannot find an entry about a different site's thread.
    blog = site_settings.add(
        "blog", [], scheme=sample_threads.SETTINGS.scheme, now=sample_threads.START
    )
    sample_threads.post(blog, "text")
    policy_changes.set_thread(
        records.ThreadName("blog", "page"), ADA, now=now(), state=records.ThreadState.CLOSED
    )
    desk.settle("/log", entry=audit_log.log("blog")[0].id, status=404)


def test_only_owners_undo_a_policy(desk: Desk, owner: Desk) -> None:
    owner.settle("/settings/policy", policy="first", close_after="9", reports="5")
    assert "Undo</button>" not in desk.page("/log")
    _undo(desk, "set-policy", status=403)
    assert rulebook.from_store("demo").policy is Policy.FIRST
    _undo(owner, "set-policy")
    book = rulebook.from_store("demo")
    assert (book.policy, book.close_after, book.reports) == (Policy.OFF, 0, 3)
    owner.settle("/settings/policy", policy="all", close_after="0", reports="3")
    first = audit_log.log("demo")[-1].id
    owner.settle("/log", entry=first, status=409)


def test_a_rule_is_not_undone_from_the_log(desk: Desk, site: records.Site) -> None:
    form = {"action": "hold", "networks": "203.0.113.0/24"}
    desk.settle("/rules", act="put", id="r", **form)  # type: ignore[arg-type]
    entry = audit_log.log("demo")[0]
    assert "203.0.113" not in repr(entry)
    assert "Undo</button>" not in desk.page("/log")
    desk.settle("/log", entry=entry.id, status=409)


def _settle_events() -> None:
    events = [stored_state.name_of(each) for each in stored_state.rows("Event")]
    dispatcher.deliver(events, now=now(), handlers=wiring.HANDLERS)


def test_the_log_names_every_decision_and_what_it_changed(desk: Desk, site: records.Site) -> None:
    row = sample_threads.post(site, "text", author=EVE)
    for verb in (Verb.PIN, Verb.UNPIN, Verb.HOLD, Verb.RESTORE, Verb.SPAM):
        decisions.decide("demo", row.id, verb, ADA, now=now())
    policy_changes.set_policy("demo", ADA, now=now(), policy=Policy.ALL, reports=5)
    rule = rules.Rule("bets", rules.Action.SHADOW, links=1)
    policy_changes.put_rule("demo", rule, ADA, now=now())
    name = records.ThreadName("demo", "page")
    policy_changes.set_thread(
        name, ADA, now=now(), state=records.ThreadState.CLOSED, policy=Policy.OFF
    )
    thread_overrides.change_details(
        site, "page", thread_overrides.NewDetails("Cats"), ADA, now=now()
    )
    until = datetime(2099, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
    policy_changes.ban("demo", "g:eve", ADA, now=now(), until=until)
    act = audit_log.Act(ADA, "set-site")
    noted = audit_log.Noted(act, now())
    site_settings.change("demo", cdn_seconds=9, freshness=3, noted=noted)
    page = re.sub(r"<[^>]*>", "|", desk.page("/log"))
    for done, change in (
        ("Pinned", "→ Pinned"), ("Unpinned", "Pinned →"),
        ("Held for review", "Approved → Pending"), ("Marked as spam", "Approved → Spam"),
        ("Changed moderation", "Hold everything, threads stay open, 5 reports hold a comment"),
        ("Saved rule", "→ Show only to its author"),
        ("Changed thread", "Open → Locked, Publish at once"),
        ("Changed thread details", "set by moderators: title"),
        ("Banned", "→ banned until January 2, 2099, 3:04"),
        ("Changed settings", "→ CDN cache time, server cache time"),
    ):  # fmt: skip
        assert f"|{done}|" in page
        assert change in page
    for subject in ("|Rule “bets”|", "|Thread page|", "|Site|", "|Author|", "|Comment|"):
        assert subject in page
