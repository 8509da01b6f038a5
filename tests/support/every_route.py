"""List the application's routes, each with an example request and the status that each caller gets.

`ROWS` has one row per route: how to request it, and the status for each of `CALLERS`. The tests
fail if a route has no row or a row has no route.

A row for a new route looks like this:

    Row("POST", "/admin/queue/<comment:comment_id>/approve",
        {"moderator": 303, "owner": 303, "elsewhere": 403}, others=303, form={}),

`others` is the status for every caller that the row does not name. Each call acts on a new comment
by `author`, so no call sees another call's effect. A call with a status below 400 must take effect;
a call with a status of 400 or above must leave the comment unchanged.
"""

import contextlib
import dataclasses
import re
import secrets
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TypeVar

import flask
import msgspec
import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from comments import app as apps
from comments import config
from comments.accounts import accounts
from comments.accounts.links import email_login, invitations, one_time_links
from comments.domain import records
from comments.domain.crypto import encryption
from comments.domain.moderation import roles, staff_notices
from comments.limits.site_request import SiteRequest
from comments.notifications import double_opt_in, form_tokens, moderation_links
from comments.notifications.staff import staff_links
from comments.posting import admission, new_comment
from comments.sites import site_settings
from comments.store import connection, transactions
from comments.web.api.callers import api_tokens
from comments.web.sign_in import signed_in
from tests.support import datastores
from tests.support.outside import mail_server
from tests.support.people import account_holders, provider_login
from tests.support.people.account_holders import PASSWORD, SECRET
from tests.support.threads import sample_threads

# The callers, in this order: a caller without a token, a guest, the comment's author (also a
# guest), a reader with an account, a moderator of a different site, a moderator of this site, the
# service's owner.
CALLERS = ("nobody", "guest", "author", "other", "elsewhere", "moderator", "owner")
STAFF = {
    "elsewhere": roles.Grant(roles.Role.MODERATOR, "blog"),
    "moderator": roles.Grant(roles.Role.MODERATOR, "demo"),
    "owner": roles.Grant(roles.Role.OWNER, roles.SERVICE),
}
# The API ignores cookies, so staff without a token are anonymous in API calls.
TOKEN = {"nobody": 401, "elsewhere": 401, "moderator": 401, "owner": 401}
SIGNED_IN = {"elsewhere": 200, "moderator": 200, "owner": 200}
ACTS = dict.fromkeys(STAFF, 303)


@dataclasses.dataclass(frozen=True)
class Row:
    """A route, a request for it, and the status for each caller."""

    method: str
    rule: str
    statuses: dict[str, int]
    others: int
    query: dict[str, str] = dataclasses.field(default_factory=dict)
    json: dict | None = None
    form: dict[str, str] | None = None
    made: Callable[["AllRoles"], dict[str, str]] | None = (
        None  # Makes the query or form of one call
    )
    chosen: bool = False  # Whether the form names the comment


class AllRoles:
    """One application with all callers; it provides a new comment by the author for each call."""

    def __init__(
        self, datastore: datastores.Datastore, store: connection.Store, app: flask.Flask
    ) -> None:
        self.datastore = datastore
        self.store = store
        self.app = app
        now = datetime.now(UTC)
        site_settings.add(
            "demo", ["https://demo.example"], scheme=sample_threads.SETTINGS.scheme, now=now
        )
        self.site = site_settings.change("demo", options={"forms": True, "inbox": True})
        site_settings.add(
            "blog", ["https://blog.example"], scheme=sample_threads.SETTINGS.scheme, now=now
        )
        self.tokens = {
            name: api_tokens.sign(api_tokens.Guest("demo", f"g:{name}"), secret=SECRET)
            for name in ("guest", "author")
        }
        other = account_holders.account("other", password="")
        member = api_tokens.Member("demo", other.id, other.epoch)
        self.tokens["other"] = api_tokens.sign(member, secret=SECRET)
        for name, grant in STAFF.items():
            account_holders.account(name, grant)
        provider_login.know(store)

    def client(self, caller: str) -> FlaskClient:
        """Return a caller's browser with a new session, so a call may end the session."""
        client = self.app.test_client()
        if caller in STAFF:
            found = accounts.by_text(caller, SECRET)
            begun = account_holders.session(found.id)
            client.set_cookie(signed_in.COOKIE, begun.token)
        return client

    def comment(self) -> records.Comment:
        draft = admission.Submission("t", None, records.Author("Ann", id="g:author"), "Hello")
        return new_comment.post(draft, SiteRequest(self.site, SETTINGS, datetime.now(UTC))).comment

    def ask(
        self, row: Row, caller: str, comment: str, *, before: Callable[[], None] = lambda: None
    ) -> TestResponse:
        """Send a caller's request; `before` runs once all parts of the request exist."""
        client, headers = self.client(caller), {}
        if caller in self.tokens:
            headers["Authorization"] = f"Bearer {self.tokens[caller]}"
        made = {} if row.made is None else row.made(self)
        form = None if row.form is None else {**row.form, **made}
        if form is not None and row.chosen:
            form[f"c.{comment}"] = "1"
        if form is not None and row.rule.startswith(("/admin", "/sign-in", "/moderate")):
            headers["Sec-Fetch-Site"] = "same-origin"
            page = client.get("/admin/account").text
            found = re.search(r'name="form" value="([a-z2-7]{52})"', page)
            form["form"] = found[1] if found else ""
        query = {**row.query, **({} if row.form is not None else made)}
        before()
        return client.open(
            path_of(row.rule, comment), method=row.method, query_string=query, headers=headers,
            json=row.json, data=form,
        )  # fmt: skip


