"""Pages with unusual addresses have comments, and counts beside the links to them."""

import pytest
from playwright.sync_api import expect

from comments.sites import site_settings
from comments.store import connection
from tests.browser import widget_form
from tests.browser.conftest import OpenTab, Say, Website

pytestmark = pytest.mark.browser

# Links that cannot be pages, or whose addresses no browser can read.
BAD_LINKS = """
  <a href="http://u:p@blog.example/x" data-flatthread-count>kept</a>
  <a href="http://bad..example/" data-flatthread-count>kept</a>
  <a href="http://[bad/" data-flatthread-count>kept</a>
  <span data-flatthread-count=" ">kept</span>
  <span data-flatthread-count="&#xfffd;">kept</span>"""


def widget(server: str) -> str:
    return (
        f'<script type=module src="{server}/widget/flatthread.js" data-site=demo></script>'
        "<div id=flatthread></div>"
    )


def counts(server: str) -> str:
    return f'<script type=module src="{server}/widget/count.js" data-site=demo></script>'


@pytest.mark.parametrize(
    ("name", "path", "other"),
    [
        ("caf\ufffd", "caf%e9", "caf%E9?x=1"),
        ("100%", "100%", "100%25"),
        ("a\nb", "a%0ab", "a%0Ab#there"),
        ("long", "long?state=" + "%E6%97%A5" * 446 + "&a=1", "long"),
    ],
)
def test_a_page_with_an_unusual_address_has_comments_and_a_count(
    server: str, website: Website, open_tab: OpenTab, name: str, path: str, other: str
) -> None:
    website.put(name, widget(server))
    page = open_tab(f"{website.origin}/{path}").page
    form = widget_form.opened(page)
    widget_form.fill(form, "hello", "Ada")
    form.get_by_role("button", name="Post comment").click()
    comment = page.get_by_role("listitem", name="Comment by Ada")
    expect(comment).to_be_visible()
    with page.expect_response("**/comments?*") as asked:
        page.goto(f"{website.origin}/{other}")
    assert len(asked.value.url) < 4_000
    expect(comment).to_be_visible()
    html = f"""{BAD_LINKS}
      <a href="/{path}" data-flatthread-count></a>
      <svg><a xlink:href="/{other}"><text data-flatthread-count></text></a>
        <a href="/{path}"><text data-flatthread-count></text></a></svg>"""
    page.goto(website.put("index", counts(server) + html))
    for found in (page.locator("a[href^='/']").first, *page.locator("text").all()):
        expect(found).to_have_text("1")
    assert page.get_by_text("kept").count() == BAD_LINKS.count("kept")


def test_a_link_that_is_too_long_for_a_request_leaves_the_other_counts(
    server: str, website: Website, open_tab: OpenTab, say: Say
) -> None:
    say("hello")
    tab = open_tab("about:blank")
    tab.expect_status(413)
    long = f'<a href="/{"a" * 70_000}" data-flatthread-count>kept</a>'
    html = (
        f"{counts(server)}{long}<i data-flatthread-count=demo></i><b data-flatthread-count=x></b>"
    )
    tab.page.goto(website.put("index", html))
    expect(tab.page.locator("i")).to_have_text("1")
    expect(tab.page.locator("b")).to_have_text("0")
    expect(tab.page.locator("a")).to_have_text("kept")


def test_a_parameter_that_identifies_a_page_is_never_cut_to_another_page(
    server: str, website: Website, open_tab: OpenTab, open_store: connection.Store
) -> None:
    with open_store.context():
        site_settings.change("demo", query_keys=["id"])
    website.put("long", widget(server))
    tab = open_tab("about:blank")
    tab.expect_status(400)
    tab.page.goto(f"{website.origin}/long?id={'a' * 4_000}")
    expect(tab.page.get_by_role("alert")).to_contain_text("characters")
