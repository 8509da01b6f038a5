"""Check pages in a browser with the pinned version of axe-core (tests/axe)."""

import functools
from collections.abc import Sequence

import playwright.sync_api as playwright

from tests.support import optional_tools, programs

_FILE = programs.ROOT / "tests" / "axe" / "node_modules" / "axe-core" / "axe.min.js"


@functools.cache
def _source() -> str:
    optional_tools.require(
        _FILE.exists(),
        "no accessibility checker: scripts/test without arguments installs it, given npm",
    )
    return _FILE.read_text()


def complaints(
    page: playwright.Page, *, rules: Sequence[str] = (), also: Sequence[str] = ()
) -> list[str]:
    """Return the page's current violations of all accessibility rules or of the given rules.

    `also` turns on rules that the checker does not apply by default.
    """
    if not page.evaluate("typeof axe === 'object'"):
        page.evaluate(_source())
    found = page.evaluate(
        "([rules, also]) => axe.run(document, {resultTypes: ['violations'], "
        "rules: Object.fromEntries(also.map(name => [name, {enabled: true}])), "
        "runOnly: rules.length ? {type: 'rule', values: rules} : undefined})",
        [list(rules), list(also)],
    )
    return [
        f"{each['id']}: {node['html'][:200]}"
        for each in found["violations"]
        for node in each["nodes"]
    ]
