"""Cache compiled routes and templates for tests that build thousands of applications.

This module owns the compiled parts that a process's applications share: the parts of rules and the
templates' code.

Invariants:

1. The caches keep nothing that depends on an application: a rule's parts depend on its text, and a
   template's code depends on its source.
2. Converters belong to one application, so each rule makes its own converters.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import flask
import jinja2
from jinja2 import bccache
from werkzeug import routing
from werkzeug.routing import rules

from comments.web.http import url_rules

# The variable's name, the converter's name, and the converter's positional and keyword arguments.
_Converter = tuple[str, str, tuple[Any, ...], Mapping[str, Any]]


@dataclasses.dataclass
class _Parsed:
    """A parsed rule: its parts, their trace, and its converters' arguments."""

    parts: list[rules.RulePart]
    trace: list[tuple[bool, str]]
    converters: list[_Converter]


_parsed: dict[str, _Parsed] = {}


class Rule(url_rules.LazyRule):
    """A rule that reuses the parts of an earlier rule with the same text."""

    def _parse_rule(self, rule: str) -> Iterable[rules.RulePart]:
        if rule not in _parsed:
            self._asked: list[_Converter] = []
            begin = len(self._trace)
            parts = list(super()._parse_rule(rule))
            _parsed[rule] = _Parsed(parts, self._trace[begin:], self._asked)
            return parts
        known = _parsed[rule]
        self._trace.extend(known.trace)
        for name, converter, args, kwargs in known.converters:
            self._converters[name] = super().get_converter(name, converter, args, kwargs)
            self.arguments.add(name)
        return known.parts

    def get_converter(
        self,
        variable_name: str,
        converter_name: str,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> routing.BaseConverter:
        """Make a converter and record its arguments."""
        self._asked.append((variable_name, converter_name, args, kwargs))
        return super().get_converter(variable_name, converter_name, args, kwargs)


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
    flask.Flask.jinja_options = {**flask.Flask.jinja_options, "bytecode_cache": Codes()}
