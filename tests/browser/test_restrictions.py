"""The widget works offline until it needs the server, and without storage, cookies or scripts."""

import re
from collections.abc import Iterator

import playwright.sync_api as playwright
import pytest
from playwright.sync_api import expect

from tests.browser import widget_form
from tests.browser.conftest import (
    ARGUMENTS,
    PATIENCE,
    OpenTab,
    Say,
    Tab,
    Website,
    whole_browser_path,
)
from tests.browser.test_conversation import bodies, choose, comment, write
from tests.browser.test_provider_login import NO_THIRD_PARTIES
from tests.browser.test_votes import settled, up

pytestmark = pytest.mark.browser

BLOCKED = """<script>
  for (const name of ["localStorage", "sessionStorage"])
    Object.defineProperty(window, name, {
      get() { throw new DOMException("blocked", "SecurityError"); },
    });
</script>"""


def embedded(server: str, before: str = "", content: str = "") -> str:
    source = f"{server}/widget/flatthread.js"
    return (
        f"{before}<script type=module src='{source}' data-site=demo></script>"
        f"<div id=flatthread data-thread=demo>{content}</div>"
    )


def test_offline_readers_are_told_so_keep_their_text_and_send_it_later(
    server: str, open_tab: OpenTab, say: Say
) -> None:
    one = say("one")
    say("one.one", parent=one, name="Bob")
    tab = open_tab(server)
    page = tab.page
    tab.expected.append("net::ERR_INTERNET_DISCONNECTED")
    expect(comment(page, "one.one")).to_be_visible()
    page.context.set_offline(True)
    # The code for writing has not been loaded yet.
    comment(page, "one").get_by_role("button", name="More actions").click()
    expect(page.get_by_role("status")).to_contain_text("You are offline.")
    form = page.get_by_role("form", name="Write a comment")
    form.get_by_role("textbox", name="Comment").fill("written on a train")
    expect(form.get_by_role("alert").filter(has_text="You are offline.")).to_be_visible()
    page.get_by_role("button", name="Collapse Ada's comment").click()
    expect(page.get_by_role("listitem")).to_have_count(1)
    page.context.set_offline(False)
    form.get_by_role("button", name="Try again").click()
    form.get_by_role("textbox", name="Name").fill("Grace")
    page.context.set_offline(True)
    form.get_by_role("button", name="Post comment").click()
    told = form.get_by_role("alert").filter(has_text="You are offline.")
    expect(told).to_contain_text("Your text is kept.")
    page.context.set_offline(False)
    form.get_by_role("button", name="Post comment").click()
    expect(comment(page, "written on a train")).to_be_visible()
    expect(page.get_by_role("heading", name="3 comments")).to_be_visible()


def test_with_blocked_storage_everything_works_while_the_page_is_open(
    server: str, website: Website, open_tab: OpenTab, say: Say
) -> None:
    one = say("one", name="Bob")
    say("one.one", parent=one, name="Cy")
    page = open_tab(website.put("blocked", embedded(server, BLOCKED))).page
    write(page, "mine")
    up(page, "one").click()
    settled(page, "one")
    page.get_by_role("button", name="Collapse Bob's comment").click()
    page.get_by_role("button", name="Expand Bob's comment").click()
    page.get_by_role("button", name="Sort: Oldest").click()
    page.get_by_role("menuitemradio", name="Newest").click()
    expect(page.get_by_role("button", name="Sort: Newest")).to_be_visible()
    expect(up(page, "one")).to_have_attribute("aria-pressed", "true")
    choose(comment(page, "one.one"), "Mute Cy")
    expect(page.get_by_text("You muted Cy.")).to_be_visible()
    choose(comment(page, "mine"), re.compile("^Edit"))
    form = page.get_by_role("form", name="Edit your comment")
    form.get_by_role("textbox", name="Comment").fill("changed")
    form.get_by_role("button", name="Save changes").click()
    choose(comment(page, "changed"), "Delete")
    page.get_by_role("button", name="Delete comment").click()
    expect(comment(page, "changed")).to_have_count(0)


@pytest.fixture
def strict_tab(chromium: playwright.Browser) -> Iterator[Tab]:
    """A tab of a browser that blocks third-party cookies, and keeps pages for the way back."""
    browser = chromium.browser_type.launch(
        executable_path=whole_browser_path(),
        args=[*ARGUMENTS, NO_THIRD_PARTIES],
        ignore_default_args=["--disable-back-forward-cache"],
    )
    context = browser.new_context()
    context.set_default_timeout(PATIENCE)
    tab = Tab(context.new_page())
    tab.watch()
    yield tab
    tab.assert_no_faults()
    browser.close()


def test_without_third_party_cookies_readers_stay_who_they_are(
    server: str, website: Website, strict_tab: Tab, say: Say
) -> None:
    say("one", name="Bob")
    page = strict_tab.page
    page.goto(website.put("strict", embedded(server)))
    write(page, "mine")
    up(page, "one").click()
    settled(page, "one")
    page.reload()
    expect(up(page, "one")).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_role("button", name="Your menu, Ada")).to_be_visible()
    choose(comment(page, "mine"), "Delete")
    page.get_by_role("button", name="Delete comment").click()
    expect(comment(page, "mine")).to_have_count(0)
    assert page.context.cookies() == []


def test_the_way_back_leads_to_the_thread_as_it_was(
    server: str, website: Website, strict_tab: Tab, say: Say
) -> None:
    say("one", name="Bob")
    page = strict_tab.page
    watch = """<script>addEventListener("pageshow", (event) => {
        window.isKept = event.persisted; });</script>"""
    page.goto(website.put("first", embedded(server, watch)))
    widget_form.fill(widget_form.opened(page), "half a text", "Ada")
    page.goto(website.put("second", "<h1>Elsewhere</h1>"))
    page.evaluate("history.back()")
    expect(comment(page, "one")).to_be_visible()
    form = page.get_by_role("form", name="Write a comment")
    expect(form.get_by_role("textbox", name="Comment")).to_have_value("half a text")
    assert page.evaluate("window.isKept"), "the widget prevents the browser from keeping pages"
    form.get_by_role("button", name="Post comment").click()
    expect(comment(page, "half a text")).to_be_visible()
    assert bodies(page) == ["half a text", "one"]


def test_without_javascript_the_elements_own_content_leads_to_the_thread(
    server: str, website: Website, open_tab: OpenTab, say: Say
) -> None:
    say("one")
    link = f"<noscript><a href='{server}/embed/demo?thread=demo'>Read the comments</a></noscript>"
    url = website.put("plain", embedded(server, content=link))
    page = open_tab(url, java_script_enabled=False).page
    page.get_by_role("link", name="Read the comments").click()
    expect(page.get_by_text("one", exact=True)).to_be_visible()
