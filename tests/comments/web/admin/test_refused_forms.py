"""A refused form of the console comes back with its error at the field, and with the other values.

`FORMS` has every form in which a person enters something. To add a form, add a row.
"""

import flask
import pytest

from comments.accounts import accounts
from comments.accounts.passwords import credentials, totp
from comments.domain import records
from comments.sites import site_settings
from comments.store import connection
from tests.support.html import html_reader
from tests.support.people import account_holders, provider_login
from tests.support.people.account_holders import PASSWORD, SECRET
from tests.support.people.account_holders import here as now
from tests.support.people.admin_forms import OWN
from tests.support.people.console_browser import DESK, Desk
from tests.support.threads import sample_threads

EVE = records.Author("Eve", id="g:eve")
TEXTS = {None, "text", "url", "email"}  # Types of fields that keep what was entered.
WRONG = "a wrong password"
KEY = "A" * 32
LONG = "x" * 600

# The path, what is sent, and the field at fault.
FORMS: list[tuple[str, dict[str, str], str]] = [
    ("/admin/sites", {"origin": "no address"}, "origin"),
    ("/admin/sites", {"origin": "https://c.example", "short_name": "C!"}, "short_name"),
    ("/admin/account/password", {"current": WRONG, "password": PASSWORD}, "current"),
    ("/admin/account/password", {"current": PASSWORD, "password": "short"}, "password"),
    ("/admin/account/address", {"current": WRONG, "email": "a@x.example"}, "current"),
    ("/admin/account/address", {"current": PASSWORD, "email": "a@"}, "email"),
    ("/admin/account/authenticator", {"current": PASSWORD, "key": KEY, "code": "1"}, "code"),
    ("/admin/account/authenticator/remove", {"current": WRONG}, "current"),
    ("/admin/account/recovery", {"current": WRONG}, "current"),
    ("/admin/people/invite", {"current": WRONG, "email": "a@x.example",
        "role": "owner", "site": "demo"}, "current"),
    ("/admin/people/invite", {"current": PASSWORD, "email": "a@", "role": "owner",
        "site": "demo"}, "email"),
    ("/admin/people/account", {"id": "{ann}", "act": "role", "site": "demo", "role": "owner",
        "current": WRONG}, "current"),
    ("/admin/people/account", {"id": "{ann}", "act": "remove", "current": WRONG}, "current"),
    ("/admin/people/data/forget", {"email": "a@x.example", "current": WRONG}, "current"),
    ("/admin/people/data/export", {"author": "g:eve", "current": WRONG}, "current"),
    ("/admin/people/data/erase", {"author": "g:eve", "current": WRONG}, "current"),
    ("/admin/mail", {"host": "a host", "security": "smtps", "port": "465", "sender": "a@x.example",
        "user": "ann", "password": "", "url": "https://x.example", "current": PASSWORD}, "host"),
    ("{desk}/bans?id=g:eve", {"act": "ban", "days": "x", "reason": "rude"}, "days"),
    ("{desk}/bans?id=g:eve", {"act": "ban", "network_days": "x", "days": "3"}, "network_days"),
    ("{desk}/bans?id=g:eve", {"act": "ban", "reason": LONG, "days": "3"}, "reason"),
    ("{desk}/comments/{comment}/text", {"body": " ", "reason": "a number"}, "body"),
    ("{desk}/comments/{comment}/text", {"body": "New", "reason": LONG}, "reason"),
    ("{desk}/comments/{comment}/reply", {"body": " ", "key": KEY}, "body"),
    ("{desk}/author/links?id=g:eve", {"act": "link", "other": "nobody", "reason": "rude"}, "other"),
    ("{desk}/thread/title?thread=page", {"title": "New", "url": "no address",
        "categories": ""}, "url"),
    ("{desk}/moves", {"way": "page", "old": "http:// a", "new": "/new"}, "old"),
    ("{desk}/moves", {"way": "pages", "old": "/old", "new": ""}, "new"),
    ("{desk}/moves", {"way": "pages", "old": "/a/*", "new": "/b"}, "old"),
    ("{desk}/moves", {"way": "list", "pages": "/old,/new\r\n/old"}, "pages"),
    ("{desk}/moves", {"way": "merge", "source": "/none", "target": "page"}, "source"),
    ("{desk}/moves", {"way": "merge", "source": "page", "target": "page"}, "target"),
    ("{desk}/moves", {"way": "split", "comment": "x" * 1600, "target": "/new"}, "comment"),
    ("{desk}/moves", {"way": "split", "comment": "{comment}", "target": ""}, "target"),
    ("{desk}/moves", {"way": "split", "comment": "{comment}", "target": "http:// a"}, "target"),
    ("{desk}/settings/policy", {"policy": "all", "reports": "x", "close_after": "7"}, "reports"),
    ("{desk}/settings/policy", {"policy": "all", "reports": "3", "close_after": "x"},
        "close_after"),
    ("{desk}/settings/options", {"order": "newest", "theme": "auto", "language": "de",
        "images": "https://i.example", "live": "x"}, "live"),
    ("{desk}/settings", {"title": "New", "origins": "no address", "moderators": "",
        "categories": "", "query_keys": "id", "cdn_seconds": "7", "freshness": "0"}, "origins"),
    ("{desk}/settings", {"title": "New", "origins": "https://c.example", "moderators": "",
        "categories": "", "query_keys": "id", "cdn_seconds": "x", "freshness": "0"},
        "cdn_seconds"),
    ("{desk}/settings", {"title": "New", "origins": "", "moderators": "no address",
        "categories": "", "query_keys": "id", "cdn_seconds": "7", "freshness": "0"},
        "moderators"),
    ("{desk}/settings/rename", {"short_name": "C!"}, "short_name"),
    ("{desk}/settings/rename", {"short_name": "blog"}, "short_name"),
    ("{desk}/settings/delete", {"site": "blog", "current": PASSWORD}, "site"),
    ("{desk}/settings/delete", {"site": "demo", "current": WRONG}, "current"),
    ("{desk}/limits", {"posts_per_author": "x", "posts_per_thread": "7", "reason": "few"},
        "posts_per_author"),
    ("{desk}/limits/budget", {"mails": "x", "posts": "7", "then": "slow", "reason": "few"},
        "mails"),
    ("{desk}/rules", {"act": "put", "id": "A!", "action": "spam", "words": "casino"}, "id"),
    ("{desk}/rules", {"act": "put", "id": "a", "action": "spam", "networks": "x"}, "networks"),
    ("{desk}/advisers", {"act": "set", "name": "webhook", "url": "no address"}, "url"),
    ("{desk}/turnstile", {"act": "set", "key": "k", "secret": "a b"}, "secret"),
    ("{desk}/connections", {"kind": "flatthread", "url": "no address", "posted": "on"}, "url"),
    ("{desk}/connections", {"kind": "slack", "url": "no address", "posted": "on"}, "url"),
    ("{desk}/connections", {"kind": "telegram", "token": "no token", "chat": "@x",
        "posted": "on"}, "token"),
    ("{desk}/counters", {"act": "add", "name": "A!", "where": "", "sum": "up"}, "name"),
    ("{desk}/counters", {"act": "add", "name": "a", "where": "x", "sum": "up"}, "where"),
    ("{desk}/sign-in/keys", {"act": "public", "public": "x"}, "public"),
    ("/admin/providers/change", {"act": "save", "name": "acme", "sites": "", "current": WRONG},
        "current"),
    ("{desk}/settings/copy", {"copy_name": "C!", "origin": "https://c.example"}, "copy_name"),
    ("{desk}/settings/copy", {"copy_name": "c", "origin": "no address"}, "origin"),
    ("{desk}/notifications", {"email": "a@", "choice": "held", "hour": "8"}, "email"),
    ("{desk}/team/invite", {"email": "a@x.example", "current": WRONG}, "current"),
    ("{desk}/team/invite", {"email": "a@", "current": PASSWORD}, "email"),
    ("{desk}/start/check", {"page": "no address"}, "page"),
    ("/admin/welcome", {"token": "t", "name": "", "login": "eve", "password": PASSWORD}, "name"),
]  # fmt: skip

