"""A moderator's token decides about the comments of one site, on pages of one origin."""

import concurrent.futures
from datetime import timedelta
from typing import Any

import flask
import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from comments.accounts import accounts, moderation_sessions
from comments.domain import records
from comments.domain.records import Status, Verb
from comments.events import audit_log, dispatcher
from comments.moderation import decisions
from comments.moderation.policy import policy_changes, rulebook, rules
from comments.sites import site_settings
from comments.store import connection
from comments.upkeep import wiring
from tests.support.histories import counter_oracle
from tests.support.people import account_holders, api_requests, moderators
from tests.support.people.account_holders import OWNER, here, moderator
from tests.support.threads import sample_threads

pytestmark = pytest.mark.usefixtures("store", "site", "quick_passwords")

HELD = "/api/v1/sites/demo/moderation/comments?thread=t"
SESSION = "/api/v1/sites/demo/moderation/session"
ROOT = records.Actor("cli", "Ada")


@pytest.fixture(autouse=True)
def _registered(store: connection.Store, site: records.Site) -> None:
    site_settings.change(site.id, origins=[moderators.ORIGIN])


@pytest.fixture
def ann() -> accounts.Account:
    return account_holders.account("ann", moderator())


@pytest.fixture
def token(ann: accounts.Account) -> str:
    return moderators.token(ann)


@pytest.fixture
def comment(client: FlaskClient) -> str:
    return str(api_requests.post(client, body="Hello")["comment"]["id"])


def hold(comment: str) -> None:
    decisions.decide("demo", comment, Verb.HOLD, ROOT, now=here(), reason="for a look")


def status(comment: str) -> Status:
    return decisions.case("demo", comment).comment.status


def decide(
    client: FlaskClient, token: str, comment: str, verb: str = "hide", **more: Any
) -> TestResponse:
    headers = moderators.bearer(token, **more.pop("headers", {}))
    path = f"{api_requests.ONE}{comment}/decision"
    return client.post(path, json={"verb": verb, **more}, headers=headers)


def assert_refused(response: TestResponse, status: int, code: str) -> None:
    assert (response.status_code, response.get_json()["code"]) == (status, code), response.text


def test_a_page_exchanges_the_windows_code_moderates_and_ends_the_session(
    app: flask.Flask, client: FlaskClient, ann: accounts.Account, comment: str
) -> None:
    window, made = moderators.window(app, ann), moderators.verifier()
    window.asked["challenge"] = moderators.challenge_of(made)
    sent = {"verifier": made, "code": window.press()}
    answer = client.post(SESSION, json=sent, headers=moderators.ON_PAGE)
    assert answer.status_code == 200, answer.text
    assert answer.headers["Access-Control-Allow-Origin"] == moderators.ORIGIN
    assert "Set-Cookie" not in answer.headers
    begun = api_requests.answer(answer)
    assert begun["name"] == "Ann"
    assert_refused(client.post(SESSION, json=sent, headers=moderators.ON_PAGE), 401, "code-expired")
    assert decide(client, begun["token"], comment).status_code == 200
    headers = moderators.bearer(begun["token"])
    assert client.delete(SESSION, headers=headers).get_json() == {"status": "ended"}
    assert_refused(decide(client, begun["token"], comment, "restore"), 401, "token-expired")
    assert status(comment) is Status.HIDDEN


def test_pending_comments_are_listed_with_their_text_rule_and_reason(
    client: FlaskClient, token: str, comment: str
) -> None:
    hold(comment)
    reply = api_requests.post(client, body="shown")["comment"]["id"]
    other = client.post(
        "/api/v1/sites/demo/comments?thread=other", json={"name": "Bob", "body": "elsewhere"}
    ).get_json()
    hold(other["comment"]["id"])
    answer = client.get(HELD, headers=moderators.bearer(token))
    found = api_requests.answer(answer)
    (shown,) = found["comments"]
    assert (shown["status"], shown["rule"], shown["reason"]) == (
        "pending",
        "moderator",
        "for a look",
    )
    assert (shown["comment"]["id"], shown["comment"]["status"]) == (comment, "pending")
    assert shown["sort_hash"] == decisions.case("demo", comment).comment.sort_hash == "AA"
    assert "Hello" in shown["comment"]["html"]
    assert shown["comment"]["author"]["name"] == "Ann"
    assert not found["more"]
    assert reply not in answer.text


