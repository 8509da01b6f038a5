"""Claims about what becomes of texts on their way in: policies, rules, trust, and costs."""

from datetime import timedelta

import pytest

from comments import config, errors
from comments.domain import records, sorthash
from comments.domain.records import Policy, Status, ThreadState, Verb
from comments.events import audit_log
from comments.jobs import repair
from comments.moderation import decisions, policy_changes
from comments.moderation.rules import Action
from comments.posting import submission
from comments.sites import site_settings
from emulator import inprocess, testing
from tests import trees
from tests.comments import ruled, stocktaking

pytestmark = pytest.mark.usefixtures("store", "site")


def test_what_is_held_has_its_place_and_appears_in_it(site: records.Site) -> None:
    first = ruled.post(site, "first")
    ruled.policy(Policy.ALL)
    held = ruled.post(site, "held", parent=first.id)
    assert (held.status, held.number, held.listed) == (Status.PENDING, 1, False)
    ruled.policy(Policy.OFF)
    ruled.post(site, "later", parent=first.id)
    assert trees.listed(site) == ["first", "later"]
    with pytest.raises(errors.NotFound):
        ruled.post(site, "answer", parent=held.id)
    ruled.approve(held)
    assert trees.listed(site) == ["first", "held", "later"]
    ruled.settle()
    stocktaking.check_sums()
    assert repair.find_problems(trees.SETTINGS.scheme, ruled.NAME) == []


def test_a_newcomer_is_held_until_one_of_his_comments_is_approved(site: records.Site) -> None:
    ruled.policy(Policy.FIRST)
    first = ruled.post(site, "one")
    assert first.status is Status.PENDING
    assert ruled.case(first).why == "the author's first"
    assert ruled.post(site, "two").status is Status.PENDING
    ruled.approve(first)
    assert ruled.post(site, "three").status is Status.APPROVED
    assert ruled.post(site, "four", thread="other").status is Status.APPROVED
    assert ruled.post(site, "five", "bob").status is Status.PENDING


def test_trust_is_the_authors_and_not_his_names_or_address(site: records.Site) -> None:
    """The same name, mail and website, typed by somebody else, are trusted as little as any."""
    author = records.Author("Ann", "https://ann.example", "ann@example.org", "g:ann")
    trees.post(site, "known", author=author)
    ruled.settle()
    ruled.policy(Policy.FIRST)
    assert trees.post(site, "more", author=author).status is Status.APPROVED
    for stranger in ("", "g:stranger"):
        posing = records.Author("Ann", "https://ann.example", "ann@example.org", stranger)
        assert trees.post(site, f"by {stranger}", author=posing).status is Status.PENDING


def test_approved_elsewhere_is_not_approved_here(site: records.Site) -> None:
    other = site_settings.add(
        "other", ["https://o.example"], scheme=sorthash.Scheme(), now=ruled.NOW
    )
    ruled.post(other, "known")
    ruled.settle()
    ruled.policy(Policy.FIRST)
    assert ruled.post(site, "here").status is Status.PENDING


@pytest.mark.parametrize("body", ["<https://a.example>", "[a](https://a.example)", "www.a.example"])
def test_the_policy_links_holds_what_has_one(site: records.Site, body: str) -> None:
    ruled.policy(Policy.LINKS)
    assert ruled.post(site, body).status is Status.PENDING
    assert ruled.post(site, "none").status is Status.APPROVED


def test_an_approved_comment_that_is_edited_into_a_link_is_held_again(site: records.Site) -> None:
    reply = ruled.post(site, "an answer", "bob", parent=ruled.post(site, "fine").id)
    ruled.policy(Policy.LINKS)
    row = ruled.case(reply).comment
    linked = ruled.edit(row, "now https://spam.example")
    assert (linked.status, linked.listed) == (Status.PENDING, False)
    assert ruled.case(row).stood is Status.APPROVED
    assert trees.listed(site) == ["fine"]
    ruled.approve(linked)
    # What was approved with its link may be mended, and may not get another one.
    assert ruled.edit(linked, "well, https://spam.example").status is Status.APPROVED
    assert ruled.edit(linked, "https://spam.example https://more.example").status is Status.PENDING
    ruled.settle()
    stocktaking.check_sums()


