"""Screening applies policies, rules and trust to new and edited texts, at a limited cost."""

from datetime import timedelta

import pytest

from comments import config, errors
from comments.domain import records
from comments.domain.ids import sorthash
from comments.domain.records import Policy, Status, ThreadState, Verb
from comments.events import audit_log
from comments.moderation import bans, decisions
from comments.moderation.policy import policy_changes
from comments.moderation.policy.rules import Action
from comments.posting import own_comment
from comments.sites import site_settings
from comments.upkeep.integrity import repair
from datastore_emulator import inprocess, testing
from tests.support import stored_state
from tests.support.threads import moderated_site, sample_threads

pytestmark = pytest.mark.usefixtures("store", "site")


def test_a_held_comment_has_a_place_and_appears_there_when_approved(site: records.Site) -> None:
    first = moderated_site.post(site, "first")
    moderated_site.policy(Policy.ALL)
    held = moderated_site.post(site, "held", parent=first.id)
    assert (held.status, held.number, held.listed) == (Status.PENDING, 1, False)
    moderated_site.policy(Policy.OFF)
    moderated_site.post(site, "later", parent=first.id)
    assert sample_threads.listed(site) == ["first", "later"]
    with pytest.raises(errors.NotFound):
        moderated_site.post(site, "answer", parent=held.id)
    moderated_site.approve(held)
    assert sample_threads.listed(site) == ["first", "held", "later"]
    moderated_site.settle()
    stored_state.assert_sums()
    assert repair.find_problems(sample_threads.SETTINGS.scheme, moderated_site.NAME) == []


def test_a_new_author_is_held_until_a_comment_is_approved(site: records.Site) -> None:
    moderated_site.policy(Policy.FIRST)
    first = moderated_site.post(site, "one")
    assert first.status is Status.PENDING
    assert moderated_site.case(first).why == "the author is new here"
    assert moderated_site.post(site, "two").status is Status.PENDING
    moderated_site.approve(first)
    assert moderated_site.post(site, "three").status is Status.APPROVED
    assert moderated_site.post(site, "four", thread="other").status is Status.APPROVED
    assert moderated_site.post(site, "five", "bob").status is Status.PENDING


def test_trust_belongs_to_the_author_id_and_not_to_a_name_or_address(site: records.Site) -> None:
    """A second guest with the same name, e-mail address and website is not trusted."""
    author = records.Author("Ann", "https://ann.example", "ann@example.org", "g:ann")
    sample_threads.post(site, "known", author=author)
    moderated_site.settle()
    moderated_site.policy(Policy.FIRST)
    assert sample_threads.post(site, "more", author=author).status is Status.APPROVED
    for stranger in ("", "g:stranger"):
        posing = records.Author("Ann", "https://ann.example", "ann@example.org", stranger)
        assert sample_threads.post(site, f"by {stranger}", author=posing).status is Status.PENDING


def test_approval_on_another_site_does_not_count(site: records.Site) -> None:
    other = site_settings.add(
        "other", ["https://o.example"], scheme=sorthash.Scheme(), now=moderated_site.NOW
    )
    moderated_site.post(other, "known")
    moderated_site.settle()
    moderated_site.policy(Policy.FIRST)
    assert moderated_site.post(site, "here").status is Status.PENDING


def test_staff_of_the_site_need_no_approval_unless_they_are_banned(site: records.Site) -> None:
    moderated_site.policy(Policy.ALL)
    moderated_site.rule(Action.REJECT, words=["first"])
    staff = records.Author("Ada", id="a:ada", is_staff=True)
    comment = sample_threads.post(site, "first", author=staff)
    assert comment.status is Status.APPROVED
    assert moderated_site.edit(comment, "first again").status is Status.APPROVED
    with pytest.raises(errors.Forbidden):
        moderated_site.post(site, "first")
    bans.ban(
        "demo",
        "a:ada",
        bans.BanScope(),
        moderated_site.ADA,
        secret=sample_threads.SETTINGS.secret,
        now=moderated_site.NOW,
    )
    with pytest.raises(errors.Forbidden):
        sample_threads.post(site, "second", author=staff)


@pytest.mark.parametrize("body", ["<https://a.example>", "[a](https://a.example)", "www.a.example"])
def test_the_policy_links_holds_comments_with_links(site: records.Site, body: str) -> None:
    moderated_site.policy(Policy.LINKS)
    assert moderated_site.post(site, body).status is Status.PENDING
    assert moderated_site.post(site, "none").status is Status.APPROVED