SETTINGS = config.Settings(secret=SECRET)


def path_of(rule: str, comment: str) -> str:
    segments = {
        "site_id": "demo", "comment_id": comment, "name": "flatthread.js", "example": "events",
        "rest": "none", "job": "a", "table": "pages",
    }  # fmt: skip
    return re.sub(r"<(?:\w+:)?(\w+)>", lambda found: segments[found[1]], rule)


def _invitation(_world: AllRoles) -> dict[str, str]:
    # The grant is for a site that no other row uses, because an accepted grant would give access to
    # the data that later rows request.
    grant = roles.Grant(roles.Role.MODERATOR, "club")
    return {"token": account_holders.invite(grant, now=datetime.now(UTC))}


def _pending(_world: AllRoles) -> dict[str, str]:
    grant, now = roles.Grant(roles.Role.MODERATOR, "club"), datetime.now(UTC)
    account_holders.invite(grant, now=now)
    return {"id": invitations.list_pending(secret=SECRET, now=now)[-1].id}


def _colleague(_world: AllRoles) -> dict[str, str]:
    grant = roles.Grant(roles.Role.MODERATOR, "club")
    return {"id": account_holders.account(f"n{accounts.new_id()}", grant).id}


def _new_account(service: AllRoles) -> dict[str, str]:
    token = _invitation(service)["token"]
    return {"token": token, "name": "New", "login": f"n{accounts.new_id()}", "password": PASSWORD}


def _reset(_world: AllRoles) -> dict[str, str]:
    lost = account_holders.account(f"n{accounts.new_id()}", password="")
    token = invitations.issue_reset(lost, account_holders.cause(datetime.now(UTC)))
    return {"token": token, "password": PASSWORD}


def _ending(_world: AllRoles) -> dict[str, str]:
    return {
        "token": double_opt_in.unsubscribe_link(
            double_opt_in.Unsubscription("a" * 26, ("replies:b",)), SECRET
        )
    }


def _leaving(_world: AllRoles) -> dict[str, str]:
    who = staff_notices.StaffRecipient("mod@example.org", staff_notices.NoticeChoice.HELD)
    return {"token": staff_links.link("demo", who, secret=SECRET, now=datetime.now(UTC))}


def _email_login(service: AllRoles) -> dict[str, str]:
    now, key = datetime.now(UTC), one_time_links.new_token()
    content = msgspec.json.encode({"site": "demo", "content": "x"}).decode()
    transactions.transaction(
        lambda: transactions.apply(
            one_time_links.issue_writes(
                key,
                one_time_links.LinkPurpose.SIGN_IN,
                content,
                SECRET,
                now=now,
                term=email_login.TERM,
            )
        )
    )
    link = msgspec.json.encode([key, service.site.id, "ann@example.org"]).decode()
    return {"token": encryption.seal(link, "sign-in link", SECRET, now=now)}


def _confirming(_world: AllRoles) -> dict[str, str]:
    request = double_opt_in.SubscriptionRequest(
        "ann@example.org", "demo", "", "g:author", replies=True, id=accounts.new_id()
    )
    text = msgspec.json.encode(request).decode()
    return {"token": encryption.seal(text, "confirm", SECRET, now=datetime.now(UTC))}


def _deciding(service: AllRoles) -> dict[str, str]:
    comment, now = service.comment(), datetime.now(UTC)
    return {"token": moderation_links.link(comment, "gone@demo.example", secret=SECRET, now=now)}


def _challenge(_world: AllRoles) -> dict[str, str]:
    # A challenge is valid for one grant.
    return {"challenge": secrets.token_urlsafe(32)}


def _form(link: Callable[[AllRoles], dict[str, str]], purpose: str) -> Callable[[AllRoles], dict]:
    """Return the form that a link's page posts."""

    def made(service: AllRoles) -> dict[str, str]:
        token = form_tokens.make(link(service)["token"], purpose, SECRET, now=datetime.now(UTC))
        return {"token": token}

    return made


