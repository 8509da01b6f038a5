"""Test which rules match, which rule wins, which rules are invalid, and how long matching takes."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comments import errors
from comments.domain.records import Status
from comments.domain.text import cleaning, rendering
from comments.moderation.policy import rules
from comments.moderation.policy.rules import Action, Rule, RuleSubject


def _said(body: str = "hello", **more: Any) -> RuleSubject:
    return RuleSubject(body, rendering.render_markdown(body), **more)


def _why(rule: dict[str, Any], said: RuleSubject) -> str:
    made = Rule(id="r", action=Action.HOLD, **rule)
    rules.check(made)
    return rules.judge([made], said).why


@pytest.mark.parametrize(
    ("rule", "speaks", "silent"),
    [
        ({"words": ("casino",)}, _said("My CASINO!"), _said("occasino")),
        ({"words": ("casino*",)}, _said("casinos"), _said("occasino")),
        ({"words": ("*casino",)}, _said("Occasino."), _said("casinos")),
        ({"words": ("cheap pill*",)}, _said("**cheap** ... pills"), _said("cheap red pills")),
        ({"words": ("casino",)}, _said("\uff43\uff41\uff53\uff49\uff4e\uff4f"), _said("cas ino")),
        ({"words": ("casino",)}, _said("cas\u200bi\xadno"), _said("casin")),
        ({"words": ("straße",)}, _said("STRASSE"), _said("strass")),
        ({"names": ("seo *",)}, _said(name="SEO Expert"), _said("SEO Expert")),
        ({"websites": ("x.example",)}, _said(website="https://a.X.example/"), _said("x.example")),
        ({"hosts": ("x.example",)}, _said("[a](https://b.x.example/)"), _said("<b>ax.example</b>")),
        ({"hosts": ("x.example",)}, _said("<https://x.example>"), _said("<https://ax.example>")),
        (
            {"links": 1},
            _said("<https://a.example> <https://b.example>"),
            _said("https://a.example"),
        ),
        ({"links": 0}, _said("www.a.example"), _said("a.example")),
        ({"scripts": ("cyrillic",)}, _said("купить дёшево now"), _said("to buy и")),
        ({"scripts": ("han", "kana")}, _said("漢字"), _said("123")),
        ({"networks": ("203.0.113.0/24",)}, _said(network="203.0.113.9"), _said(network="::1")),
        ({"networks": ("2001:db8::/32",)}, _said(network="2001:db8:1::/64"), _said(network="")),
        ({"approved_under": 2}, _said(approved=lambda: 1), _said(approved=lambda: 2)),
        ({"younger_than": 2}, _said(age=1), _said(age=2)),
        ({"younger_than": 2}, _said(age=0), _said(age=None)),
        ({"repeated": 2}, _said(repeats=3), _said(repeats=2)),
    ],
)
def test_a_condition_matches_what_it_describes(
    rule: dict[str, Any], speaks: RuleSubject, silent: RuleSubject
) -> None:
    assert _why(rule, speaks)
    assert _why(rule, silent) == ""


def test_a_read_is_made_once_and_only_if_it_decides() -> None:
    asked: list[int] = []

    def approved() -> int:
        asked.append(1)
        return 0

    rule = {"words": ("casino",), "approved_under": 1}
    assert _why(rule, _said("hello", approved=approved)) == ""
    assert asked == []
    both = [Rule(id=name, action=Action.HOLD, **rule) for name in ("a", "b")]  # type: ignore[arg-type]
    both.append(Rule(id="c", action=Action.SPAM, approved_under=1))
    found = rules.judge(both, _said("casino", approved=approved))
    assert (found.rule, found.why) == ("rule:c", "the author has fewer than 1 approved comment")
    assert asked == [1]


def test_every_kind_of_condition_must_match_and_the_reason_names_each() -> None:
    rule = {"words": ("buy", "casino"), "links": 0}
    assert _why(rule, _said("a casino")) == ""
    assert _why(rule, _said("https://a.example")) == ""
    why = _why(rule, _said("a casino https://a.example"))
    assert why == 'the text contains "casino"; there are more than 0 links'


def test_the_strictest_rule_wins_and_of_equal_ones_the_first() -> None:
    def rule(name: str, action: str, word: str = "x", **more: Any) -> Rule:
        return Rule(id=name, action=Action(action), words=(word,), **more)

    found = [
        rule("hold", "hold"), rule("first", "spam"), rule("second", "spam"),
        rule("off", "reject", is_on=False), rule("silent", "reject", "y"), rule("late", "hold"),
    ]  # fmt: skip
    ruling = rules.judge(found, _said("x"))
    assert (ruling.status, ruling.rule) == (Status.SPAM, "rule:first")
    assert rules.judge(found[:1], _said("x")).status is Status.PENDING
    assert rules.judge([rule("s", "shadow")], _said("x")).status is Status.SHADOWED
    assert rules.judge([rule("r", "reject")], _said("x")).status is Status.REJECTED
    assert rules.judge(found, _said("z")).status is Status.APPROVED


@pytest.mark.parametrize(
    ("rule", "field"),
    [
        ({"id": "", "words": ("a",)}, "id"), ({"id": "A b", "words": ("a",)}, "id"),
        ({}, "rule"), ({"words": ("",)}, "words"), ({"words": (" ",)}, "words"),
        ({"words": ("*",)}, "words"), ({"words": ("**",)}, "words"), ({"names": ("!",)}, "names"),
        ({"words": ("a*b",)}, "words"), ({"words": ("x" * 101,)}, "words"),
        ({"words": ("a\nb",)}, "words"), ({"words": ("a",) * 501}, "words"),
        ({"scripts": ("klingon",)}, "scripts"), ({"networks": ("1.2.3.4/8",)}, "networks"),
        ({"networks": ("here",)}, "networks"), ({"links": -1}, "links"),
        ({"approved_under": 10**7}, "approved_under"),
    ],
)  # fmt: skip
def test_an_invalid_rule_is_refused_by_field(rule: dict[str, Any], field: str) -> None:
    with pytest.raises(errors.BadInput) as refused:
        rules.check(Rule(**{"id": "r", "action": Action.HOLD, **rule}))
    assert refused.value.field == field


@given(st.text(max_size=300), st.text(max_size=100))
def test_any_text_and_pattern_get_a_result(body: str, pattern: str) -> None:
    rule = Rule(id="r", action=Action.SPAM, words=(pattern,), names=(pattern,))
    try:
        rules.check(rule)
    except errors.BadInput:
        return
    # A text that contains the words of the pattern matches it.
    plain = pattern.strip("*")
    assert rules.judge([rule], RuleSubject(f"{body} {plain} {body}", "", name=plain)).why


@pytest.mark.parametrize("pattern", ["(a+)+$", "a|b", "[ab]", "a{9}", ".", "\\w"])
def test_no_pattern_is_executed(pattern: str) -> None:
    """A pattern is a fixed text to search for, without regular expression syntax."""
    rule = Rule(id="r", action=Action.HOLD, words=(pattern,))
    try:
        rules.check(rule)
    except errors.BadInput:
        return
    assert rules.judge([rule], _said("aaaaaaaaaaaa!")).why == ""
    words = "".join(c if c.isalnum() else " " for c in pattern).split()
    assert rules._needle(pattern).split() == words


@pytest.mark.parametrize("letter", ["a", "ab ", "\ufdfa", "\u3316", "\u200b", "w0x", "<", "\u0130"])
def test_normalizing_a_text_at_most_doubles_it(letter: str) -> None:
    """Matching is linear, so doubling the text at most doubles the work."""
    body = letter * (cleaning.MAX_BODY // len(letter))
    assert len(rules._normalize(body)) <= 2 * cleaning.MAX_BODY
