"""Cache compiled routes and templates for tests that build thousands of applications.

This module owns the compiled parts that a process's applications share: the rules of each blueprint
and the templates' code.

The caches keep nothing that depends on an application: a rule depends on its text, its endpoint and
the converters of its map, and a template's code depends on its source. A blueprint that registers
more than rules is registered by Flask itself for each application.
"""

import dataclasses
from typing import Any, Final

import flask
import jinja2
from flask.sansio.app import App
from jinja2 import bccache
from werkzeug import routing

from comments.web.http import url_rules

_RULE: Final = "Blueprint.add_url_rule.<locals>.<lambda>"
_register = flask.Blueprint.register


@dataclasses.dataclass
class _Registered:
    """What a blueprint adds to an application."""

    rules: list[routing.Rule]
    views: dict[str, Any]


_registered: dict[tuple[flask.Blueprint, frozenset[tuple[str, type]]], _Registered] = {}


class Rule(url_rules.LazyRule):
    """A rule that several maps with the same converters share."""

    def bind(self, map: routing.Map, rebind: bool = False) -> None:  # noqa: A002, FBT002 - werkzeug's
        if self.map is None or rebind:
            super().bind(map, rebind)


def _register_once(self: flask.Blueprint, app: App, options: dict[str, Any]) -> None:
    """Register a blueprint with the rules that it made for an earlier application."""
    if options or not _has_only_rules(self):
        _register(self, app, options)
        return
    key = (self, frozenset(app.url_map.converters.items()))
    if key not in _registered:
        _register(self, app, options)
        of_blueprint = [
            each
            for each in app.url_map.iter_rules()
            if each.endpoint.rpartition(".")[0] == self.name
        ]
        views = {each.endpoint: app.view_functions[each.endpoint] for each in of_blueprint}
        _registered[key] = _Registered(of_blueprint, views)
        return
    app.blueprints[self.name] = self
    self._merge_blueprint_funcs(app, self.name)
    app.view_functions.update(_registered[key].views)
    for rule in _registered[key].rules:
        app.url_map.add(rule)


def _has_only_rules(blueprint: flask.Blueprint) -> bool:
    if blueprint._blueprints or blueprint.cli.commands:
        return False
    return all(each.__qualname__ == _RULE for each in blueprint.deferred_functions)


class Codes(jinja2.BytecodeCache):
    """A cache for the compiled code of templates; Jinja compares the sources."""

    def __init__(self) -> None:
        self._codes: dict[str, bytes] = {}

    def load_bytecode(self, bucket: bccache.Bucket) -> None:
        if bucket.key in self._codes:
            bucket.bytecode_from_string(self._codes[bucket.key])

    def dump_bytecode(self, bucket: bccache.Bucket) -> None:
        self._codes[bucket.key] = bucket.bytecode_to_string()


def compile_once() -> None:
    """Make all applications of this process share compiled rules and templates."""
    url_rules.LazyRule = Rule  # type: ignore[misc]
    flask.Blueprint.register = _register_once  # type: ignore[assignment]
    flask.Flask.jinja_options = {**flask.Flask.jinja_options, "bytecode_cache": Codes()}
