"""Only the calls for moderators accept a moderator's token; other routes refuse or ignore it.

The test uses the routes in `every_route`, so new routes are included.
"""

import pytest

from comments.moderation import decisions
from comments.moderation.policy import policy_changes
from comments.web.sign_in import signed_in
from tests.support import store_snapshot
from tests.support.every_route import ROWS, AllRoles, Row
from tests.support.people import account_holders, moderators

pytestmark = pytest.mark.slow

ACCEPTED = (
    "/moderation/session",
    "/moderation/comments",
    "/statistics/categories",
    "/statistics/category-commenters",
    "/statistics/thread-commenters",
    "/statistics/thread-followers",
    "/statistics/pages",
    "/statistics/people",
    "/statistics/hours",
    "/statistics/days",
    "/statistics/author-categories",
    "/statistics/author-threads",
    "/statistics/audiences",
    "/statistics/audience-cost",
    "/statistics/audience-commenters",
    "/statistics/counters",
    "/statistics/counter-numbers",
    "/decision",
    "/ban",
    "/author-links",
)
# The API calls for which a token is optional or required: a token that is not valid is refused.
PREFIX = "/api/v1/"


def _is_accepted(row: Row) -> bool:
    return row.rule.startswith(PREFIX) and row.rule.endswith(ACCEPTED)


@pytest.mark.parametrize(
    "row",
    [row for row in ROWS if not _is_accepted(row)],
    ids=lambda row: f"{row.method} {row.rule}",
)
def test_no_other_route_accepts_a_moderators_token(
    all_roles: AllRoles, monkeypatch: pytest.MonkeyPatch, row: Row
) -> None:
    """Whether it is sent as a bearer token or as the cookie, the token gives no permission."""
    owner = moderators.accounts.by_text("owner", moderators.SECRET)
    token, comment = moderators.token(owner), all_roles.comment()
    monkeypatch.setitem(all_roles.tokens, "moderating", token)
    nobodys = row.statuses.get("nobody", row.others)
    found = all_roles.ask(row, "moderating", comment.id).status_code
    assert found in ({401, nobodys} if row.rule.startswith(PREFIX) else {nobodys})
    monkeypatch.delitem(all_roles.tokens, "moderating")
    client = all_roles.client("nobody")
    client.set_cookie(signed_in.COOKIE, token)
    monkeypatch.setattr(all_roles, "client", lambda _: client)
    assert all_roles.ask(row, "nobody", comment.id).status_code == nobodys
    if nobodys >= 400:
        assert decisions.case("demo", comment.id).comment == comment


@pytest.mark.parametrize(
    "row", [row for row in ROWS if _is_accepted(row)], ids=lambda row: f"{row.method} {row.rule}"
)
def test_the_calls_for_moderators_accept_only_a_moderators_token(
    all_roles: AllRoles, monkeypatch: pytest.MonkeyPatch, row: Row
) -> None:
    owner = moderators.accounts.by_text("owner", moderators.SECRET)
    comment, stored = all_roles.comment(), store_snapshot.everything(store_snapshot.SESSIONS)
    for caller in ("guest", "author", "other"):
        assert all_roles.ask(row, caller, comment.id).status_code == 401
    assert store_snapshot.everything(store_snapshot.SESSIONS) == stored
    monkeypatch.setitem(all_roles.tokens, "moderating", moderators.token(owner))
    found = all_roles.ask(row, "moderating", comment.id).status_code
    if row.rule.endswith("/moderation/session") and row.method == "POST":
        assert found == 401  # The call takes a code, and no token
    elif row.method == "DELETE" and row.rule.endswith("/ban"):
        assert found == 404  # The author is not banned
    elif row.method != "GET" and row.rule.endswith("/author-links"):
        assert found == 404  # The other author has no comments
    elif row.rule.endswith("/counter-numbers"):
        assert found == 404  # The site has declared no counter
    else:
        assert found in {200, 201, 202}
    if row.method == "PUT" and row.rule.endswith("/ban"):
        # The other tests' comments have the same author.
        policy_changes.unban("demo", "g:author", owner.actor, now=account_holders.here())