def test_pending_comments_are_listed_with_reasons_as_codes(
    client: FlaskClient, token: str, comment: str
) -> None:
    rule = rules.Rule("ads", rules.Action.HOLD, words=("cheap",), links=0)
    policy_changes.put_rule("demo", rule, ROOT, now=here())

    def posted(body: str) -> str:
        answer = client.post(api_requests.THREAD, json={"name": "Cy", "body": body})
        assert answer.status_code == 202
        return str(answer.get_json()["comment"]["id"])

    by_rule = posted("cheap https://ads.example")
    policy_changes.set_policy("demo", ROOT, now=here(), policy=records.Policy.ALL)
    by_policy = posted("Hi")
    hold(comment)
    answer = client.get(HELD, headers=moderators.bearer(token))
    found = {each["comment"]["id"]: each for each in api_requests.answer(answer)["comments"]}
    shown = {key: (each["reason"], each["reasons"]) for key, each in found.items()}
    assert shown == {
        by_rule: (
            'the text contains "cheap"; there are more than 0 links',
            [
                {"code": "text-contains", "params": {"found": "cheap"}},
                {"code": "links", "params": {"count": 0}},
            ],
        ),
        by_policy: (
            "every comment needs approval",
            [{"code": "policy-all", "params": {}}],
        ),
        comment: ("for a look", []),
    }
    assert answer.headers["Cache-Control"] == "private, no-store"
    assert answer.headers["Access-Control-Allow-Origin"] == moderators.ORIGIN