def test_an_approved_comment_that_is_edited_to_contain_a_link_is_held_again(
    site: records.Site,
) -> None:
    reply = moderated_site.post(
        site, "an answer", "bob", parent=moderated_site.post(site, "fine").id
    )
    moderated_site.policy(Policy.LINKS)
    row = moderated_site.case(reply).comment
    linked = moderated_site.edit(row, "now https://spam.example")
    assert (linked.status, linked.listed) == (Status.PENDING, False)
    assert moderated_site.case(row).stood is Status.APPROVED
    assert sample_threads.listed(site) == ["fine"]
    moderated_site.approve(linked)
    # Authors may edit a comment that was approved with a link but may not add a new link.
    assert moderated_site.edit(linked, "well, https://spam.example").status is Status.APPROVED
    assert (
        moderated_site.edit(linked, "https://spam.example https://more.example").status
        is Status.PENDING
    )
    moderated_site.settle()
    stored_state.assert_sums()


@pytest.mark.parametrize(
    ("action", "status"),
    [(Action.HOLD, Status.PENDING), (Action.SPAM, Status.SPAM), (Action.SHADOW, Status.SHADOWED)],
)
def test_rules_run_on_create_and_edit_and_are_named_with_a_reason(
    site: records.Site, action: Action, status: Status
) -> None:
    moderated_site.rule(action, words=("casino",))
    held = moderated_site.post(site, "my casino")
    edited = moderated_site.edit(moderated_site.post(site, "fine"), "your casino")
    for row in (held, edited):
        case = moderated_site.case(row)
        assert (case.comment.status, case.rule) == (status, "rule:r")
        assert case.why == 'the text contains "casino"'
    assert sample_threads.listed(site) == []


def test_a_rejecting_rule_stores_nothing_and_keeps_the_earlier_text(
    site: records.Site,
) -> None:
    row = moderated_site.post(site, "fine")
    moderated_site.rule(Action.REJECT, words=("casino",))
    stored = list(map(str, stored_state.rows("Comment")))
    with pytest.raises(errors.Forbidden) as refused:
        moderated_site.post(site, "my casino")
    assert refused.value.code == "comment-refused"
    with pytest.raises(errors.Forbidden):
        moderated_site.edit(row, "my casino")
    assert list(map(str, stored_state.rows("Comment"))) == stored
    assert stored_state.roots() == {"demo/page": 1}


def test_an_edit_never_makes_a_comment_more_visible(site: records.Site) -> None:
    moderated_site.rule(Action.SPAM, words=("casino",))
    spam = moderated_site.post(site, "casino")
    assert moderated_site.edit(spam, "harmless").status is Status.SPAM
    hidden = moderated_site.post(site, "fine")
    decisions.decide("demo", hidden.id, Verb.HIDE, moderated_site.ADA, now=moderated_site.NOW)
    with pytest.raises(errors.Conflict) as refused:
        moderated_site.edit(hidden, "better")
    assert refused.value.code == "comment-removed"


def test_a_new_author_is_held_until_the_author_is_old_enough(site: records.Site) -> None:
    moderated_site.rule(Action.HOLD, younger_than=2)
    first = sample_threads.post(site, "first", author=records.Author("Ann"))
    assert (first.status, moderated_site.case(first).rule) == (Status.PENDING, "rule:r")
    later = [
        sample_threads.post(
            site,
            f"after {days}",
            author=first.author,
            now=moderated_site.NOW + timedelta(days=days),
        )
        for days in (1, 2)
    ]
    assert [row.status for row in later] == [Status.PENDING, Status.APPROVED]
    for since, status in ((1, Status.PENDING), (2, Status.APPROVED), (None, Status.APPROVED)):
        who = records.Author("Bob", id="a:bob")
        known = None if since is None else moderated_site.NOW - timedelta(days=since)
        assert sample_threads.post(site, f"{since}", author=who, since=known).status is status
    edited = own_comment.edit(
        later[1].id, author_id=first.author.id, body="edited", revision=None,
        settings=sample_threads.SETTINGS, now=moderated_site.NOW + timedelta(days=2, minutes=1),
    )  # fmt: skip
    assert edited.status is Status.APPROVED


def test_a_retry_returns_the_first_posts_comment(site: records.Site) -> None:
    key = "0123456789abcdef"
    first = moderated_site.post(site, "text", key=key)
    moderated_site.policy(Policy.ALL)
    moderated_site.rule(Action.REJECT, words=("text",))
    policy_changes.ban("demo", "g:ann", moderated_site.ADA, now=moderated_site.NOW)
    assert moderated_site.post(site, "text", key=key) == first


@pytest.mark.parametrize("policy", [Policy.CLOSED, Policy.READ_ONLY])
def test_a_closed_site_refuses_posts_and_allows_retractions(
    site: records.Site, policy: Policy
) -> None:
    row = moderated_site.post(site, "text")
    moderated_site.policy(policy)
    with pytest.raises(errors.Conflict):
        moderated_site.post(site, "more")
    if policy is Policy.READ_ONLY:
        with pytest.raises(errors.Conflict) as refused:
            moderated_site.edit(row, "other")
        assert refused.value.code == "read-only"
    else:
        assert moderated_site.edit(row, "other").body == "other"
    own_comment.retract(row.id, author_id="g:ann", revision=None, now=moderated_site.NOW)
    assert sample_threads.listed(site) == []


