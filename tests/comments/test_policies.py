"""Claims about what becomes of texts on their way in: policies, rules, bans, trust, and costs."""

from datetime import timedelta
from typing import Any

import pytest

from comments import (
    audit,
    config,
    datastore,
    delivery,
    errors,
    models,
    moderation,
    policies,
    posting,
    records,
    repair,
    rulebook,
    sites,
    sorthash,
)
from comments.records import Policy, Status, ThreadState, Verb
from comments.rules import Action, Rule
from emulator import inprocess, testing
from tests import trees
from tests.comments import stocktaking

ADA = records.Actor("cli", "Ada")
NAME = records.ThreadName("demo", "page")
NOW = trees.START


@pytest.fixture(autouse=True)
def _entered(store: datastore.Store, site: records.Site) -> None:
    """Every test here runs inside a store with the site "demo"."""


def _policy(policy: Policy | None = None, **more: Any) -> None:
    policies.set_policy("demo", ADA, now=NOW, policy=policy, **more)


def _rule(action: Action = Action.HOLD, **conditions: Any) -> None:
    policies.put_rule("demo", Rule(id="r", action=action, **conditions), ADA, now=NOW)


def _post(site: records.Site, body: str, author: str = "ann", **more: Any) -> records.Comment:
    who = records.Author(author, id=f"g:{author}" if author else "")
    return trees.post(site, body, more.pop("parent", None), author=who, **more)


def _edit(row: records.Comment, body: str) -> records.Comment:
    return posting.edit(
        row.id, author_id=row.author.id, body=body, revision=None,
        settings=trees.SETTINGS, now=NOW,
    )  # fmt: skip


def _settle() -> None:
    events = [stocktaking.name_of(each) for each in stocktaking.rows("Event")]
    delivery.deliver(events, now=NOW)


def _approve(row: records.Comment) -> None:
    moderation.decide("demo", row.id, Verb.APPROVE, ADA, now=NOW)
    _settle()


def _case(row: records.Comment) -> records.Case:
    return moderation.case("demo", row.id)


def test_what_is_held_has_its_place_and_appears_in_it(site: records.Site) -> None:
    first = _post(site, "first")
    _policy(Policy.ALL)
    held = _post(site, "held", parent=first.id)
    assert (held.status, held.number, held.listed) == (Status.PENDING, 1, False)
    _policy(Policy.OFF)
    _post(site, "later", parent=first.id)
    assert trees.listed(site) == ["first", "later"]
    with pytest.raises(errors.NotFound):
        _post(site, "answer", parent=held.id)
    _approve(held)
    assert trees.listed(site) == ["first", "held", "later"]
    _settle()
    stocktaking.check_sums()
    assert repair.find_problems(trees.SETTINGS.scheme, NAME) == []


def test_a_newcomer_is_held_until_one_of_his_comments_is_approved(site: records.Site) -> None:
    _policy(Policy.FIRST)
    first = _post(site, "one")
    assert first.status is Status.PENDING
    assert _case(first).why == "the author's first"
    assert _post(site, "two").status is Status.PENDING
    _approve(first)
    assert _post(site, "three").status is Status.APPROVED
    assert _post(site, "four", thread="other").status is Status.APPROVED
    assert _post(site, "five", "bob").status is Status.PENDING


def test_trust_is_the_authors_and_not_his_names_or_address(site: records.Site) -> None:
    """The same name, mail and website, typed by somebody else, are trusted as little as any."""
    author = records.Author("Ann", "https://ann.example", "ann@example.org", "g:ann")
    trees.post(site, "known", author=author)
    _settle()
    _policy(Policy.FIRST)
    assert trees.post(site, "more", author=author).status is Status.APPROVED
    for stranger in ("", "g:stranger"):
        posing = records.Author("Ann", "https://ann.example", "ann@example.org", stranger)
        assert trees.post(site, f"by {stranger}", author=posing).status is Status.PENDING


def test_approved_elsewhere_is_not_approved_here(site: records.Site) -> None:
    other = sites.add("other", ["https://o.example"], scheme=sorthash.Scheme(), now=NOW)
    _post(other, "known")
    _settle()
    _policy(Policy.FIRST)
    assert _post(site, "here").status is Status.PENDING


@pytest.mark.parametrize("body", ["<https://a.example>", "[a](https://a.example)", "www.a.example"])
def test_the_policy_links_holds_what_has_one(site: records.Site, body: str) -> None:
    _policy(Policy.LINKS)
    assert _post(site, body).status is Status.PENDING
    assert _post(site, "none").status is Status.APPROVED