T = {"thread": "t"}
API = "/api/v1"
SITE = f"{API}/sites/<site:site_id>"
ONE = f"{API}/comments/<comment:comment_id>"
WINDOW = {"origin": "https://demo.example", "challenge": "c" * 43}
ADDRESS = {"email": "ann@example.org", "thread": True}
AUDIENCES = {"audiences": '{"all": {"site": true}}'}
ROWS = [
    # Public routes: everyone may read.
    Row("GET", "/", {}, 200),
    Row("GET", "/examples", {}, 200),
    Row("GET", "/examples/<example>", {}, 200),
    Row("GET", "/healthz", {}, 200),
    # Only a monitoring system with METRICS_TOKEN may read these.
    Row("GET", "/metrics", {}, 404),
    Row("GET", "/metrics.json", {}, 404),
    Row("GET", "/widget/<name>", {}, 200),
    Row("GET", f"{API}/openapi.json", {}, 200),
    Row("GET", f"{SITE}/comments", {}, 200, query=T),
    Row("GET", f"{SITE}/threads", {}, 200, query={"category": "news"}),
    Row("GET", f"{SITE}/comment", {}, 200, query=T | {"slug": "1"}),
    Row("GET", ONE, {}, 200),
    Row("GET", f"{ONE}/replies", {}, 200),
    Row("GET", f"{SITE}/authors", {}, 200),
    Row("GET", f"{SITE}/challenge", {}, 200),
    Row("GET", f"{SITE}/subscription", {}, 200),
    Row("POST", f"{SITE}/counts", {}, 200, json={"threads": ["t"]}),
    Row("POST", f"{SITE}/preview", {}, 200, json={"body": "b"}),
    Row("GET", "/embed/<site_id>", {}, 200, query=T),
    Row("GET", "/embed/<site_id>/fragment", {}, 200, query=T),
    Row("POST", "/embed/<site_id>", {}, 303, query=T,
        form={"name": "Ann", "body": "b", "key": "0" * 32}),
    Row("GET", "/embed/<site_id>/waiting", {}, 200, query=T),
    Row("GET", "/feeds/<site:site_id>", {}, 200),
    Row("GET", "/feeds/<site:site_id>/thread", {}, 200, query=T),
    # Every caller may post, as the author that the token names, and may change only their own
    # comments.
    Row("POST", f"{SITE}/comments", {}, 201, query=T, json={"name": "Ann", "body": "b"}),
    Row("PUT", f"{SITE}/subscription", {}, 202, query=T, json=ADDRESS),
    Row("PUT", f"{ONE}/vote", {"author": 403}, 200, json={"value": 1}),
    Row("DELETE", f"{ONE}/vote", {**TOKEN, "author": 403}, 200),
    Row("GET", f"{SITE}/votes", TOKEN, 200, query=T),
    Row("GET", f"{SITE}/following", TOKEN, 200, query=T),
    Row("PUT", f"{SITE}/following", TOKEN, 200, query=T),
    # No row follows this thread.
    Row("PUT", f"{SITE}/following/name", TOKEN, 409, query={"thread": "unfollowed"},
        json={"name": "Ann"}),
    Row("DELETE", f"{SITE}/following", TOKEN, 200, query=T),
    Row("GET", f"{SITE}/followed", TOKEN, 200),
    Row("POST", f"{ONE}/report", {}, 202, json={"reason": "spam"}),
    Row("GET", f"{SITE}/held", TOKEN, 200, query=T),
    Row("GET", f"{SITE}/inbox", TOKEN, 200),
    Row("POST", f"{SITE}/inbox/read", TOKEN, 200, json={}),
    Row("PATCH", ONE, {**TOKEN, "author": 200}, 403, json={"body": "another"}),
    Row("DELETE", ONE, {**TOKEN, "author": 200}, 403),
    Row("DELETE", f"{SITE}/claims", TOKEN, 200),
    Row("GET", f"{SITE}/author", TOKEN, 200),
    Row("DELETE", f"{SITE}/author", TOKEN, 200),
    # The call needs a token that the site signed; no caller has such a token.
    Row("POST", f"{SITE}/session", {}, 401, json={"token": "a.b.c"}),
    # The call needs an answer that the site's classifier signed; no caller has such an answer.
    Row("POST", f"{SITE}/opinions", {}, 401, json={"question": "q", "verdict": "approve"}),
    Row("POST", f"{SITE}/sign-in", {}, 202, json={"email": "ann@example.org"}),
    Row("POST", f"{SITE}/sign-in/code", {}, 401, json={"key": "k", "code": "c", "name": "Ann"}),
    Row("GET", f"{SITE}/sign-in", {}, 200),
    # These calls need a moderator's token, which no caller has; the service does not accept theirs.
    Row("POST", f"{SITE}/moderation/session", {}, 401, json={"verifier": "v" * 43, "code": "c"}),
    Row("DELETE", f"{SITE}/moderation/session", {}, 401),
    Row("GET", f"{SITE}/moderation/comments", {}, 401, query=T),
    *(
        Row("GET", f"{SITE}/moderation/statistics/{call}", {}, 401, query=query)
        for call, query in {
            "categories": {}, "category-commenters": {"category": "news"}, "thread-commenters": T,
            "thread-followers": T,
            "author-categories": {"author": "g:author"}, "author-threads": {"author": "g:author"},
            "audiences": AUDIENCES, "audience-cost": AUDIENCES, "audience-commenters": AUDIENCES,
            "counters": {}, "counter-numbers": {"counter": "any"},
            "pages": {}, "people": {}, "hours": {}, "days": {},
        }.items()
    ),
    Row("POST", f"{SITE}/moderation/comments", {}, 401, query=T, json={"name": "A", "body": "b"}),
    Row("POST", f"{ONE}/decision", {}, 401, json={"verb": "hide"}),
    Row("PUT", f"{ONE}/ban", {}, 401, json={}),
    Row("DELETE", f"{ONE}/ban", {}, 401),
    Row("GET", f"{SITE}/moderation/author-links", {}, 401, query={"author": "g:author"}),
    Row("PUT", f"{SITE}/moderation/author-links", {}, 401,
        json={"author": "g:author", "other": "g:nobody"}),
    Row("DELETE", f"{SITE}/moderation/author-links", {}, 401,
        query={"author": "g:author", "other": "g:nobody"}),
    # The session decides: staff of this site get the button, and others the sign-in form.
    Row("GET", "/moderate/sites/<site:site_id>", {"elsewhere": 403}, 200, query=WINDOW),
    Row("POST", "/moderate/sites/<site:site_id>", {"moderator": 200, "owner": 200}, 403,
        form={"origin": WINDOW["origin"]}, made=_challenge),
    # The origin is not registered. Sign-ins that begin here would use up the network's attempts.
    Row("POST", "/moderate/sites/<site:site_id>/sign-in", {}, 403,
        form={**WINDOW, "origin": "https://evil.example", "login": "owner", "password": PASSWORD}),
    Row("POST", "/moderate/sites/<site:site_id>/provider", {}, 403,
        form={**WINDOW, "origin": "https://evil.example", "provider": "acme"}),
    Row("POST", "/moderate/sites/<site:site_id>/code", {}, 400,
        form={**WINDOW, "token": "t" * 43, "code": "0"}),
    Row("POST", f"{SITE}/sign-in/provider", {}, 401, json={"verifier": "v" * 43, "code": "c"}),
    # Everyone may start a login at a provider; a return without a started login is refused.
    Row("GET", "/sign-in/sites/<site:site_id>", {}, 200, query=WINDOW),
    Row("POST", "/sign-in/sites/<site:site_id>", {}, 200, form={**WINDOW, "provider": "acme"}),
    Row("GET", "/sign-in/return", {}, 403, query={"state": "s" * 43, "code": "c"}),
    Row("GET", "/sign-in", {}, 200),
    Row("POST", "/sign-in", {}, 200, form={}, made=_email_login),
    # Anyone who has the link has permission.
    Row("GET", "/subscriptions/confirm", {}, 200, made=_confirming),
    Row("POST", "/subscriptions/confirm", {}, 200, form={}, made=_form(_confirming, "confirm")),
    Row("GET", "/subscriptions/unsubscribe", {}, 200, made=_ending),
    Row("POST", "/subscriptions/unsubscribe", {}, 200, form={}, made=_form(_ending, "unsubscribe")),
    Row("POST", "/subscriptions/unsubscribe/all", {}, 200, form={},
        made=_form(_ending, "unsubscribe")),
    Row("POST", "/subscriptions/unsubscribe/address", {}, 200, form={},
        made=_form(_ending, "unsubscribe")),
    Row("GET", "/notices/unsubscribe", {}, 200, made=_leaving),
    Row("POST", "/notices/unsubscribe", {}, 200, form={}, made=_form(_leaving, "notices")),
    # The same applies to a link in a moderator's mail, but this moderator has lost the role.
    Row("GET", "/decisions", {}, 400, made=_deciding),
    Row("POST", "/decisions/approve", {}, 400, form={}, made=_form(_deciding, "decide")),
    Row("POST", "/decisions/reject", {}, 400, form={}, made=_form(_deciding, "decide")),
    Row("POST", "/decisions/spam", {}, 400, form={}, made=_form(_deciding, "decide")),
    # Cron jobs and tasks send a separate secret.
    Row("GET", "/tasks/upkeep", {}, 403),
    Row("GET", "/tasks/deliver", {}, 403),
    # The session identifies owners and moderators.
    Row("GET", "/admin", SIGNED_IN, 303),
    Row("GET", "/admin/", {}, 303),
    Row("GET", "/admin/sites", {}, 303),
    # Only the service's owner may add a website. The name is not valid, so nothing is added.
    Row("POST", "/admin/sites", {"owner": 400}, 403,
        form={"short_name": "a b", "origin": "https://demo.example"}),
    Row("GET", "/admin/<path:rest>", {}, 404),
    Row("GET", "/admin/sites/", {}, 303),
    Row("GET", "/admin/account", SIGNED_IN, 303),
    Row("GET", "/admin/sign-in", {}, 200),
    Row("GET", "/admin/welcome", {}, 200),
    Row("GET", "/admin/reset", {}, 200),
    Row("POST", "/admin/sign-in", {}, 303, form={"login": "owner", "password": PASSWORD}),
    Row("POST", "/admin/welcome", {}, 303, form={}, made=_new_account),
    Row("GET", "/admin/address", {}, 200),
    # Nobody has a link.
    Row("POST", "/admin/address", dict.fromkeys(STAFF, 400), 403, form={"token": "t"}),
    Row("POST", "/admin/welcome/accept", ACTS, 403, form={}, made=_invitation),
    Row("POST", "/admin/reset", {}, 303, form={}, made=_reset),
    Row("POST", "/admin/sign-in/provider", {}, 200, form={"provider": "acme"}),
    Row("POST", "/admin/welcome/provider", {}, 200, form={"token": "t", "provider": "acme"}),
    Row("POST", "/admin/sign-in/code", {}, 400, form={"token": "t" * 43, "code": "0"}),
    Row("POST", "/admin/sign-in/passkey/options", {}, 200, form={}),
    Row("POST", "/admin/sign-in/passkey", {}, 403, form={"answer": "{}"}),
    Row("POST", "/admin/account/provider", SIGNED_IN, 403,
        form={"current": PASSWORD, "provider": "acme"}),
    # No account is linked. The service refuses callers without permission before it looks up the
    # link.
    Row("POST", "/admin/account/provider/remove", dict.fromkeys(STAFF, 404), 403,
        form={"current": PASSWORD, "provider": "acme"}),
    Row("POST", "/admin/sign-out", ACTS, 403, form={}),
    Row("POST", "/admin/sign-out/everywhere", ACTS, 403, form={}),
    Row("POST", "/admin/account/password", ACTS, 403,
        form={"current": PASSWORD, "password": PASSWORD}),
    Row("POST", "/admin/account/address", dict.fromkeys(STAFF, 200), 403,
        form={"current": PASSWORD, "email": "new@example.org"}),
    # The secret is invalid. The service refuses callers without permission before it checks the
    # secret.
    Row("POST", "/admin/account/authenticator", dict.fromkeys(STAFF, 400), 403,
        form={"current": PASSWORD, "key": "x", "code": "0"}),
    # No account has an authenticator.
    Row("POST", "/admin/account/recovery", dict.fromkeys(STAFF, 409), 403,
        form={"current": PASSWORD}),
    Row("POST", "/admin/account/passkeys/options", dict.fromkeys(STAFF, 200), 403,
        form={"current": PASSWORD}),
    Row("POST", "/admin/account/passkeys", dict.fromkeys(STAFF, 403), 403,
        form={"name": "Phone", "answer": "{}"}),
    Row("POST", "/admin/account/passkeys/remove", dict.fromkeys(STAFF, 404), 403,
        form={"current": PASSWORD, "id": "a"}),
    Row("POST", "/admin/account/moderation/end", ACTS, 403, form={"session": "a" * 26}),
    Row("POST", "/admin/account/authenticator/remove", ACTS, 403, form={"current": PASSWORD}),
]  # fmt: skip

