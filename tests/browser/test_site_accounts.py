"""Readers who are signed in on the site use the widget under their site account."""

from collections.abc import Callable

import playwright.sync_api as playwright
import pytest
from playwright.sync_api import expect

from comments.accounts import accounts, identities
from comments.domain import records
from comments.store import connection
from tests.browser import widget_form
from tests.browser.conftest import OpenTab, Say, Website
from tests.browser.test_conversation import choices, choose, comment, signed_in
from tests.support.people import account_holders, site_tokens
from tests.support.people.account_holders import SECRET

pytestmark = pytest.mark.browser

Publish = Callable[[str], str]


@pytest.fixture
def publish(server: str, website: Website) -> Publish:
    """Publish a page that contains a site token; return the page's URL."""

    def made(token: str) -> str:
        return website.put(
            "page",
            f"<script type=module src='{server}/widget/flatthread.js' data-site=demo></script>"
            f"<div id=flatthread data-thread=demo data-account='{token}'></div>",
        )

    return made


@pytest.fixture
def secret(open_store: connection.Store, site: records.Site) -> str:
    with open_store.context():
        return site_tokens.share()


def _write(page: playwright.Page, body: str) -> None:
    form = page.get_by_role("form", name="Write a comment")
    form.get_by_role("textbox", name="Comment").fill(body)
    form.get_by_role("button", name="Post comment").click()
    expect(comment(page, body)).to_be_visible()


def test_a_reader_signed_in_on_the_site_posts_votes_and_edits(
    publish: Publish, open_tab: OpenTab, secret: str, say: Say
) -> None:
    say("Before")
    ann = site_tokens.token(secret)
    page = open_tab(publish(ann)).page
    signed_in(page, "Ann")
    expect(page.get_by_role("textbox", name="Name")).to_have_count(0)
    _write(page, "By Ann")
    expect(page.get_by_role("listitem", name="Comment by Ann")).to_be_visible()
    page.get_by_role("button", name="Upvote Ada's comment").click()
    expect(page.get_by_role("group", name="Score: 1")).to_be_visible()
    # The widget stores nothing that a later user of this browser could misuse.
    kept = page.evaluate("JSON.stringify(localStorage)")
    assert '"a.' not in kept
    assert ann not in kept

    page.reload()
    expect(page.get_by_role("button", name="Upvote Ada's comment")).to_have_attribute(
        "aria-pressed", "true"
    )
    choose(comment(page, "By Ann"), "Edit")
    form = page.get_by_role("form", name="Edit your comment")
    form.get_by_role("textbox", name="Comment").fill("Edited by Ann")
    form.get_by_role("button", name="Save changes").click()
    expect(comment(page, "Edited by Ann")).to_be_visible()

    # First, a second reader is signed in to the site in the same browser; then, no reader is.
    page.goto(publish(site_tokens.token(secret, sub="43", name="Bob")))
    signed_in(page, "Bob")
    assert "Edit" not in choices(comment(page, "Edited by Ann"))
    page.goto(publish(""))
    expect(widget_form.opened(page).get_by_role("textbox", name="Name")).to_have_value("")
    assert "Edit" not in choices(comment(page, "Edited by Ann"))

    page.goto(publish(site_tokens.token(secret)))
    signed_in(page, "Ann")
    choose(comment(page, "Edited by Ann"), "Delete")
    page.get_by_role("button", name="Delete comment").click()
    expect(comment(page, "Edited by Ann")).to_have_count(0)


def test_an_invalid_token_leaves_an_informed_guest(
    publish: Publish, open_tab: OpenTab, secret: str
) -> None:
    tab = open_tab(publish(site_tokens.token("another secret of thirty-two bytes")))
    tab.expect_status(401)
    expect(tab.page.get_by_text("Sign-in failed.")).to_be_visible()
    expect(widget_form.opened(tab.page).get_by_role("textbox", name="Name")).to_be_visible()


def test_an_account_with_an_expired_token_does_not_become_a_guest(
    publish: Publish, open_tab: OpenTab, secret: str, open_store: connection.Store
) -> None:
    tab = open_tab(publish(site_tokens.token(secret)))
    signed_in(tab.page, "Ann")
    with open_store.context():
        ann = accounts.by_identity(identities.of_provider("site/demo", "42"), SECRET)
        assert ann is not None
        accounts.end_sessions(ann.id, account_holders.cause())
    tab.expect_status(401)
    form = tab.page.get_by_role("form", name="Write a comment")
    form.get_by_role("textbox", name="Comment").fill("By whom?")
    form.get_by_role("button", name="Post comment").click()
    expect(form.get_by_text("sign in again")).to_be_visible()
    expect(tab.page.get_by_role("listitem")).to_have_count(0)
    expect(form.get_by_role("textbox", name="Comment")).to_have_value("By whom?")