# Forms with buttons, boxes and choices only, or whose errors are about the whole form.
BUTTONS = {
    "/admin/account/moderation/end",
    "/admin/address",
    "/admin/account/passkeys",  # These five need a passkey, which a script asks for.
    "/admin/account/passkeys/options",
    "/admin/account/passkeys/remove",
    "/admin/sign-in/passkey",
    "/admin/sign-in/passkey/options",
    "/admin/account/provider",
    "/admin/account/provider/remove",
    "/admin/health/check",
    "/admin/health/letters",
    "/admin/mail/remove",
    "/admin/mail/test",
    "/admin/people/withdraw",
    "/admin/providers",  # The form is shown only if the service knows its address.
    "/admin/reset",
    "/admin/sign-in",
    "/admin/sign-in/code",
    "/admin/sign-in/provider",
    "/admin/sign-out",
    "/admin/sign-out/everywhere",
    "/admin/welcome/accept",
    "/admin/welcome/provider",
    *(
        f"/admin/sites/<site:site_id>/{each}"
        for each in (
            "author", "comments/<comment:comment_id>", "connections/change", "imports",
            "imports/finish", "imports/part", "imports/undo", "imports/upload", "log",
            "moves/doubles", "moves/undo", "notifications/test", "queue", "queue/all",
            "queue/jobs/<job>", "reported", "counters/remove", "rules/remove", "settings/origin",
            "start/done", "start/origin", "team/role", "team/withdraw", "thread", "thread/state",
            "thread/stored", "undelete",
        )
    ),
}  # fmt: skip
# Forms that only an account with an authenticator has.
WITH_AUTHENTICATOR = {"/admin/account/authenticator/remove", "/admin/account/recovery"}