# Only a site's staff may open its console; everyone else gets 404.
DESK = "/admin/sites/<site:site_id>"
AT_DESK = {"moderator": 200, "owner": 200, "elsewhere": 404}
TEAM = {"owner": 200, "elsewhere": 403, "moderator": 403}
DECIDE = {**AT_DESK, "nobody": 403, "guest": 403, "author": 403, "other": 403}
SETTLE = {**DECIDE, "moderator": 303, "owner": 303}
ROWS += [
    Row("GET", DESK, {"elsewhere": 404}, 303),
    Row("GET", f"{DESK}/", {"elsewhere": 404}, 303),
    Row("GET", f"{DESK}/queue", AT_DESK, 303),
    Row("GET", f"{DESK}/queue/all", AT_DESK, 303),
    Row("GET", f"{DESK}/queue/news", AT_DESK, 303, query={"since": "2026-01-01T00:00:00+00:00"}),
    Row("POST", f"{DESK}/queue/all", {**SETTLE, "moderator": 400, "owner": 400}, 403,
        form={"act": "approve", "asked": "2026-01-01T00:00:00+00:00", "reason": "x" * 600}),
    # There is no such job, but callers without permission must not learn this.
    Row("GET", f"{DESK}/queue/jobs/<job>", dict.fromkeys(STAFF, 404), 303),
    Row("GET", f"{DESK}/queue/jobs/<job>/state", dict.fromkeys(STAFF, 404), 303),
    Row("POST", f"{DESK}/queue/jobs/<job>", {**SETTLE, **dict.fromkeys(STAFF, 404)}, 403,
        form={"act": "cancel"}),
    Row("GET", f"{DESK}/comments/<comment:comment_id>", AT_DESK, 303),
    Row("GET", f"{DESK}/authors", AT_DESK, 303),
    Row("GET", f"{DESK}/author", AT_DESK, 303, query={"id": "g:author"}),
    Row("GET", f"{DESK}/threads", AT_DESK, 303),
    Row("GET", f"{DESK}/thread", AT_DESK, 303, query=T),
    Row("GET", f"{DESK}/log", AT_DESK, 303),
    Row("POST", f"{DESK}/queue", DECIDE, 403, form={"act": "spam"}, chosen=True),
    Row("POST", f"{DESK}/comments/<comment:comment_id>", DECIDE, 403, form={"act": "spam"},
        chosen=True),
    Row("POST", f"{DESK}/comments/<comment:comment_id>/text", SETTLE, 403,
        form={"body": "Edited by staff."}),
    Row("POST", f"{DESK}/comments/<comment:comment_id>/reply", SETTLE, 403,
        form={"body": "A reply.", "key": "0123456789abcdef"}),
    Row("POST", f"{DESK}/author", DECIDE, 403, form={"act": "spam"}, query={"id": "g:author"},
        chosen=True),
    Row("POST", f"{DESK}/thread", DECIDE, 403, form={"act": "spam"}, query=T, chosen=True),
    Row("GET", f"{DESK}/reported", AT_DESK, 303),
    Row("POST", f"{DESK}/reported", DECIDE, 403, form={"act": "spam"}, chosen=True),
    Row("GET", f"{DESK}/rules", AT_DESK, 303),
    Row("POST", f"{DESK}/rules", SETTLE, 403,
        form={"act": "put", "id": "r", "action": "hold", "words": "nobody-says-this"}),
    Row("POST", f"{DESK}/rules/remove", {**SETTLE, "moderator": 404, "owner": 404}, 403,
        form={"id": "there-is-none"}),
    Row("GET", f"{DESK}/statistics", AT_DESK, 303),
    Row("GET", f"{DESK}/statistics/<table>.csv", AT_DESK, 303),
    Row("POST", f"{DESK}/bans", SETTLE, 403, form={"act": "ban"}, query={"id": "g:nobody"}),
    # The author is not linked, but callers without permission must not learn this.
    Row("POST", f"{DESK}/author/links", {**SETTLE, "moderator": 404, "owner": 404}, 403,
        form={"act": "unlink", "other": "g:somebody"}, query={"id": "g:nobody"}),
    Row("POST", f"{DESK}/thread/state", SETTLE, 403, form={"state": "open"}, query=T),
    Row("POST", f"{DESK}/thread/title", SETTLE, 403, form={"title": "A title"}, query=T),
    Row("GET", f"{DESK}/thread/followers", AT_DESK, 303, query=T),
    Row("GET", f"{DESK}/thread/stored", {**AT_DESK, "moderator": 403}, 303, query=T),
    Row("POST", f"{DESK}/thread/stored", {**DECIDE, "moderator": 403}, 403, form={"act": "check"},
        query=T),
    Row("GET", f"{DESK}/moves", {**AT_DESK, "moderator": 403}, 303),
    Row("POST", f"{DESK}/moves", {**DECIDE, "moderator": 403}, 403,
        form={"way": "list", "pages": "/none,/new"}),
    Row("POST", f"{DESK}/moves/doubles", {**SETTLE, "moderator": 403}, 403, form={"act": "look"}),
    # There is no such move, but callers without permission must not learn this.
    Row("POST", f"{DESK}/moves/undo", {**SETTLE, "moderator": 403, "owner": 409}, 403,
        form={"id": "x"}),
    # The entry does not exist, but callers without permission must not learn this.
    Row("POST", f"{DESK}/log", {**SETTLE, "moderator": 404, "owner": 404}, 403,
        form={"entry": "a" * 26}),
    # Only owners may change a site's settings.
    Row("GET", f"{DESK}/settings", {**AT_DESK, "moderator": 403}, 303),
    Row("POST", f"{DESK}/settings", {**SETTLE, "moderator": 403}, 403,
        form={"origins": "https://demo.example"}),
    Row("GET", f"{DESK}/start", {**AT_DESK, "moderator": 403}, 303),
    Row("GET", f"{DESK}/start/state", {**AT_DESK, "moderator": 403}, 303),
    # The service does not open this page, because it is not one of the site's.
    Row("POST", f"{DESK}/start/check", {**SETTLE, "moderator": 403, "owner": 200}, 403,
        form={"page": "https://elsewhere.example"}),
    Row("POST", f"{DESK}/start/origin", {**SETTLE, "moderator": 403}, 403,
        form={"origin": "https://demo.example"}),
    Row("POST", f"{DESK}/start/done", {**SETTLE, "moderator": 403}, 403, form={}),
    Row("POST", f"{DESK}/settings/policy", {**SETTLE, "moderator": 403}, 403,
        form={"policy": "off", "close_after": "0", "reports": "3"}),
    Row("POST", f"{DESK}/settings/options", {**SETTLE, "moderator": 403}, 403,
        form={"votes": "on", "website": "on", "guests": "on", "moderation": "on", "live": "60"}),
    # The site has this name already.
    # The origin is malformed; nothing is added.
    Row("POST", f"{DESK}/settings/copy", {**SETTLE, "moderator": 403, "owner": 400}, 403,
        form={"copy_name": "demo-staging", "origin": "ftp://x"}),
    Row("POST", f"{DESK}/settings/rename", {**SETTLE, "moderator": 403}, 403,
        form={"short_name": "demo"}),
    Row("POST", f"{DESK}/settings/origin", {**SETTLE, "moderator": 403}, 403,
        form={"origin": "https://demo.example"}),
    Row("GET", f"{DESK}/settings/delete", {**AT_DESK, "moderator": 403}, 303),
    # The form does not name the site, so nothing is deleted.
    Row("POST", f"{DESK}/settings/delete", {**SETTLE, "moderator": 403, "owner": 400}, 403,
        form={"site": "another", "current": PASSWORD}),
    # The site is not deleted, so nothing changes.
    Row("POST", f"{DESK}/undelete", {**SETTLE, "moderator": 403}, 403, form={}),
    Row("GET", f"{DESK}/advisers", {**AT_DESK, "moderator": 403}, 303),
    # There is nothing to remove, but callers without permission must not learn this.
    Row("POST", f"{DESK}/advisers", {**SETTLE, "moderator": 403, "owner": 404}, 403,
        form={"act": "remove", "name": "webhook"}),
    Row("GET", f"{DESK}/notifications", AT_DESK, 303),
    # Moderators choose only for themselves.
    Row("POST", f"{DESK}/notifications", {**SETTLE, "moderator": 403}, 403,
        form={"email": "ann@example.org", "choice": "daily", "hour": "7"}),
    # The accounts have no address to test.
    Row("POST", f"{DESK}/notifications/test", {**SETTLE, "moderator": 400, "owner": 400}, 403,
        form={}),
    Row("GET", f"{DESK}/connections", {**AT_DESK, "moderator": 403}, 303),
    # No type of message is chosen, but callers without permission must not learn this.
    Row("POST", f"{DESK}/connections", {**SETTLE, "moderator": 403, "owner": 400}, 403,
        form={"url": "https://hooks.example/in"}),
    # There is no such webhook, but callers without permission must not learn this.
    Row("POST", f"{DESK}/connections/change", {**SETTLE, "moderator": 403, "owner": 404}, 403,
        form={"act": "remove", "id": "x"}),
    Row("GET", f"{DESK}/audiences", {**AT_DESK, "moderator": 403}, 303, query={"every": "site"}),
    Row("GET", f"{DESK}/counters", {**AT_DESK, "moderator": 403}, 303),
    Row("POST", f"{DESK}/counters", {**DECIDE, "moderator": 403}, 403,
        form={"act": "cost", "name": "all"}),
    # There is no such counter, but callers without permission must not learn this.
    Row("POST", f"{DESK}/counters/remove", {**SETTLE, "moderator": 403, "owner": 404}, 403,
        form={"name": "none"}),
    Row("GET", f"{DESK}/sign-in", {**AT_DESK, "moderator": 403}, 303),
    # There is no such key, but callers without permission must not learn this.
    Row("POST", f"{DESK}/sign-in/keys", {**SETTLE, "moderator": 403, "owner": 404}, 403,
        form={"act": "remove", "id": "x"}),
    Row("GET", f"{DESK}/limits", {**AT_DESK, "moderator": 403}, 303),
    Row("POST", f"{DESK}/limits", {**SETTLE, "moderator": 403}, 403,
        form={"posts_per_network": "20"}),
    Row("POST", f"{DESK}/limits/budget", {**SETTLE, "moderator": 403}, 403, form={"posts": "0"}),
    Row("GET", f"{DESK}/imports", {**AT_DESK, "moderator": 403}, 303),
    Row("POST", f"{DESK}/imports", {**SETTLE, "moderator": 403}, 403,
        form={"act": "discard", "upload": "x"}),
    Row("POST", f"{DESK}/imports/upload", {**SETTLE, "moderator": 403, "owner": 200}, 403,
        form={"name": "a.xml", "size": "9"}),
    # The body of this call is a part of a file and not a form.
    Row("POST", f"{DESK}/imports/part", {**SETTLE, "moderator": 403, "owner": 415}, 403,
        query={"upload": "x", "number": "0"}, form={}),
    # There is no such upload, but callers without permission must not learn this.
    Row("POST", f"{DESK}/imports/finish", {**SETTLE, "moderator": 403, "owner": 409}, 403,
        form={"upload": "x"}),
    # There is no such import, but callers without permission must not learn this.
    Row("GET", f"{DESK}/imports/undo", {**AT_DESK, "moderator": 403, "owner": 409}, 303,
        query={"id": "x"}),
    Row("POST", f"{DESK}/imports/undo", {**SETTLE, "moderator": 403, "owner": 409}, 403,
        form={"id": "x"}),
    Row("GET", f"{DESK}/export", {**AT_DESK, "moderator": 403}, 303),
    Row("GET", f"{DESK}/imports/status", {**AT_DESK, "moderator": 403}, 303),
    Row("POST", f"{DESK}/turnstile", {**DECIDE, "moderator": 403}, 403, form={"act": "remove"}),
    Row("GET", f"{DESK}/team", {**AT_DESK, "moderator": 403}, 303),
    Row("POST", f"{DESK}/team/invite", {**SETTLE, "moderator": 403, "owner": 200}, 403,
        form={"current": PASSWORD}),
    Row("POST", f"{DESK}/team/withdraw", {**SETTLE, "moderator": 403, "owner": 400}, 403,
        form={"id": "a"}),
    # Owners of a site change only its moderators.
    Row("POST", f"{DESK}/team/role", {**SETTLE, "moderator": 403, "owner": 404}, 403,
        form={"current": PASSWORD, "role": "none"}, made=_colleague),
    Row("GET", "/admin/people", TEAM, 303),
    Row("POST", "/admin/people/invite", {"owner": 200}, 403,
        form={"current": PASSWORD, "role": "moderator", "site": "demo"}),
    Row("POST", "/admin/people/withdraw", {"owner": 303}, 403, form={}, made=_pending),
    Row("GET", "/admin/people/account", TEAM, 303, made=_colleague),
    Row("POST", "/admin/people/account", {"owner": 303}, 403,
        form={"current": PASSWORD, "act": "sign-out", "role": "owner", "site": "demo"},
        made=_colleague),
    Row("GET", "/admin/mail", TEAM, 303),
    # The environment names a mail server. Callers without permission must not learn this.
    Row("POST", "/admin/mail", {"owner": 409}, 403,
        form={"current": PASSWORD, "security": "smtps", "host": "", "port": "465", "sender": "x"}),
    Row("POST", "/admin/mail/test", {"owner": 200}, 403, form={"email": "ann@example.org"}),
    Row("POST", "/admin/mail/remove", {"owner": 303}, 403, form={"current": PASSWORD}),
    Row("GET", "/admin/people/data", TEAM, 303),
    Row("POST", "/admin/people/data/export", {"owner": 200}, 403,
        form={"current": PASSWORD, "author": "g:other"}),
    # There is nothing to erase.
    Row("POST", "/admin/people/data/erase", {"owner": 200}, 403,
        form={"current": PASSWORD, "author": "g:other"}),
    Row("POST", "/admin/people/data/forget", {"owner": 200}, 403,
        form={"current": PASSWORD, "email": "nobody@example.org"}),
    Row("GET", "/admin/service", TEAM, 303),
    Row("GET", "/admin/providers", TEAM, 303),
    # The name is not valid, so nothing is added.
    Row("POST", "/admin/providers", {"owner": 400}, 403,
        form={"current": PASSWORD, "name": "A B", "issuer": "x", "client": "x", "secret": "x"}),
    # There is no such provider, but callers without permission must not learn this.
    Row("POST", "/admin/providers/change", {"owner": 404}, 403,
        form={"current": PASSWORD, "act": "remove", "name": "none"}),
    Row("GET", "/admin/health", {"owner": 200, "elsewhere": 403, "moderator": 403}, 303),
    Row("POST", "/admin/health/check", {"owner": 200}, 403, form={}),
    Row("POST", "/admin/health/letters", {"owner": 404}, 403, form={"act": "drop", "id": "x"}),
]  # fmt: skip


W = TypeVar("W", bound=AllRoles)


@contextlib.contextmanager
def opened(kind: type[W], datastore: datastores.Datastore, **settings: str) -> Iterator[W]:
    """Yield a service that many tests share, inside its store's context."""
    with pytest.MonkeyPatch.context() as patch, mail_server.serving() as box:
        account_holders.weaken_passwords(patch)
        store = datastore.connect()
        with store.context():
            yield kind(datastore, store, apps.create_app(box.settings(**settings), store))
