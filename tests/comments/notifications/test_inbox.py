"""An inbox contains exactly the unread replies of others that readers see."""

import itertools
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from comments.domain import records
from comments.domain.records import Status, Verb
from comments.events import dispatcher, outbox
from comments.moderation import decisions
from comments.notifications import inbox
from comments.posting import own_comment
from comments.sites import site_settings
from comments.store import connection, reads
from comments.store.large_sets import membership, set_compaction, set_search
from comments.upkeep import scheduler, wiring
from datastore_emulator import inprocess, testing
from tests.support.histories import counter_oracle
from tests.support.threads import moderated_site, sample_threads

NOW = sample_threads.START
ADA = sample_threads.ADA
_MINUTES = itertools.count(1)


@pytest.fixture
def talkative(store: connection.Store, site: records.Site) -> records.Site:
    return site_settings.change(site.id, options={"inbox": True})


def say(site: records.Site, who: str, to: records.Comment | None = None) -> records.Comment:
    """Post a comment, each a minute after the one before."""
    now = NOW + timedelta(minutes=next(_MINUTES))
    parent = None if to is None else to.id
    who = who if ":" in who else f"g:{who}"
    author = records.Author(who, id=who)
    return sample_threads.post(site, f"{who} {now}", parent, author=author, now=now)


def decide(comment: records.Comment, verb: Verb) -> None:
    now = NOW + timedelta(minutes=next(_MINUTES))
    decisions.decide("demo", comment.id, verb, ADA, now=now)


def deliver(*events: str) -> None:
    found = events or counter_oracle.events()
    later = NOW + timedelta(days=9)
    done = dispatcher.deliver(found, now=later, handlers=wiring.HANDLERS)
    assert done.failed == 0


def unread(author: str = "g:ann", site: str = "demo") -> list[str]:
    found = inbox.unread(site, author, limit=200, cursor=None, secret="s")
    assert found.unread == len(found.replies)
    return [each.comment.id for each in found.replies]


def test_replies_of_others_are_unread_newest_first(talkative: records.Site) -> None:
    first = say(talkative, "ann")
    bob = say(talkative, "bob", first)
    say(talkative, "cid")
    cid = say(talkative, "cid", first)
    say(talkative, "ann", first)
    below = say(talkative, "dan", bob)
    deliver()
    assert unread() == [cid.id, bob.id]
    assert unread("g:bob") == [below.id]
    assert unread("g:dan") == []


def test_a_site_without_the_option_keeps_no_inbox_and_pays_nothing(
    store: connection.Store, site: records.Site, engine: inprocess.Engine
) -> None:
    first = say(site, "ann")
    deliver()
    say(site, "bob", first)
    found = [
        outbox.Event("a.1", outbox.EventKind.POSTED, event.changes)
        for event in map(outbox.record, outbox.read(counter_oracle.events()))
    ]
    with testing.meter(engine) as cost:
        assert inbox.event_writes(found).keys == ()
    assert (cost.reads, cost.empty) == (0, 0)
    deliver()
    assert set_search.stored_texts() == []


def test_imported_authors_have_no_inbox_and_imports_fill_none(talkative: records.Site) -> None:
    name = sample_threads.name_of(talkative)
    one = sample_threads.node("one", author="i:imported")
    own = sample_threads.node("own", author="g:ann")
    answer = sample_threads.node("answer", "own", author="g:bob")
    sample_threads.store_imported(name, one, own, answer)
    deliver()
    sample_threads.post(talkative, "reply", one.id, now=NOW)
    deliver()
    assert set_search.stored_texts() == []
    assert unread("i:imported") == unread() == []


def test_a_held_reply_enters_the_inbox_with_its_approval(talkative: records.Site) -> None:
    first = say(talkative, "ann")
    deliver()
    moderated_site.policy(records.Policy.ALL)
    held = say(talkative, "bob", first)
    assert held.status is Status.PENDING
    deliver()
    assert unread() == []
    decide(held, Verb.APPROVE)
    deliver()
    assert unread() == [held.id]


@pytest.mark.parametrize("verb", [Verb.REJECT, Verb.SPAM, Verb.HIDE, Verb.HOLD])
def test_a_reply_that_readers_no_longer_see_leaves_the_inbox(
    talkative: records.Site, verb: Verb
) -> None:
    first = say(talkative, "ann")
    reply = say(talkative, "bob", first)
    deliver()
    decide(reply, verb)
    assert unread() == []  # Even before the event is delivered
    deliver()
    assert list(membership.every(inbox.set_of("demo", "g:ann"), limit=9)) == []
    decide(reply, Verb.RESTORE)
    deliver()
    assert unread() == [reply.id]


