"""Every route that changes something refuses fields that it does not define.

The test uses the routes in `every_route`, so new routes are included. A caller with permission
sends the route's fields and an extra field: a status, a role, a different site. The service refuses
the extra field and stores nothing.
"""

import dataclasses
import json

import pytest

from tests.support import store_snapshot
from tests.support.every_route import CALLERS, ROWS, AllRoles, Row

pytestmark = pytest.mark.slow

# Fields that other systems have accepted by mistake (mass assignment). Each parser refuses every
# name that its route does not define, so a few are enough. Each form needs a separate session.
NEVER = ("id", "status", "votes", "role", "author_id", "grants", "site", "revision", "__proto__")
OF_FORMS = ("id", "status", "role", "grants", "site")
SENDING = [row for row in ROWS if row.json is not None or row.form is not None]


def who_may(row: Row) -> str:
    """Return a caller with permission, so that the route can refuse only the fields."""
    found = (name for name in reversed(CALLERS) if row.statuses.get(name, row.others) < 400)
    return next(found, "owner")


@pytest.mark.parametrize("row", SENDING, ids=lambda row: f"{row.method} {row.rule}")
def test_no_change_accepts_an_undefined_field(all_roles: AllRoles, row: Row) -> None:
    caller, comment = who_may(row), all_roles.comment()
    made = {} if row.made is None else row.made(all_roles)
    row = dataclasses.replace(row, made=(lambda _: made) if made else None)
    stored = store_snapshot.everything(store_snapshot.SESSIONS)
    own = {*(row.json or row.form or ()), *made}
    for field in NEVER if row.json is not None else OF_FORMS:
        if field in own or (field == "id" and "id" in row.query):
            continue
        if row.json is not None:
            asked = dataclasses.replace(row, json={**row.json, field: "approved"})
        else:
            asked = dataclasses.replace(row, form={**(row.form or {}), field: "approved"})
        answer = all_roles.ask(asked, caller, comment.id)
        usual = row.statuses.get(caller, row.others)
        if answer.status_code == usual >= 401:
            continue  # No caller has permission, so the route does not read the fields
        assert answer.status_code == 400, (field, answer.text)
        said = json.loads(answer.text)["field"] if row.json is not None else answer.text
        assert field in said.lower(), (field, answer.text)
    assert store_snapshot.everything(store_snapshot.SESSIONS) == stored
