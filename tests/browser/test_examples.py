"""Drive each example of the page /examples in its frame."""

import re

import pytest
from playwright.sync_api import FrameLocator, Page, expect

from comments.web.service import example_pages
from tests.browser import widget_form
from tests.browser.conftest import OpenTab, Say
from tests.support.html import accessibility

pytestmark = pytest.mark.browser

NAMES = [name for names in example_pages.GROUPS.values() for name in names]
# Examples that show something other than the thread at once.
OTHERS = {"page", "counts"}


@pytest.fixture
def url(server: str, say: Say) -> str:
    say("a first comment")
    return f"{server}/examples"


def frame(page: Page, name: str) -> FrameLocator:
    """Scroll to an example; return its frame."""
    page.locator(f"#{name}-example").scroll_into_view_if_needed()
    return page.frame_locator(f"iframe[src='examples/{name}']")


def test_each_example_of_the_page_runs_in_its_frame(url: str, open_tab: OpenTab) -> None:
    page = open_tab(url).page
    for name in NAMES:
        shown = frame(page, name)
        if name not in OTHERS:
            expect(shown.locator(".ft-body")).to_have_text("a first comment")
    expect(frame(page, "page").get_by_text("No comments yet.")).to_be_visible()
    # `open_tab` reports the violations of the page's policy, but not those of its frames.
    assert [each.evaluate("violations") for each in page.frames] == [[]] * (len(NAMES) + 1)
    assert accessibility.complaints(page) == []


def test_the_page_fits_a_phone_in_the_dark(url: str, open_tab: OpenTab) -> None:
    tab = open_tab(url, viewport={"width": 320, "height": 700}, color_scheme="dark")
    expect(frame(tab.page, "site").locator(".ft-body")).to_be_visible()
    assert tab.page.evaluate("document.documentElement.scrollWidth") == 320


def test_attributes_take_effect(url: str, open_tab: OpenTab) -> None:
    page = open_tab(url).page
    dark = frame(page, "theme").locator(".ft-thread")
    expect(dark).to_have_css("background-color", "rgb(23, 24, 28)")
    expect(frame(page, "order").locator(".ft-title")).to_have_text("1 comment")


def test_the_functions_show_exchange_and_remove_a_thread(url: str, open_tab: OpenTab) -> None:
    page = open_tab(f"{url}/functions").page
    expect(page.locator(".ft-body")).to_have_text("a first comment")
    page.get_by_role("button", name="update").click()
    expect(page.get_by_text("No comments yet.")).to_be_visible()
    page.get_by_role("button", name="destroy").click()
    expect(page.get_by_text("The content of the page")).to_be_visible()
    page.get_by_role("button", name="mount").click()
    expect(page.locator(".ft-body")).to_have_text("a first comment")


def test_the_events_are_listed_as_they_happen(url: str, open_tab: OpenTab) -> None:
    tab = open_tab(f"{url}/events")
    tab.expect_status(404)
    tab.expected.append("has no site")  # The widget's advice in the console
    page = tab.page
    expect(page.locator("#log")).to_contain_text('flatthread:count {"total":1}')
    expect(page.locator("#log")).to_contain_text("flatthread:ready")
    form = widget_form.opened(page)
    widget_form.fill(form, "a second comment", "Ann")
    form.get_by_role("button", name="Post comment").click()
    expect(page.locator("#log")).to_contain_text(re.compile("flatthread:posted .*approved"))
    page.get_by_role("button", name="Cause an error").click()
    expect(page.locator("#log")).to_contain_text('"code":"site-not-found","status":404')


def test_the_counts_are_filled_and_refreshed(url: str, open_tab: OpenTab, say: Say) -> None:
    page = open_tab(f"{url}/counts").page
    expect(page.locator("b")).to_have_text(["1", "1 comment", "0"])
    say("a second comment")
    page.get_by_role("button", name="refresh").click()
    expect(page.locator("b")).to_have_text(["2", "2 comments", "0"])


def test_the_options_are_previewed_with_the_command(url: str, open_tab: OpenTab) -> None:
    page = open_tab(f"{url}/options").page
    expect(page.locator(".ft-vote-up")).to_be_visible()
    page.get_by_label("votes").uncheck()
    expect(page.locator(".ft-vote-up")).to_have_count(0)
    page.get_by_label("guests").uncheck()
    expect(page.locator("#command")).to_contain_text("site set demo --no-votes --no-guests")
    expect(page.get_by_text("Sign in to comment")).to_be_visible()
    page.get_by_label("forms").check()
    expect(page.locator("#command")).to_contain_text("--no-guests --forms")
    page.get_by_label("theme").select_option("dark")
    expect(page.locator(".ft-thread")).to_have_css("background-color", "rgb(23, 24, 28)")


def test_the_variables_and_parts_change_the_widget(url: str, open_tab: OpenTab) -> None:
    page = open_tab(url).page
    line = frame(page, "colors").locator(".ft-time")
    expect(line).to_have_css("color", "rgb(101, 90, 107)")
    expect(frame(page, "shapes").locator(".ft-author")).to_have_css("font-size", "16px")
    expect(frame(page, "parts").locator(".ft-share")).to_be_hidden()


def test_pointing_at_an_element_names_its_part(url: str, open_tab: OpenTab) -> None:
    page = open_tab(f"{url}/finder").page
    page.locator(".ft-author").hover()
    expect(page.locator("#rule")).to_contain_text("::part(ft-author)")
    expect(page.locator(".ft-author")).to_have_css("outline-style", "solid")
    page.get_by_label("Part").select_option("ft-avatar")
    expect(page.locator(".ft-avatar").first).to_have_css("outline-style", "solid")
    listed = page.locator("#names option").all_text_contents()
    shown = page.evaluate(
        """Array.from(document.getElementById("flatthread").shadowRoot
            .querySelectorAll("[part]"), (node) => [...node.part]).flat()"""
    )
    assert set(listed) == set(shown)