@pytest.mark.parametrize("form", FORMS)
def test_the_error_is_at_its_field_which_has_the_focus(
    app: flask.Flask,
    store: connection.Store,
    owner: Desk,
    site: records.Site,
    form: tuple[str, dict[str, str], str],
) -> None:
    path, sent, wrong = form
    comment = sample_threads.post(site, "Hello", thread="page", author=EVE)
    site_settings.add(
        "blog", ["https://blog.example"], scheme=sample_threads.SETTINGS.scheme, now=now()
    )
    provider_login.know(store)
    ann = accounts.by_text("ann", SECRET)
    if path in WITH_AUTHENTICATOR:
        credentials.set_totp(ann.id, totp.secret(), 0, account_holders.cause(now()))
        owner = Desk(app, "ann")
    sent = {
        name: text.replace("{ann}", ann.id).replace("{comment}", comment.id)
        for name, text in sent.items()
    }
    answer = owner.client.post(
        path.replace("{desk}", DESK).replace("{comment}", comment.id),
        data={"form": owner.token, **sent},
        headers=OWN,
    )
    assert 400 <= answer.status_code < 500
    elements = html_reader.Elements(answer.text).elements
    named = {values["id"]: values for _, values in elements if values.get("id")}
    faulty = [values for _, values in elements if "aria-invalid" in values]
    assert [values.get("name") for values in faulty] == [wrong]
    assert "autofocus" in faulty[0]
    described = (faulty[0].get("aria-describedby") or "").split()
    assert "ft-problem" in [named[name].get("class") for name in described]
    inputs = [values for tag, values in elements if tag == "input"]
    unkept = {each.get("name") for each in inputs if each.get("type") in {"password", "hidden"}}
    texts = {each.get("name") for each in inputs if each.get("type") in TEXTS}
    choices = {values.get("name") for tag, values in elements if tag == "select"}
    chosen = {values.get("value") for _, values in elements if "selected" in values}
    for name in sent.keys() & texts - unkept:
        assert (name, sent[name]) in {(each.get("name"), each.get("value")) for each in inputs}
    assert {sent[name] for name in sent.keys() & choices - unkept} <= chosen
    assert not any(each.get("value") for each in inputs if each.get("type") == "password")


def test_every_form_of_the_console_is_listed(app: flask.Flask) -> None:
    rules = {
        str(rule)
        for rule in app.url_map.iter_rules()
        if "POST" in (rule.methods or ()) and str(rule).startswith("/admin")
    }
    listed = {
        path.partition("?")[0]
        .replace("{desk}", "/admin/sites/<site:site_id>")
        .replace("{comment}", "<comment:comment_id>")
        for path, _, _ in FORMS
    }
    assert rules - listed - BUTTONS == set()
    assert rules >= BUTTONS
