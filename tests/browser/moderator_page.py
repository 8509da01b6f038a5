"""A page on which a moderator decides about comments: its parts and its first steps."""

from collections.abc import Callable

import playwright.sync_api as playwright
from playwright.sync_api import expect

from comments.domain import records
from comments.domain.records import Status
from comments.moderation import decisions
from comments.store import connection
from tests.support.people.account_holders import PASSWORD

ROOT = records.Actor("cli", "Ada")
Hold = Callable[..., str]


def widget(server: str) -> str:
    return (
        "<html lang=en><meta name=color-scheme content='light dark'><title>Post</title>"
        "<style>@media (prefers-color-scheme: dark) { body { background: #111; color: #eee } }"
        "</style>"
        f"<main><h1>Post</h1><script type=module "
        f"src='{server}/widget/flatthread.js' data-site=demo></script>"
        "<div id=flatthread data-thread=demo></div></main>"
    )


def status(open_store: connection.Store, comment_id: str) -> Status:
    with open_store.context():
        return decisions.case("demo", comment_id).comment.status


def sign_in(window: playwright.Page) -> None:
    window.get_by_label("Name or e-mail address").fill("bob")
    window.get_by_label("Password").fill(PASSWORD)
    window.keyboard.press("Enter")


def offer(page: playwright.Page) -> playwright.Locator:
    """Go to the address for moderators; return the button."""
    page.evaluate("location.hash = 'moderate'")
    return page.get_by_role("button", name="Moderate here")


def begin(page: playwright.Page) -> None:
    """Begin to moderate, from the button below the thread to the bar above the list."""
    with page.expect_popup() as opened:
        offer(page).click()
    sign_in(opened.value)
    opened.value.get_by_role("button", name="Moderate here").click()
    expect(bar(page)).to_contain_text("Moderating as Bob until")


def bar(page: playwright.Page) -> playwright.Locator:
    return page.get_by_role("group", name="Moderation", exact=True)


def held(page: playwright.Page, name: str = "Eve") -> playwright.Locator:
    return page.get_by_role("group", name=f"Held comment by {name}")
