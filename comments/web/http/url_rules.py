"""URL rules that compile their functions for building URLs only when a URL is first built.

werkzeug compiles two such functions for each rule when the rule is added, which takes a twentieth
of the start-up time. This service builds URLs of only a few rules.
"""

import functools
from collections.abc import Callable

from werkzeug import routing

_Builder = Callable[..., tuple[str, str]]


class LazyRule(routing.Rule):
    """A rule that differs from werkzeug's only in when it compiles these functions."""

    def _compile_builder(self, append_unknown: bool = True) -> _Builder:  # noqa: FBT001, FBT002 - werkzeug's
        compiled = functools.cache(functools.partial(super()._compile_builder, append_unknown))

        def build(rule: routing.Rule, /, **values: object) -> tuple[str, str]:
            return compiled()(rule, **values)

        return build
