"""The script for counts fills elements of a page with the numbers of comments."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenTab, Say, Tab, Website

pytestmark = pytest.mark.browser

COUNTED = """
  <a href="/post" data-flatthread-count></a>
  <a href="/other?x=1#y"><b data-flatthread-count
    data-flatthread-one="{count} comment" data-flatthread-other="{count} comments"></b></a>
  <i data-flatthread-count="demo" data-flatthread-one="{count} comment"></i>
  <a href="mailto:a@b.example" data-flatthread-count>kept</a>"""


@pytest.fixture
def tab(open_tab: OpenTab) -> Tab:
    return open_tab("about:blank")


def test_counts_fill_a_page_with_one_request_for_a_hundred_threads(
    server: str, website: Website, tab: Tab, say: Say
) -> None:
    say("hello")
    found: list[str] = []
    tab.page.on("request", lambda request: found.append(request.url.rpartition("/")[2]))
    many = "".join(f'<i data-flatthread-count="t{number}"></i>' for number in range(99))
    counts = f'<script type=module src="{server}/widget/count.js" data-site=demo async></script>'
    tab.page.goto(website.put("page", counts + COUNTED + many))
    expect(tab.page.locator("i").first).to_have_text("1 comment")
    expect(tab.page.locator("a").nth(0)).to_have_text("0")
    expect(tab.page.locator("b")).to_have_text("0 comments")
    expect(tab.page.locator("a").nth(2)).to_have_text("kept")
    expect(tab.page.locator("i").last).to_have_text("0")
    # A browser first asks whether the page may send JSON.
    assert [name for name in found if name == "counts"] == ["counts"] * 2


def test_a_failed_request_for_counts_leaves_the_content(
    server: str, website: Website, tab: Tab
) -> None:
    tab.expected.append("net::ERR_FAILED")
    tab.page.route("**/counts", lambda route: route.abort())
    counts = f'<script type=module src="{server}/widget/count.js" data-site=demo async></script>'
    with tab.page.expect_event("requestfailed"):
        tab.page.goto(website.put("failed", f"{counts}<i data-flatthread-count=demo>some</i>"))
    expect(tab.page.locator("i")).to_have_text("some")