def test_the_list_has_a_limit_and_says_that_there_are_more(
    client: FlaskClient, token: str, site: records.Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("comments.moderation.review_queue.MOST", 2)
    for number in range(3):
        hold(sample_threads.post(site, f"number {number}", thread="t", now=here()).id)
    found = api_requests.answer(client.get(HELD, headers=moderators.bearer(token)))
    assert (len(found["comments"]), found["more"]) == (2, True)


@pytest.mark.parametrize(
    ("verb", "before", "after"),
    [
        ("approve", Status.PENDING, Status.APPROVED),
        ("reject", Status.PENDING, Status.REJECTED),
        ("spam", Status.PENDING, Status.SPAM),
        ("hide", Status.APPROVED, Status.HIDDEN),
    ],
)
def test_a_decision_and_its_undo_are_those_of_the_console(
    client: FlaskClient, token: str, comment: str, verb: str, before: Status, after: Status
) -> None:
    if before is Status.PENDING:
        hold(comment)
    decided = decide(client, token, comment, verb, reason="seen in the thread")
    assert decided.status_code == 200, decided.text
    assert decided.get_json()["status"] == after == status(comment)
    (entry, *_) = audit_log.log("demo", subject=comment)
    ann = accounts.by_text("ann", account_holders.SECRET)
    assert (entry.verb, entry.actor, entry.reason) == (verb, ann.actor, "seen in the thread")
    assert decide(client, token, comment, "restore").get_json()["status"] == before
    assert status(comment) is before


def test_a_comment_is_pinned_and_unpinned(client: FlaskClient, token: str, comment: str) -> None:
    pinned = decide(client, token, comment, "pin")
    assert pinned.get_json()["comment"]["pinned"] is True
    assert decide(client, token, comment, "unpin").status_code == 200
    assert not decisions.case("demo", comment).comment.pinned


def test_a_refused_comment_is_returned_without_its_text(
    client: FlaskClient, token: str, comment: str
) -> None:
    shown = decide(client, token, comment, "spam").get_json()
    assert (shown["comment"]["status"], shown["comment"]["html"]) == ("removed", "")


def test_a_decision_about_a_text_that_has_changed_since_is_refused(
    client: FlaskClient, token: str
) -> None:
    posted = api_requests.post(client)
    one, headers = posted["comment"]["id"], api_requests.bearer(posted)
    client.patch(api_requests.ONE + one, json={"body": "Different"}, headers=headers)
    seen = {"If-Match": '"1"'}
    assert_refused(decide(client, token, one, headers=seen), 412, "revision-mismatch")
    assert status(one) is Status.APPROVED


@pytest.mark.parametrize(
    ("sent", "field"),
    [
        ({"verb": "hold"}, "verb"),
        ({"verb": "delete"}, "verb"),
        ({"verb": "hide", "reason": "two\nlines"}, "reason"),
        ({"verb": "hide", "reason": 3}, "reason"),
        ({"verb": "hide", "site": "blog"}, "site"),
        ({}, "verb"),
    ],
)
def test_a_malformed_decision_is_refused_by_its_field(
    client: FlaskClient, token: str, comment: str, sent: dict[str, object], field: str
) -> None:
    path, headers = f"{api_requests.ONE}{comment}/decision", moderators.bearer(token)
    answer = client.post(path, json=sent, headers=headers)
    assert (answer.status_code, answer.get_json()["field"]) == (400, field)
    assert status(comment) is Status.APPROVED


def test_the_author_of_a_comment_is_banned_and_the_ban_lifted(
    client: FlaskClient, token: str
) -> None:
    posted = api_requests.post(client)
    path = f"{api_requests.ONE}{posted['comment']['id']}/ban"
    headers = moderators.bearer(token)
    banned = client.put(path, json={"days": 7, "reason": "enough"}, headers=headers)
    assert banned.get_json() == {"status": "banned"}
    (ban,) = rulebook.from_store("demo").bans
    # The network of a ban is data that only the console uses.
    assert (ban.known.network, ban.known.mailbox, ban.known.comment) == (
        "",
        "",
        posted["comment"]["id"],
    )
    refused = client.post(
        api_requests.THREAD, json={"name": "Ann", "body": "again"},
        headers=api_requests.bearer(posted),
    )  # fmt: skip
    assert refused.status_code == 403
    assert client.delete(path, headers=headers).get_json() == {"status": "unbanned"}
    assert rulebook.from_store("demo").bans == ()
    assert_refused(client.delete(path, headers=headers), 404, "ban-not-found")


def test_authors_are_linked_listed_and_unlinked(
    client: FlaskClient, token: str, site: records.Site
) -> None:
    one, other = (
        sample_threads.post(site, "b", author=records.Author("Eve", id=f"g:{name}"))
        for name in ("eve", "eve2")
    )
    dispatcher.deliver(counter_oracle.events(), now=sample_threads.START, handlers=wiring.HANDLERS)
    path, headers = "/api/v1/sites/demo/moderation/author-links", moderators.bearer(token)
    pair = {"author": one.id, "other": "g:eve2"}
    linked = client.put(path, json={**pair, "reason": "same person"}, headers=headers).get_json()
    (link,) = linked["links"]
    assert linked["authors"] == ["g:eve", "g:eve2"]
    assert (link["authors"], link["kind"]) == (["g:eve", "g:eve2"], "link")
    found = client.get(path, query_string={"author": other.id}, headers=headers).get_json()
    assert found == {"authors": ["g:eve2", "g:eve"], "links": [link]}
    refused = client.put(path, json={**pair, "other": "x"}, headers=headers)
    assert_refused(refused, 400, "bad-author-id")
    ended = client.delete(path, query_string=pair, headers=headers)
    assert ended.get_json() == {"authors": ["g:eve"], "links": []}
    assert_refused(client.delete(path, query_string=pair, headers=headers), 404, "link-not-found")
    entries = audit_log.log("demo", subject="author:g:eve")
    assert [(entry.verb, entry.reason) for entry in entries] == [
        ("unlink-authors", ""), ("link-authors", "same person"),
    ]  # fmt: skip


@pytest.mark.parametrize("more", [{"network_days": 7}, {"mailbox": True}, {"days": 0}])
def test_a_ban_takes_no_network_and_no_mailbox(
    client: FlaskClient, token: str, comment: str, more: dict[str, object]
) -> None:
    path = f"{api_requests.ONE}{comment}/ban"
    answer = client.put(path, json=more, headers=moderators.bearer(token))
    assert (answer.status_code, answer.get_json()["field"]) == (400, next(iter(more)))
    assert rulebook.from_store("demo").bans == ()


def test_a_moderator_replies_as_staff_and_gets_no_token(
    client: FlaskClient, token: str, comment: str
) -> None:
    sent = {"name": "ignored", "body": "Please stay polite.", "parent": comment}
    answer = client.post(HELD, json=sent, headers=moderators.bearer(token))
    assert answer.status_code == 201, answer.text
    posted = answer.get_json()
    assert posted.keys() == {"comment"}
    assert posted["comment"]["author"] == {"name": "Ann", "website": "", "kind": "staff"}
    assert posted["comment"]["parent"] == comment


def test_a_token_is_refused_on_other_sites(
    client: FlaskClient, token: str, comment: str, settings: Any
) -> None:
    blog = site_settings.add("blog", [moderators.ORIGIN], scheme=settings.scheme, now=here())
    theirs = sample_threads.post(blog, "theirs", thread="t", now=here()).id
    headers = moderators.bearer(token)
    for answer in (
        decide(client, token, theirs),
        client.put(f"{api_requests.ONE}{theirs}/ban", json={}, headers=headers),
        client.get(HELD.replace("demo", "blog"), headers=headers),
        client.post(HELD.replace("demo", "blog"), json={"name": "a", "body": "b"}, headers=headers),
    ):
        assert_refused(answer, 401, "token-of-other-site")
    assert decisions.case("blog", theirs).comment.status is Status.APPROVED
    assert rulebook.from_store("blog").bans == ()
    assert decide(client, token, comment).status_code == 200


def test_a_token_works_on_pages_of_its_own_origin_only(
    client: FlaskClient, token: str, comment: str
) -> None:
    other = "https://www.demo.example"
    foreign = {"Origin": other, "Sec-Fetch-Site": "cross-site"}
    for registered in (False, True):
        if registered:
            site_settings.change("demo", origins=[moderators.ORIGIN, other])
        assert_refused(decide(client, token, comment, headers=foreign), 403, "origin-not-allowed")
        answer = client.get(HELD, headers=moderators.bearer(token, **foreign))
        assert_refused(answer, 403, "origin-not-allowed")
    assert status(comment) is Status.APPROVED
    site_settings.change("demo", origins=[other])
    assert_refused(decide(client, token, comment), 403, "origin-not-allowed")


def test_a_preflight_names_only_registered_origins_also_for_a_held_comment(
    client: FlaskClient, comment: str
) -> None:
    hold(comment)
    for path in (f"{api_requests.ONE}{comment}/decision", f"{api_requests.ONE}{comment}/ban", HELD):
        answer = client.options(path, headers=moderators.ON_PAGE)
        assert answer.headers["Access-Control-Allow-Origin"] == moderators.ORIGIN
        foreign = client.options(path, headers={"Origin": "https://evil.example"})
        assert "Access-Control-Allow-Origin" not in foreign.headers


def test_an_unknown_comment_is_not_found_with_a_token_and_unknown_without(
    client: FlaskClient, token: str
) -> None:
    assert_refused(decide(client, token, api_requests.NOBODY), 404, "comment-not-found")
    path = f"{api_requests.ONE}{api_requests.NOBODY}/decision"
    assert_refused(client.post(path, json={"verb": "hide"}), 401, "no-token")


def test_a_refusal_can_be_read_by_the_page(client: FlaskClient, comment: str) -> None:
    refused = decide(client, f"m.{'a' * 26}.{'b' * 43}", comment)
    assert_refused(refused, 401, "token-expired")
    assert refused.headers["Access-Control-Allow-Origin"] == moderators.ORIGIN


def test_an_expired_token_decides_nothing(
    client: FlaskClient, ann: accounts.Account, comment: str
) -> None:
    token = moderators.token(ann, now=here() - moderation_sessions.TERM - timedelta(seconds=1))
    assert_refused(decide(client, token, comment), 401, "token-expired")
    assert status(comment) is Status.APPROVED


def test_a_token_ends_with_the_role(
    client: FlaskClient, ann: accounts.Account, token: str, comment: str
) -> None:
    accounts.grant(ann.id, None, "demo", account_holders.cause())
    assert_refused(decide(client, token, comment), 401, "token-expired")
    assert status(comment) is Status.APPROVED


@pytest.mark.parametrize("how", ["console", "command"])
def test_switching_moderation_off_ends_all_tokens_for_good(
    app: flask.Flask, client: FlaskClient, token: str, comment: str, how: str
) -> None:
    def switch(*, on: bool) -> None:
        if how == "command":
            name = "--moderation" if on else "--no-moderation"
            assert app.test_cli_runner().invoke(args=["site", "set", "demo", name]).exit_code == 0
            return
        owner = accounts.by_text("owner", account_holders.SECRET)
        window = moderators.window(app, owner)
        found = window.client.get("/admin/sites/demo/settings").text
        form = {
            "form": found.split('name="form" value="')[1].partition('"')[0],
            "votes": "on", "website": "on", "guests": "on", "live": "60", "order": "thread",
            "images": "", "theme": "auto", "language": "", **({"moderation": "on"} if on else {}),
        }  # fmt: skip
        own = {"Sec-Fetch-Site": "same-origin"}
        path = "/admin/sites/demo/settings/options"
        assert window.client.post(path, data=form, headers=own).status_code == 303

    account_holders.account("owner", OWNER)
    switch(on=False)
    assert_refused(decide(client, token, comment), 403, "moderation-off")
    switch(on=True)
    assert_refused(decide(client, token, comment), 401, "token-expired")
    assert status(comment) is Status.APPROVED


def test_a_session_revoked_among_concurrent_decisions_decides_no_more(
    app: flask.Flask, open_store: connection.Store, ann: accounts.Account, site: records.Site
) -> None:
    begun = moderators.begun(ann)
    ids = [sample_threads.post(site, f"number {n}", thread="t", now=here()).id for n in range(12)]

    def act(one: str) -> int:
        if one == ids[5]:
            with open_store.context():
                moderation_sessions.revoke(ann.id, begun.session.id)
        return decide(app.test_client(), begun.token, one).status_code

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        answers = dict(zip(ids, pool.map(act, ids), strict=True))
    assert set(answers.values()) <= {200, 401}
    assert answers[ids[5]] == 401
    assert [status(one) is Status.HIDDEN for one in ids] == [answers[one] == 200 for one in ids]
    assert moderation_sessions.of_account(ann, now=here()) == []


def test_a_banned_moderator_keeps_no_special_way(client: FlaskClient, token: str) -> None:
    ann = accounts.by_text("ann", account_holders.SECRET)
    policy_changes.ban("demo", ann.author, ROOT, now=here())
    answer = client.post(HELD, json={"name": "a", "body": "b"}, headers=moderators.bearer(token))
    assert answer.status_code == 403
