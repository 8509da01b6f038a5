"""No GET changes anything, and no cache serves one caller's response to a different caller.

The tests use the routes in `every_route`, so new routes are included. Mail scanners, previews and
search engines open every link, so anyone could trigger a change by GET or HEAD.
"""

import concurrent.futures
import dataclasses

import pytest

from comments.accounts import accounts
from comments.web.sign_in import signed_in
from tests.support import store_snapshot
from tests.support.every_route import CALLERS, ROWS, AllRoles, Row
from tests.support.people import account_holders, api_requests
from tests.support.people.account_holders import SECRET

pytestmark = pytest.mark.slow

READING = [row for row in ROWS if row.method == "GET"]
REQUESTS = 500


@pytest.mark.parametrize("row", READING, ids=lambda row: row.rule)
def test_a_get_changes_nothing_and_cacheable_responses_are_the_same_for_all(
    all_roles: AllRoles, row: Row
) -> None:
    comment = all_roles.comment()
    made = {} if row.made is None else row.made(all_roles)
    row = dataclasses.replace(row, made=(lambda _: made) if made else None)
    stored, kept = store_snapshot.everything(store_snapshot.SESSIONS), set()
    for caller in CALLERS:
        answer = all_roles.ask(row, caller, comment.id)
        assert answer.status_code == row.statuses.get(caller, row.others)
        answers = [answer]
        if caller in {"nobody", "owner"}:
            head = dataclasses.replace(row, method="HEAD")
            answers.append(all_roles.ask(head, caller, comment.id))
            assert answers[1].status_code == answer.status_code
        for each in answers:
            assert "Set-Cookie" not in each.headers
            if "private" in each.headers["Cache-Control"] or each.status_code >= 400:
                assert "no-store" in each.headers["Cache-Control"]
        if "no-store" not in answer.headers["Cache-Control"]:
            kept.add((answer.status_code, answer.data))
    assert len(kept) <= 1
    assert store_snapshot.everything(store_snapshot.SESSIONS) == stored


@pytest.mark.parametrize("rule", ["held", "inbox", "author", "votes"])
def test_a_response_to_a_token_is_never_cached(all_roles: AllRoles, rule: str) -> None:
    row = next(row for row in READING if row.rule.endswith(f"<site:site_id>/{rule}"))
    answer = all_roles.ask(row, "author", "a" * 26)
    assert answer.status_code == 200
    assert answer.headers["Cache-Control"] == "private, no-store"
    assert "Authorization" in answer.headers["Vary"]


def test_no_caller_gets_a_response_for_another(all_roles: AllRoles) -> None:
    """The calls run concurrently in one process, with a cookie, a token or neither."""
    said = {}
    for name in ("Ann", "Bob"):
        posted = api_requests.post(
            all_roles.app.test_client(), name, f"a secret of {name}", email=f"{name}@x.example"
        )
        said[name] = api_requests.bearer(posted)
    token = account_holders.session(accounts.by_text("owner", SECRET).id).token
    mine = "/api/v1/sites/demo/author"

    def ask(number: int) -> tuple[str, int]:
        client, name = all_roles.app.test_client(), ("Ann", "Bob", "owner", "nobody")[number % 4]
        headers = said.get(name, {})
        if name == "owner":
            client.set_cookie(signed_in.COOKIE, token)
        path = (mine, "/admin", "/admin/sites/demo/settings")[number // 4 % 3]
        answer = client.get(path, headers=headers)
        shown = answer.text if answer.status_code == 200 else ""
        is_whose = {
            "Ann": "a secret of Ann" in shown,
            "Bob": "a secret of Bob" in shown,
            "owner": "Sign out" in shown,
        }
        expected = name if name != "nobody" and (name == "owner") == (path != mine) else "nobody"
        assert {whose for whose, is_so in is_whose.items() if is_so} == {expected} - {"nobody"}
        return f"{name} {path}", answer.status_code

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        found = set(pool.map(ask, range(REQUESTS)))
    assert found == {
        (f"{name} {path}", 200 if is_his else 401 if path == mine else 303)
        for name in ("Ann", "Bob", "owner", "nobody")
        for path in (mine, "/admin", "/admin/sites/demo/settings")
        for is_his in [name in ({"Ann", "Bob"} if path == mine else {"owner"})]
    }
