"""A website whose comments are not set up correctly tells its owner what to do."""

import pytest
from playwright.sync_api import ConsoleMessage, expect

from server import refusals
from tests.browser.conftest import OpenTab, Say, Website

pytestmark = pytest.mark.browser


def _told(message: ConsoleMessage) -> bool:
    return message.text.startswith("Flatthread: ")


@pytest.mark.parametrize(
    ("attribute", "sentence", "hint"),
    [
        ("", "it doesn't name a site", "Add data-site with your site's id"),
        ('data-site=""', "it doesn't name a site", "Add data-site with your site's id"),
        ("data-site=blog", "the site “blog” does not exist", "site add blog --origin http://127."),
    ],
)
def test_a_page_with_a_wrong_site_says_so_in_words_and_in_the_console(
    server: str, website: Website, open_tab: OpenTab, attribute: str, sentence: str, hint: str
) -> None:
    html = (
        f'<script type="module" src="{server}/widget/flatthread.js" async></script>'
        f'<div id="flatthread" {attribute}></div>'
    )
    tab = open_tab("about:blank")
    tab.expected += ["status of 404", "Flatthread: ", "blocked by CORS policy", "net::ERR_FAILED"]
    with tab.page.expect_console_message(_told) as told:
        tab.page.goto(website.put("wrong", html))
    expect(tab.page.get_by_text(sentence)).to_be_visible()
    assert hint in told.value.text


def test_the_console_names_a_refusal_by_the_server_itself(
    server: str, website: Website, open_tab: OpenTab
) -> None:
    """The test's server accepts requests of any length, so the refusal is made here."""
    html = f'<script type="module" src="{server}/widget/flatthread.js" data-site="demo"></script>'
    headers, body = refusals.problem(414)
    tab = open_tab("about:blank")
    tab.expected += ["status of 414", "Flatthread: "]
    tab.page.route(
        "**/comments?*", lambda route: route.fulfill(status=414, headers=headers, body=body)
    )
    with tab.page.expect_console_message(_told) as told:
        tab.page.goto(website.put("long", f'{html}<div id="flatthread"></div>'))
    assert told.value.text == f"Flatthread: {server}: Uri too long"


def test_a_page_that_may_not_post_says_so_before_anybody_writes(
    server: str, website: Website, open_tab: OpenTab, say: Say
) -> None:
    say("public")
    html = (
        f'<script type="module" src="{server}/widget/flatthread.js" data-site="demo"></script>'
        '<div id="flatthread" data-thread="demo"></div>'
    )
    registered = website.put("page", html)
    tab = open_tab("about:blank")
    tab.expected += ["Flatthread: "]
    with tab.page.expect_console_message(_told) as told:
        tab.page.goto(registered.replace("127.0.0.1", "localhost"))
    assert "site set demo --add-origin http://localhost:" in told.value.text
    expect(tab.page.locator(".ft-body")).to_have_text("public")
    expect(tab.page.locator(".ft-notice")).to_contain_text("address is not registered")
    expect(tab.page.get_by_role("textbox")).to_have_count(0)
    expect(tab.page.get_by_role("button", name="Reply")).to_have_count(0)
    tab.page.goto(registered)
    expect(tab.page.get_by_role("textbox").first).to_be_visible()


def test_a_page_that_was_offline_loads_when_the_network_is_back(
    server: str, website: Website, open_tab: OpenTab, say: Say
) -> None:
    say("hello")
    tab = open_tab(server)
    page = tab.page
    expect(page.locator(".ft-body")).to_have_text("hello")
    tab.expected.append("net::ERR_INTERNET_DISCONNECTED")
    page.context.set_offline(True)
    host = "document.querySelector('#flatthread')"
    mount = f"import('{server}/widget/flatthread.js').then((ft) => ft.mount({host}))"
    page.evaluate(mount)
    expect(page.get_by_role("alert")).to_contain_text("You are offline.")
    page.context.set_offline(False)
    expect(page.locator(".ft-body")).to_have_text("hello")