@pytest.mark.parametrize(
    ("action", "status"),
    [(Action.HOLD, Status.PENDING), (Action.SPAM, Status.SPAM), (Action.SHADOW, Status.SHADOWED)],
)
def test_rules_run_on_create_and_on_edit_and_say_which_and_why(
    site: records.Site, action: Action, status: Status
) -> None:
    ruled.rule(action, words=("casino",))
    held = ruled.post(site, "my casino")
    edited = ruled.edit(ruled.post(site, "fine"), "your casino")
    for row in (held, edited):
        case = ruled.case(row)
        assert (case.comment.status, case.rule) == (status, "rule:r")
        assert case.why == "the text holds 'casino'"
    assert trees.listed(site) == []


def test_a_rule_that_rejects_stores_nothing_and_leaves_the_text_that_was_there(
    site: records.Site,
) -> None:
    row = ruled.post(site, "fine")
    ruled.rule(Action.REJECT, words=("casino",))
    stored = list(map(str, stocktaking.rows("Comment")))
    with pytest.raises(errors.Forbidden) as refused:
        ruled.post(site, "my casino")
    assert refused.value.code == "comment-refused"
    with pytest.raises(errors.Forbidden):
        ruled.edit(row, "my casino")
    assert list(map(str, stocktaking.rows("Comment"))) == stored
    assert stocktaking.roots() == {"demo/page": 1}


def test_an_edit_never_makes_a_comment_more_visible(site: records.Site) -> None:
    ruled.rule(Action.SPAM, words=("casino",))
    spam = ruled.post(site, "casino")
    assert ruled.edit(spam, "harmless").status is Status.SPAM
    hidden = ruled.post(site, "fine")
    decisions.decide("demo", hidden.id, Verb.HIDE, ruled.ADA, now=ruled.NOW)
    with pytest.raises(errors.Conflict) as refused:
        ruled.edit(hidden, "better")
    assert refused.value.code == "comment-refused"


def test_a_new_author_is_held_until_he_is_here_for_long_enough(site: records.Site) -> None:
    ruled.rule(Action.HOLD, younger_than=2)
    first = trees.post(site, "first", author=records.Author("Ann"))
    assert (first.status, ruled.case(first).rule) == (Status.PENDING, "rule:r")
    later = [
        trees.post(site, f"after {days}", author=first.author, now=ruled.NOW + timedelta(days=days))
        for days in (1, 2)
    ]
    assert [row.status for row in later] == [Status.PENDING, Status.APPROVED]
    for since, status in ((1, Status.PENDING), (2, Status.APPROVED), (None, Status.APPROVED)):
        who = records.Author("Bob", id="a:bob")
        known = None if since is None else ruled.NOW - timedelta(days=since)
        assert trees.post(site, f"{since}", author=who, since=known).status is status
    edited = submission.edit(
        later[1].id, author_id=first.author.id, body="edited", revision=None,
        settings=trees.SETTINGS, now=ruled.NOW + timedelta(days=2, minutes=1),
    )  # fmt: skip
    assert edited.status is Status.APPROVED


def test_a_repeat_of_a_post_gets_what_became_of_the_first(site: records.Site) -> None:
    key = "0123456789abcdef"
    first = ruled.post(site, "text", key=key)
    ruled.policy(Policy.ALL)
    ruled.rule(Action.REJECT, words=("text",))
    policy_changes.ban("demo", "g:ann", ruled.ADA, now=ruled.NOW)
    assert ruled.post(site, "text", key=key) == first


@pytest.mark.parametrize("policy", [Policy.CLOSED, Policy.READ_ONLY])
def test_a_closed_site_takes_nothing_and_lets_people_take_back(
    site: records.Site, policy: Policy
) -> None:
    row = ruled.post(site, "text")
    ruled.policy(policy)
    with pytest.raises(errors.Conflict):
        ruled.post(site, "more")
    if policy is Policy.READ_ONLY:
        with pytest.raises(errors.Conflict) as refused:
            ruled.edit(row, "other")
        assert refused.value.code == "read-only"
    else:
        assert ruled.edit(row, "other").body == "other"
    submission.retract(row.id, author_id="g:ann", revision=None, now=ruled.NOW)
    assert trees.listed(site) == []