def test_a_retracted_reply_leaves_the_inbox(talkative: records.Site) -> None:
    reply = say(talkative, "bob", say(talkative, "ann"))
    deliver()
    own_comment.retract(reply.id, author_id="g:bob", revision=None, now=NOW)
    assert unread() == []
    deliver()
    assert inbox.comments_in("demo", "g:ann") == []


def test_a_retracted_reply_to_oneself_writes_no_mark(talkative: records.Site) -> None:
    own = say(talkative, "ann", say(talkative, "ann"))
    own_comment.retract(own.id, author_id="g:ann", revision=None, now=NOW)
    deliver()
    assert set_search.stored_texts() == []


def test_a_retracted_reply_to_a_retracted_comment_is_neither_shown_nor_counted(
    talkative: records.Site,
) -> None:
    first = say(talkative, "ann")
    reply, other = say(talkative, "bob", first), say(talkative, "cid", first)
    deliver()
    own_comment.retract(first.id, author_id="g:ann", revision=None, now=NOW)
    deliver()
    assert unread() == [other.id, reply.id]
    # The answered comment no longer names its author, so the event does not find the inbox.
    own_comment.retract(reply.id, author_id="g:bob", revision=None, now=NOW)
    deliver()
    assert unread() == [other.id]


def test_replies_marked_as_read_leave_the_inbox(talkative: records.Site) -> None:
    first = say(talkative, "ann")
    replies = [say(talkative, "bob", first).id for _ in range(6)]
    deliver()
    assert inbox.mark_some("demo", "g:ann", {replies[1], replies[4], first.id, "a" * 26}) == 2
    assert unread() == [replies[5], replies[3], replies[2], replies[0]]
    assert inbox.mark_some("demo", "g:ann", {replies[1]}) == 0
    assert inbox.mark_until("demo", "g:ann", replies[2]) == 2
    assert unread() == [replies[5], replies[3]]
    assert inbox.mark_until("demo", "g:ann", replies[4]) == 1
    assert inbox.mark_all("demo", "g:ann") == 1
    assert unread() == []
    assert inbox.mark_all("demo", "g:ann") == 0


def test_a_late_event_does_not_return_a_reply_that_was_read(talkative: records.Site) -> None:
    """The late event showed the reply first; later decisions hid it and showed it again."""
    reply = say(talkative, "bob", say(talkative, "ann"))
    posted = f"{reply.id}.1"
    decide(reply, Verb.HIDE)
    decide(reply, Verb.RESTORE)
    hidden, *others = (each for each in counter_oracle.events() if each != posted)
    deliver(hidden, *others)
    assert unread() == [reply.id]
    inbox.mark_all("demo", "g:ann")
    deliver(posted)
    assert unread() == []


def test_a_late_event_removes_a_reply_that_was_hidden_twice(talkative: records.Site) -> None:
    reply = say(talkative, "bob", say(talkative, "ann"))
    deliver()
    decide(reply, Verb.HIDE)
    (first,) = counter_oracle.events()
    decide(reply, Verb.REJECT)
    deliver(*(each for each in counter_oracle.events() if each != first))
    deliver(first)
    assert inbox.comments_in("demo", "g:ann") == []


def test_a_delivery_whose_answer_was_lost_does_not_return_a_reply(
    talkative: records.Site,
) -> None:
    reply = say(talkative, "bob", say(talkative, "ann"))
    events = counter_oracle.events()
    deliver(*events)
    assert inbox.mark_all("demo", "g:ann") == 1
    deliver(*events)
    assert unread() == []
    decide(reply, Verb.HIDE)
    decide(reply, Verb.RESTORE)
    deliver()
    assert unread() == [reply.id]  # A new decision is news


