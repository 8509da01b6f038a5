"""Owners set up Turnstile for a site with a command or in the admin console."""

from typing import Any

import click.testing
import flask

from comments.domain import records
from comments.events import audit_log
from comments.sites import site_settings
from comments.store import connection, reads
from tests.support.people import account_holders
from tests.support.people.account_holders import OWNER
from tests.support.people.console_browser import Desk


def test_commands_set_it_without_showing_the_secret(
    app: flask.Flask, site: records.Site, open_store: connection.Store
) -> None:
    runner = app.test_cli_runner()

    def run(*arguments: str, typed: str = "") -> click.testing.Result:
        return runner.invoke(args=["post-limits", *arguments], input=f"{typed}\n")

    done = run("turnstile", "demo", "0xKEY", "--then", "refuse", typed="0xSECRET")
    assert (done.exit_code, "0xSECRET" in done.output) == (0, False)
    shown = run("show", "demo").output
    assert "turnstile\t0xKEY\tif it does not answer: refuse\n" in shown
    assert "0xSECRET" not in shown + str(list(_rows(open_store, "Site")))
    with open_store.context():
        before = site_settings.get("demo").turnstile
    assert run("turnstile", "demo").exit_code == 0
    with open_store.context():
        after = site_settings.get("demo").turnstile
    assert before is not None
    assert after is not None
    assert (after.key, after.secret, after.refuses) == (before.key, before.secret, False)
    assert run("no-turnstile", "demo").exit_code == 0
    assert "turnstile" not in run("show", "demo").output
    for wrong in (
        run("turnstile", "demo", typed="x"), run("turnstile", "demo", "k"),
        run("turnstile", "demo", "a b", typed="x"), run("turnstile", "nowhere", "k", typed="x"),
        run("turnstile", "demo", "k", "--url", "http://inside", typed="x"),
        run("turnstile", "demo", "k", "--url", "https://10.0.0.1/", typed="x"),
        run("no-turnstile", "nowhere"),
    ):  # fmt: skip
        assert (wrong.exit_code, "Error: " in wrong.output) == (1, True), wrong.output


def _rows(store: connection.Store, kind: str) -> list[Any]:
    with store.context():
        return list(reads.fetch(reads.Query(kind)))


def test_an_owner_sets_it_in_the_console_and_never_sees_the_secret(
    app: flask.Flask, store: connection.Store, site: records.Site
) -> None:
    account_holders.account("ann", OWNER)
    owner = Desk(app, "ann")
    owner.settle("/turnstile", status=200, act="set", key="0xKEY", secret="0xSECRET")
    page = owner.page("/advisers")
    assert ("0xKEY" in page, "0xSECRET" in page, "New comments are held" in page) == (
        True,
        False,
        True,
    )
    owner.settle("/turnstile", status=200, act="set", key="0xKEY", refuses="on")
    found = site_settings.get("demo").turnstile
    assert found is not None
    assert found.refuses
    (one, other) = audit_log.log("demo")
    assert (one.verb, one.after, other.after) == ("set-site", "turnstile", "turnstile")
    for form in (
        {"act": "set", "secret": "\xe9"},
        {"act": "set", "key": "a b"},
        {"act": "x"},
        {"key": "k"},
    ):
        owner.settle("/turnstile", status=400, **form)
    owner.settle("/turnstile", status=200, act="remove")
    assert site_settings.get("demo").turnstile is None
    owner.settle("/turnstile", status=400, act="set", key="0xKEY")
