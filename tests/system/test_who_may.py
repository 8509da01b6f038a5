"""Every route grants each caller exactly the documented permissions."""

import pytest

from comments.tree.lists import listed_comments
from tests.support.every_route import CALLERS, ROWS, AllRoles, Row

pytestmark = pytest.mark.slow


def test_every_route_has_a_row(all_roles: AllRoles) -> None:
    routes = sorted(
        (method, rule.rule)
        for rule in all_roles.app.url_map.iter_rules()
        for method in rule.methods - {"HEAD", "OPTIONS"}  # type: ignore[operator]
    )
    assert sorted((row.method, row.rule) for row in ROWS) == routes


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.method} {row.rule}")
def test_each_caller_gets_the_status_of_the_row(all_roles: AllRoles, row: Row) -> None:
    found, expected = {}, {}
    for caller in CALLERS:
        comment = all_roles.comment()
        found[caller] = all_roles.ask(row, caller, comment.id).status_code
        expected[caller] = row.statuses.get(caller, row.others)
        if found[caller] >= 400:
            assert listed_comments.with_ancestors(comment.id)[0] == comment
    assert found == expected