def test_an_approved_comment_that_is_edited_into_a_link_is_held_again(site: records.Site) -> None:
    reply = _post(site, "an answer", "bob", parent=_post(site, "fine").id)
    _policy(Policy.LINKS)
    row = _case(reply).comment
    linked = _edit(row, "now https://spam.example")
    assert (linked.status, linked.listed) == (Status.PENDING, False)
    assert _case(row).stood is Status.APPROVED
    assert trees.listed(site) == ["fine"]
    _approve(linked)
    # What was approved with its link may be mended, and may not get another one.
    assert _edit(linked, "well, https://spam.example").status is Status.APPROVED
    assert _edit(linked, "https://spam.example https://more.example").status is Status.PENDING
    _settle()
    stocktaking.check_sums()


@pytest.mark.parametrize(
    ("action", "status"),
    [(Action.HOLD, Status.PENDING), (Action.SPAM, Status.SPAM), (Action.SHADOW, Status.SHADOWED)],
)
def test_rules_run_on_create_and_on_edit_and_say_which_and_why(
    site: records.Site, action: Action, status: Status
) -> None:
    _rule(action, words=("casino",))
    held = _post(site, "my casino")
    edited = _edit(_post(site, "fine"), "your casino")
    for row in (held, edited):
        case = _case(row)
        assert (case.comment.status, case.rule) == (status, "rule:r")
        assert case.why == "the text holds 'casino'"
    assert trees.listed(site) == []


def test_a_rule_that_rejects_stores_nothing_and_leaves_the_text_that_was_there(
    site: records.Site,
) -> None:
    row = _post(site, "fine")
    _rule(Action.REJECT, words=("casino",))
    stored = list(map(str, stocktaking.rows("Comment")))
    with pytest.raises(errors.Forbidden) as refused:
        _post(site, "my casino")
    assert refused.value.code == "comment-refused"
    with pytest.raises(errors.Forbidden):
        _edit(row, "my casino")
    assert list(map(str, stocktaking.rows("Comment"))) == stored
    assert stocktaking.roots() == {"demo/page": 1}


def test_an_edit_never_makes_a_comment_more_visible(site: records.Site) -> None:
    _rule(Action.SPAM, words=("casino",))
    spam = _post(site, "casino")
    assert _edit(spam, "harmless").status is Status.SPAM
    hidden = _post(site, "fine")
    moderation.decide("demo", hidden.id, Verb.HIDE, ADA, now=NOW)
    with pytest.raises(errors.Conflict) as refused:
        _edit(hidden, "better")
    assert refused.value.code == "comment-refused"


def test_a_new_author_is_held_until_he_is_here_for_long_enough(site: records.Site) -> None:
    _rule(Action.HOLD, younger_than=2)
    first = trees.post(site, "first", author=records.Author("Ann"))
    assert (first.status, _case(first).rule) == (Status.PENDING, "rule:r")
    later = [
        trees.post(site, f"after {days}", author=first.author, now=NOW + timedelta(days=days))
        for days in (1, 2)
    ]
    assert [row.status for row in later] == [Status.PENDING, Status.APPROVED]
    for since, status in ((1, Status.PENDING), (2, Status.APPROVED), (None, Status.APPROVED)):
        who = records.Author("Bob", id="a:bob")
        known = None if since is None else NOW - timedelta(days=since)
        assert trees.post(site, f"{since}", author=who, since=known).status is status
    edited = posting.edit(
        later[1].id, author_id=first.author.id, body="edited", revision=None,
        settings=trees.SETTINGS, now=NOW + timedelta(days=2, minutes=1),
    )  # fmt: skip
    assert edited.status is Status.APPROVED


def test_a_repeat_of_a_post_gets_what_became_of_the_first(site: records.Site) -> None:
    key = "0123456789abcdef"
    first = _post(site, "text", key=key)
    _policy(Policy.ALL)
    _rule(Action.REJECT, words=("text",))
    policies.ban("demo", "g:ann", ADA, now=NOW)
    assert _post(site, "text", key=key) == first


@pytest.mark.parametrize("policy", [Policy.CLOSED, Policy.READ_ONLY])
def test_a_closed_site_takes_nothing_and_lets_people_take_back(
    site: records.Site, policy: Policy
) -> None:
    row = _post(site, "text")
    _policy(policy)
    with pytest.raises(errors.Conflict):
        _post(site, "more")
    if policy is Policy.READ_ONLY:
        with pytest.raises(errors.Conflict) as refused:
            _edit(row, "other")
        assert refused.value.code == "read-only"
    else:
        assert _edit(row, "other").body == "other"
    posting.retract(row.id, author_id="g:ann", revision=None, now=NOW)
    assert trees.listed(site) == []


