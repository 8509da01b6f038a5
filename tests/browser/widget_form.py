"""The form at the top of a thread, which is one line until it is used."""

import playwright.sync_api as playwright
from playwright.sync_api import expect


def opened(page: playwright.Page | playwright.Locator) -> playwright.Locator:
    """Open the form, and return it when it is complete."""
    form = page.get_by_role("form", name="Write a comment")
    form.get_by_role("textbox", name="Comment").focus()
    expect(form.get_by_role("button", name="Post comment")).to_be_visible()
    return form


def fill(form: playwright.Locator, body: str, name: str) -> None:
    """Fill in a text and a name. A returning guest must first open the field for the name."""
    form.get_by_role("textbox", name="Comment").fill(body)
    change = form.get_by_role("button", name="Change name")
    if change.is_visible():
        change.click()
    form.get_by_role("textbox", name="Name").fill(name)
