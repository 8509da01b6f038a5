"""The rulebook (a site's policy, rules and bans) is logged, limited and cached correctly."""

import pytest

from comments import errors
from comments.domain import records
from comments.domain.records import Policy
from comments.events import audit_log
from comments.moderation.policy import policy_changes, rulebook
from comments.moderation.policy.rules import Action, Rule
from comments.store.models import moderation_rows
from tests.support.threads import moderated_site

pytestmark = pytest.mark.usefixtures("store", "site")


def test_every_change_of_the_rulebook_is_logged(site: records.Site) -> None:
    moderated_site.policy(Policy.ALL, reason="for now")
    moderated_site.rule(words=("a",))
    moderated_site.rule(Action.SPAM, words=("a",))
    policy_changes.remove_rule("demo", "r", moderated_site.ADA, now=moderated_site.NOW)
    policy_changes.ban("demo", "g:ann", moderated_site.ADA, now=moderated_site.NOW)
    said = sorted((e.subject, e.verb, e.before, e.after) for e in audit_log.log("demo"))
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
        policy_changes.remove_rule("demo", "r", moderated_site.ADA, now=moderated_site.NOW)


def test_the_size_of_a_rulebook_is_limited(site: records.Site) -> None:
    for given in ({"close_after": -1}, {"reports": 10_001}):
        with pytest.raises(errors.BadInput):
            moderated_site.policy(**given)  # type: ignore[arg-type]
    for number in range(rulebook.MOST_PATTERNS // 100):
        words = tuple(f"w{each}" for each in range(100))
        rule = Rule(id=f"r{number}", action=Action.HOLD, words=words)
        policy_changes.put_rule("demo", rule, moderated_site.ADA, now=moderated_site.NOW)
    with pytest.raises(errors.BadInput, match="patterns"):
        policy_changes.put_rule(
            "demo",
            Rule(id="x", action=Action.HOLD, words=("a",)),
            moderated_site.ADA,
            now=moderated_site.NOW,
        )


def test_the_stored_keys_of_decisions_are_stable() -> None:
    assert moderation_rows.rulebook_key("demo").id() == "demo"
    assert moderation_rows.erasure_key("a" * 26).id() == "a" * 26
    assert {each.value for each in Policy} == {
        "off", "first", "links", "all", "closed", "read-only",
    }  # fmt: skip