def test_a_thread_closes_by_age(site: records.Site) -> None:
    _policy(close_after=7)
    _post(site, "first", now=NOW)
    _post(site, "in time", now=NOW + timedelta(days=7))
    with pytest.raises(errors.Conflict) as refused:
        _post(site, "late", now=NOW + timedelta(days=7, seconds=1))
    assert refused.value.code == "thread-closed"
    _post(site, "elsewhere", thread="other", now=NOW + timedelta(days=8))


def test_a_thread_has_its_own_policy_before_its_sites(site: records.Site) -> None:
    _post(site, "first")
    _policy(Policy.ALL)
    policies.set_thread(NAME, ADA, now=NOW, policy=Policy.OFF)
    assert _post(site, "free").status is Status.APPROVED
    assert _post(site, "held", thread="other").status is Status.PENDING
    policies.set_thread(NAME, ADA, now=NOW, policy=Policy.FIRST)
    assert _post(site, "stranger", "bob").status is Status.PENDING
    assert _post(site, "known").status is Status.APPROVED
    policies.set_thread(NAME, ADA, now=NOW, inherits=True)
    assert _post(site, "held").status is Status.PENDING
    with pytest.raises(errors.NotFound):
        policies.set_thread(records.ThreadName("demo", "nowhere"), ADA, now=NOW)


def test_a_locked_thread_takes_nothing_until_it_is_opened(site: records.Site) -> None:
    _post(site, "first")
    policies.set_thread(NAME, ADA, now=NOW, state=ThreadState.CLOSED)
    with pytest.raises(errors.Conflict):
        _post(site, "second")
    policies.set_thread(NAME, ADA, now=NOW, state=ThreadState.OPEN)
    policies.set_thread(NAME, ADA, now=NOW, state=ThreadState.OPEN)
    _post(site, "second")
    found = audit.log("demo", subject="thread:demo/page")
    said = {(each.before, each.after) for each in found}
    assert said == {("open", "closed"), ("closed", "open")}


# --- Bans


def test_a_banned_author_writes_nothing_and_may_take_back(site: records.Site) -> None:
    row = _post(site, "text")
    policies.ban("demo", "g:ann", ADA, now=NOW, until=NOW + timedelta(days=1))
    for act in (lambda: _post(site, "more"), lambda: _edit(row, "other")):
        with pytest.raises(errors.Forbidden) as refused:
            act()
        assert refused.value.code == "author-banned"
    _post(site, "another's", "bob")
    _post(site, "when it is over", now=NOW + timedelta(days=1))
    posting.retract(row.id, author_id="g:ann", revision=None, now=NOW)
    policies.unban("demo", "g:ann", ADA, now=NOW)
    _post(site, "again")
    with pytest.raises(errors.NotFound):
        policies.unban("demo", "g:ann", ADA, now=NOW)


def test_a_shadow_ban_is_seen_by_nobody_but_its_author(site: records.Site) -> None:
    policies.ban("demo", "g:ann", ADA, now=NOW, is_shadow=True)
    row = _post(site, "text")
    assert row.status is Status.SHADOWED
    assert trees.listed(site) == []
    assert moderation.own_held(NAME, "g:ann") == [row]
    assert moderation.own_held(NAME, "g:bob") == moderation.own_held(NAME, "") == []


def test_a_ban_may_hide_what_was_written_and_its_undo_brings_that_back(site: records.Site) -> None:
    rows = [_post(site, f"{n}", thread=f"t{n % 2}") for n in range(5)]
    spam = rows[0]
    moderation.decide("demo", spam.id, Verb.SPAM, ADA, now=NOW)
    _post(site, "another's", "bob", thread="t0")
    assert len(moderation.hide_all("demo", "g:ann", ADA, now=NOW)) == 4
    assert trees.listed(site, "t0") == ["another's"]
    assert trees.listed(site, "t1") == []
    assert len(moderation.restore_all("demo", "g:ann", ADA, now=NOW)) == 4
    assert trees.listed(site, "t1") == ["1", "3"]
    assert _case(spam).comment.status is Status.SPAM
    assert moderation.hide_all("demo", "", ADA, now=NOW) == []
    assert moderation.hide_all("other", "g:ann", ADA, now=NOW) == []


@pytest.mark.parametrize(
    ("given", "field"),
    [({"author": ""}, "author"), ({"author": "x" * 201}, "author"), ({"until": NOW}, "until")],
)
def test_a_ban_that_cannot_be_meant_is_refused(given: dict[str, Any], field: str) -> None:
    with pytest.raises(errors.BadInput) as refused:
        policies.ban("demo", **{"author": "g:ann", "actor": ADA, "now": NOW, **given})
    assert refused.value.field == field


def test_bans_that_are_over_leave_the_book(site: records.Site) -> None:
    policies.ban("demo", "g:ann", ADA, now=NOW, until=NOW + timedelta(days=1))
    policies.ban("demo", "g:bob", ADA, now=NOW + timedelta(days=2))
    assert [each.author for each in rulebook.read("demo").bans] == ["g:bob"]