def test_a_thread_closes_by_age(site: records.Site) -> None:
    ruled.policy(close_after=7)
    ruled.post(site, "first", now=ruled.NOW)
    ruled.post(site, "in time", now=ruled.NOW + timedelta(days=7))
    with pytest.raises(errors.Conflict) as refused:
        ruled.post(site, "late", now=ruled.NOW + timedelta(days=7, seconds=1))
    assert refused.value.code == "thread-closed"
    ruled.post(site, "elsewhere", thread="other", now=ruled.NOW + timedelta(days=8))


def test_a_thread_has_its_own_policy_before_its_sites(site: records.Site) -> None:
    ruled.post(site, "first")
    ruled.policy(Policy.ALL)
    policy_changes.set_thread(ruled.NAME, ruled.ADA, now=ruled.NOW, policy=Policy.OFF)
    assert ruled.post(site, "free").status is Status.APPROVED
    assert ruled.post(site, "held", thread="other").status is Status.PENDING
    policy_changes.set_thread(ruled.NAME, ruled.ADA, now=ruled.NOW, policy=Policy.FIRST)
    assert ruled.post(site, "stranger", "bob").status is Status.PENDING
    assert ruled.post(site, "known").status is Status.APPROVED
    policy_changes.set_thread(ruled.NAME, ruled.ADA, now=ruled.NOW, inherits=True)
    assert ruled.post(site, "held").status is Status.PENDING
    with pytest.raises(errors.NotFound):
        policy_changes.set_thread(records.ThreadName("demo", "nowhere"), ruled.ADA, now=ruled.NOW)


def test_a_locked_thread_takes_nothing_until_it_is_opened(site: records.Site) -> None:
    ruled.post(site, "first")
    policy_changes.set_thread(ruled.NAME, ruled.ADA, now=ruled.NOW, state=ThreadState.CLOSED)
    with pytest.raises(errors.Conflict):
        ruled.post(site, "second")
    policy_changes.set_thread(ruled.NAME, ruled.ADA, now=ruled.NOW, state=ThreadState.OPEN)
    policy_changes.set_thread(ruled.NAME, ruled.ADA, now=ruled.NOW, state=ThreadState.OPEN)
    ruled.post(site, "second")
    found = audit_log.log("demo", subject="thread:demo/page")
    said = {(each.before, each.after) for each in found}
    assert said == {("open", "closed"), ("closed", "open")}


# --- Costs


def test_with_policy_and_rules_on_a_post_costs_what_it_may(
    engine: inprocess.Engine, site: records.Site
) -> None:
    """Five reads, one more where nothing else decides, and five writes, at any depth."""
    settings = config.Settings(secret="x" * 20, scheme=sorthash.Scheme(levels=2))
    root = ruled.post(site, "root", settings=settings)
    reply = ruled.post(site, "reply", parent=root.id, settings=settings)
    ruled.settle()
    ruled.policy(Policy.FIRST)
    ruled.rule(repeated=5, approved_under=1, words=("casino",), younger_than=9)
    policy_changes.ban("demo", "g:cid", ruled.ADA, now=ruled.NOW)
    ruled.post(site, "warm", settings=settings)
    for parent, most in ((None, 5), (root.id, 5), (reply.id, 5)):
        with testing.meter(engine) as cost:
            ruled.post(site, f"below {parent}", parent=parent, settings=settings)
        assert cost.reads <= most + 1
        assert cost.writes <= 5
    with testing.meter(engine) as newcomer:
        trees.post(site, "new", root.id, author=records.Author("new"), settings=settings)
    assert newcomer.reads <= 4  # nobody is asked about somebody who was never here


def test_without_a_policy_nothing_is_read_for_it(
    engine: inprocess.Engine, site: records.Site
) -> None:
    root = ruled.post(site, "root")
    ruled.rule(words=("casino",), links=3)
    ruled.post(site, "warm", parent=root.id)
    with testing.meter(engine) as cost:
        ruled.post(site, "reply", parent=root.id)
    assert (cost.reads, cost.writes) == (4, 5)


def test_who_is_known_in_the_discussion_is_trusted_without_a_read(
    engine: inprocess.Engine, site: records.Site
) -> None:
    root = ruled.post(site, "root")
    ruled.policy(Policy.FIRST)
    ruled.post(site, "warm", parent=root.id)
    with testing.meter(engine) as cost:
        assert ruled.post(site, "reply", parent=root.id).status is Status.APPROVED
    assert (cost.reads, cost.writes) == (4, 5)
