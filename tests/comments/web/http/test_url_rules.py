"""Rules of the service build the same URLs as werkzeug's rules, and compile when they build."""

from typing import Any

import flask
import pytest
from hypothesis import given
from hypothesis import strategies as st
from werkzeug import routing

from comments.web.http import url_rules

TEXTS = st.text(max_size=8)
VALUES = st.dictionaries(
    st.sampled_from(("unknown", "rule", "self", "q")), TEXTS | st.lists(TEXTS, max_size=2)
)


def bound(kind: type[routing.Rule], rule: routing.Rule) -> routing.Rule:
    """Return a rule of this kind, in a map of its own."""
    made = kind(rule.rule, **rule.get_empty_kwargs())
    assert rule.map is not None
    routing.Map([made], converters=rule.map.converters, merge_slashes=False)
    return made


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Collect the rules that werkzeug compiles."""
    found: list[str] = []
    compiles = routing.Rule._compile_builder

    def noting(rule: routing.Rule, *append_unknown: bool) -> Any:
        found.append(rule.rule)
        return compiles(rule, *append_unknown)

    monkeypatch.setattr(routing.Rule, "_compile_builder", noting)
    return found


@given(st.data())
def test_each_rule_builds_the_same_urls_as_werkzeugs_rule(app: flask.Flask, data: Any) -> None:
    rules = list(app.url_map.iter_rules())
    assert len(rules) > 100
    assert all(isinstance(rule, url_rules.LazyRule) for rule in rules)
    rule = data.draw(st.sampled_from(rules))
    values = data.draw(VALUES) | {name: data.draw(TEXTS) for name in sorted(rule.arguments)}
    for append_unknown in (False, True):
        built = bound(url_rules.LazyRule, rule).build(values, append_unknown=append_unknown)
        assert built == bound(routing.Rule, rule).build(values, append_unknown=append_unknown)
        assert built == rule.build(values, append_unknown=append_unknown)


def test_a_rule_compiles_once_and_only_when_a_url_is_built(compiled: list[str]) -> None:
    rule = url_rules.LazyRule("/a/<b>")
    routing.Map([rule])
    assert compiled == []
    for _ in range(2):
        assert rule.build({"b": "c", "d": "e"}) == ("", "/a/c?d=e")
    assert compiled == ["/a/<b>"]


def test_an_application_is_made_without_compiling(compiled: list[str], app: flask.Flask) -> None:
    assert len(list(app.url_map.iter_rules())) > 100
    assert compiled == []