def test_the_newest_replies_are_shown_and_a_compaction_drops_the_others(
    talkative: records.Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbox, "MOST", 3)
    monkeypatch.setattr(membership, "MARKS", 1)  # Every mark requests a compaction.
    first = say(talkative, "ann")
    replies = [say(talkative, "bob", first).id for _ in range(5)]
    deliver()
    name = inbox.set_of("demo", "g:ann")
    assert set_search.sets_to_compact() == [name]
    assert unread() == replies[:1:-1]
    assert inbox.comments_in("demo", "g:ann") == replies[::-1]
    assert scheduler.Scheduler().round([name]).compacted == 1
    assert inbox.comments_in("demo", "g:ann") == unread() == replies[:1:-1]
    inbox.mark_some("demo", "g:ann", {replies[4]})
    assert unread() == [replies[3], replies[2]]


def test_pages_follow_each_other(talkative: records.Site) -> None:
    first = say(talkative, "ann")
    replies = [say(talkative, "bob", first).id for _ in range(5)]
    deliver()
    found: list[str] = []
    cursor: str | None = None
    for left in (3, 1, 0):
        page = inbox.unread("demo", "g:ann", limit=2, cursor=cursor, secret="s")
        assert page.unread == 5
        found += [each.comment.id for each in page.replies]
        cursor = page.cursor
        assert (cursor is None) == (not left)
    assert found == replies[::-1]


def test_each_author_has_an_inbox_on_each_site(talkative: records.Site) -> None:
    site_settings.add("blog", ["https://b.example"], scheme=talkative.scheme, now=NOW)
    other = site_settings.change("blog", options={"inbox": True})
    reply = say(talkative, "bob", say(talkative, "a:1"))
    elsewhere = say(other, "bob", say(other, "a:1"))
    deliver()
    assert unread("a:1") == [reply.id]
    assert unread("a:1", "blog") == [elsewhere.id]


def test_an_erased_inbox_leaves_no_row_and_late_events_do_not_fill_it(
    talkative: records.Site,
) -> None:
    first = say(talkative, "ann")
    for _ in range(3):
        say(talkative, "bob", first)
    deliver()
    set_compaction.compact(inbox.set_of("demo", "g:ann"))
    say(talkative, "cid", first)
    deliver()
    say(talkative, "late", first)
    own_comment.retract(first.id, author_id="g:ann", revision=None, now=NOW)
    inbox.erase("demo", "g:ann")
    deliver()
    for kind in ("FollowerList", "FollowerMark", "FollowerSegment"):
        assert list(reads.fetch(reads.Query(kind, keys_only=True))) == []


def test_the_stored_names_never_change() -> None:
    assert inbox.set_of("demo", "g:ann").text == "inbox:demo/g:ann"
    created = datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)
    assert inbox._member(created, "a" * 26) == f"8232676954321098{'a' * 26}"


def test_a_reply_bills_four_more_reads_and_one_more_write(
    talkative: records.Site, engine: inprocess.Engine
) -> None:
    costs = []
    first = say(talkative, "ann")
    say(talkative, "bob")
    deliver()
    for is_on in (True, False):
        site_settings.change("demo", options={"inbox": is_on})
        site_settings.get("demo")
        say(talkative, "bob", first)
        with testing.meter(engine) as cost:
            deliver()
        costs.append(cost)
    on, off = costs
    assert (on.reads - off.reads, on.writes - off.writes) == (4, 1)


def test_the_calls_bill_what_the_documentation_says(
    talkative: records.Site, engine: inprocess.Engine
) -> None:
    """The section "The inbox" in docs/costs.md has these numbers; threads are in the cache."""

    def cost(call: Callable[[], object]) -> tuple[int, int]:
        with testing.meter(engine) as cost:
            call()
        return cost.reads, cost.writes + cost.deletes

    first = say(talkative, "ann")
    deliver()
    assert cost(unread) == (1, 0)
    replies = [say(talkative, "bob", first).id for _ in range(5)]
    deliver()
    unread()
    assert cost(unread) == (2 + 5, 0)
    assert cost(lambda: inbox.mark_some("demo", "g:ann", {replies[0]})) == (2 + 2, 1)
    assert cost(unread) == (3 + 4, 0)
    assert cost(lambda: inbox.mark_all("demo", "g:ann")) == (3 + 1 + 4, 4)
    more = [say(talkative, "bob", first).id for _ in range(3)]
    deliver()
    assert set_compaction.compact(inbox.set_of("demo", "g:ann"), most=inbox.MOST)
    assert cost(unread) == (2 + 3, 0)
    inbox.mark_until("demo", "g:ann", more[0])
    say(talkative, "bob", first)
    deliver()
    assert cost(unread) == (4 + 3, 0)