def test_a_thread_closes_by_age(site: records.Site) -> None:
    moderated_site.policy(close_after=7)
    moderated_site.post(site, "first", now=moderated_site.NOW)
    moderated_site.post(site, "in time", now=moderated_site.NOW + timedelta(days=7))
    with pytest.raises(errors.Conflict) as refused:
        moderated_site.post(site, "late", now=moderated_site.NOW + timedelta(days=7, seconds=1))
    assert refused.value.code == "thread-closed"
    moderated_site.post(
        site, "elsewhere", thread="other", now=moderated_site.NOW + timedelta(days=8)
    )


def test_a_threads_own_policy_overrides_its_sites(site: records.Site) -> None:
    moderated_site.post(site, "first")
    moderated_site.policy(Policy.ALL)
    policy_changes.set_thread(
        moderated_site.NAME, moderated_site.ADA, now=moderated_site.NOW, policy=Policy.OFF
    )
    assert moderated_site.post(site, "free").status is Status.APPROVED
    assert moderated_site.post(site, "held", thread="other").status is Status.PENDING
    policy_changes.set_thread(
        moderated_site.NAME, moderated_site.ADA, now=moderated_site.NOW, policy=Policy.FIRST
    )
    assert moderated_site.post(site, "stranger", "bob").status is Status.PENDING
    assert moderated_site.post(site, "known").status is Status.APPROVED
    policy_changes.set_thread(
        moderated_site.NAME, moderated_site.ADA, now=moderated_site.NOW, inherits=True
    )
    assert moderated_site.post(site, "held").status is Status.PENDING
    with pytest.raises(errors.NotFound):
        policy_changes.set_thread(
            records.ThreadName("demo", "nowhere"), moderated_site.ADA, now=moderated_site.NOW
        )


def test_a_locked_thread_refuses_posts_until_it_is_opened(site: records.Site) -> None:
    moderated_site.post(site, "first")
    policy_changes.set_thread(
        moderated_site.NAME, moderated_site.ADA, now=moderated_site.NOW, state=ThreadState.CLOSED
    )
    with pytest.raises(errors.Conflict):
        moderated_site.post(site, "second")
    policy_changes.set_thread(
        moderated_site.NAME, moderated_site.ADA, now=moderated_site.NOW, state=ThreadState.OPEN
    )
    policy_changes.set_thread(
        moderated_site.NAME, moderated_site.ADA, now=moderated_site.NOW, state=ThreadState.OPEN
    )
    moderated_site.post(site, "second")
    found = audit_log.log("demo", subject="thread:demo/page")
    said = {(each.before, each.after) for each in found}
    assert said == {("open", "closed"), ("closed", "open")}


# --- Costs


def test_the_cost_of_a_post_with_policy_and_rules(
    engine: inprocess.Engine, site: records.Site
) -> None:
    """A post at any depth needs five reads (six if nothing else decides) and five writes.

    A rule about repeated texts adds one read and one write before the post.
    """
    site = sample_threads.shaped(site, sorthash.Scheme(levels=2))
    settings = config.Settings(secret="x" * 20)
    root = moderated_site.post(site, "root", settings=settings)
    reply = moderated_site.post(site, "reply", parent=root.id, settings=settings)
    moderated_site.settle()
    moderated_site.policy(Policy.FIRST)
    moderated_site.rule(repeated=5, approved_under=1, words=("casino",), younger_than=9)
    policy_changes.ban("demo", "g:cid", moderated_site.ADA, now=moderated_site.NOW)
    moderated_site.post(site, "warm", settings=settings)
    for parent, most in ((None, 5), (root.id, 5), (reply.id, 5)):
        with testing.meter(engine) as cost:
            moderated_site.post(site, f"below {parent}", parent=parent, settings=settings)
        assert cost.reads <= most + 2
        assert cost.writes <= 6
    with testing.meter(engine) as newcomer:
        sample_threads.post(site, "new", root.id, author=records.Author("new"), settings=settings)
    assert newcomer.reads <= 5  # A first-time author has no row to read


def test_without_a_policy_nothing_is_read_for_it(
    engine: inprocess.Engine, site: records.Site
) -> None:
    root = moderated_site.post(site, "root")
    moderated_site.rule(words=("casino",), links=3)
    moderated_site.post(site, "warm", parent=root.id)
    with testing.meter(engine) as cost:
        moderated_site.post(site, "reply", parent=root.id)
    assert (cost.reads, cost.writes) == (4, 5)


def test_an_author_known_in_the_discussion_is_trusted_without_a_read(
    engine: inprocess.Engine, site: records.Site
) -> None:
    root = moderated_site.post(site, "root")
    moderated_site.policy(Policy.FIRST)
    moderated_site.post(site, "warm", parent=root.id)
    with testing.meter(engine) as cost:
        assert moderated_site.post(site, "reply", parent=root.id).status is Status.APPROVED
    assert (cost.reads, cost.writes) == (4, 5)
