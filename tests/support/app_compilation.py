"""Applications made by the thousand: what each would compile again is compiled once in a process.

Owns what makes Flask quick to begin again: the functions by which werkzeug builds addresses, and
the code of templates. What must stay true: nothing is kept that depends on an application. A
function depends on the parts of its rule, a template's code on its source.
"""

from collections.abc import Callable

import flask
import jinja2
from jinja2 import bccache
from werkzeug import routing

_Builder = Callable[..., tuple[str, str]]
_builders: dict[tuple[object, ...], _Builder] = {}


class Rule(routing.Rule):
    """A rule that takes its functions from another rule of the same parts."""

    def _compile_builder(self, append_unknown: bool = True) -> _Builder:  # noqa: FBT001, FBT002
        if self.defaults:  # resolved by converters, which belong to one application
            return super()._compile_builder(append_unknown)
        key = (self.rule, tuple(self._trace), append_unknown)
        if key not in _builders:
            _builders[key] = super()._compile_builder(append_unknown)
        return _builders[key]


class Codes(jinja2.BytecodeCache):
    """The code of templates; Jinja compares the sources."""

    def __init__(self) -> None:
        self._codes: dict[str, bytes] = {}

    def load_bytecode(self, bucket: bccache.Bucket) -> None:
        """Give a bucket its code, if it is known."""
        if bucket.key in self._codes:
            bucket.bytecode_from_string(self._codes[bucket.key])

    def dump_bytecode(self, bucket: bccache.Bucket) -> None:
        """Keep a bucket's code."""
        self._codes[bucket.key] = bucket.bytecode_to_string()


def compile_once() -> None:
    """Have every application of this process share what it can."""
    flask.Flask.url_rule_class = Rule
    flask.Flask.jinja_options = {**flask.Flask.jinja_options, "bytecode_cache": Codes()}