# --- The book


def test_every_change_of_the_book_is_noted(site: records.Site) -> None:
    _policy(Policy.ALL, reason="for now")
    _rule(words=("a",))
    _rule(Action.SPAM, words=("a",))
    policies.remove_rule("demo", "r", ADA, now=NOW)
    policies.ban("demo", "g:ann", ADA, now=NOW)
    said = sorted((e.subject, e.verb, e.before, e.after) for e in audit.log("demo"))
    assert said == [
        ("author:g:ann", "ban", "", "banned"),
        ("rule:r", "put-rule", "", "hold"),
        ("rule:r", "put-rule", "hold", "spam"),
        ("rule:r", "remove-rule", "spam", ""),
        (
            "site", "set-policy", "off, closed after 0 days, 3 reports",
            "all, closed after 0 days, 3 reports",
        ),
    ]  # fmt: skip
    with pytest.raises(errors.NotFound):
        policies.remove_rule("demo", "r", ADA, now=NOW)


def test_a_book_stays_readable(site: records.Site) -> None:
    for given in ({"close_after": -1}, {"reports": 10_001}):
        with pytest.raises(errors.BadInput):
            _policy(**given)
    for number in range(rulebook.MOST_PATTERNS // 100):
        words = tuple(f"w{each}" for each in range(100))
        rule = Rule(id=f"r{number}", action=Action.HOLD, words=words)
        policies.put_rule("demo", rule, ADA, now=NOW)
    with pytest.raises(errors.BadInput, match="patterns"):
        policies.put_rule("demo", Rule(id="x", action=Action.HOLD, words=("a",)), ADA, now=NOW)


def test_another_process_knows_a_change_within_a_minute(
    engine: inprocess.Engine, site: records.Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert rulebook.get("demo").policy is Policy.OFF
    other = datastore.Store(inprocess.Channel(engine), project="test")

    def change() -> None:
        with other.context():
            _policy(Policy.ALL)

    import threading  # noqa: PLC0415 - another thread is another process here

    thread = threading.Thread(target=change)
    thread.start()
    thread.join()
    assert rulebook.get("demo").policy is Policy.OFF
    monkeypatch.setattr(rulebook, "_TERM", -1.0)
    assert rulebook.get("demo").policy is Policy.ALL


# --- Costs


def test_with_policy_and_rules_on_a_post_costs_what_it_may(
    engine: inprocess.Engine, site: records.Site
) -> None:
    """Five reads, one more where nothing else decides, and five writes, at any depth."""
    settings = config.Settings(secret="x" * 20, scheme=sorthash.Scheme(levels=2))
    root = _post(site, "root", settings=settings)
    reply = _post(site, "reply", parent=root.id, settings=settings)
    _settle()
    _policy(Policy.FIRST)
    _rule(repeated=5, approved_under=1, words=("casino",), younger_than=9)
    policies.ban("demo", "g:cid", ADA, now=NOW)
    _post(site, "warm", settings=settings)
    for parent, most in ((None, 5), (root.id, 5), (reply.id, 5)):
        with testing.meter(engine) as cost:
            _post(site, f"below {parent}", parent=parent, settings=settings)
        assert cost.reads <= most + 1
        assert cost.writes <= 5
    with testing.meter(engine) as newcomer:
        trees.post(site, "new", root.id, author=records.Author("new"), settings=settings)
    assert newcomer.reads <= 4  # nobody is asked about somebody who was never here


def test_without_a_policy_nothing_is_read_for_it(
    engine: inprocess.Engine, site: records.Site
) -> None:
    root = _post(site, "root")
    _rule(words=("casino",), links=3)
    _post(site, "warm", parent=root.id)
    with testing.meter(engine) as cost:
        _post(site, "reply", parent=root.id)
    assert (cost.reads, cost.writes) == (4, 5)


def test_who_is_known_in_the_discussion_is_trusted_without_a_read(
    engine: inprocess.Engine, site: records.Site
) -> None:
    root = _post(site, "root")
    _policy(Policy.FIRST)
    _post(site, "warm", parent=root.id)
    with testing.meter(engine) as cost:
        assert _post(site, "reply", parent=root.id).status is Status.APPROVED
    assert (cost.reads, cost.writes) == (4, 5)


def test_the_keys_of_decisions_are_for_ever() -> None:
    assert models.rulebook_key("demo").id() == "demo"
    assert models.erasure_key("a" * 26).id() == "a" * 26
    assert {each.value for each in Policy} == {
        "off", "first", "links", "all", "closed", "read-only",
    }  # fmt: skip
