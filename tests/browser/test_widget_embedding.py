"""The widget works on every kind of web page."""

import urllib.parse
from datetime import UTC, datetime

import pytest
from playwright import sync_api as playwright
from playwright.sync_api import expect

from comments.sites import site_settings
from comments.store import connection, reads
from comments.store.models import conversion
from comments.transfer.moves import declared_moves
from tests.browser import route_holding, widget_form
from tests.browser.conftest import OpenTab, Say, Website
from tests.browser.test_conversation import choose, comment
from tests.support import programs

pytestmark = pytest.mark.browser

# The manual tells sites with a strict policy to allow these sources: our origin but nothing inline.
STRICT = (
    "default-src 'none'; script-src {server}; connect-src {server}; style-src 'self'; "
    "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
)


def script(server: str, site: str = "demo") -> str:
    source = f"{server}/widget/flatthread.js"
    return f'<script type="module" src="{source}" data-site="{site}" async></script>'


def post(page: playwright.Page, body: str, *, shows: str = "") -> None:
    form = widget_form.opened(page)
    widget_form.fill(form, body, "Ada")
    form.get_by_role("button", name="Post comment").click()
    expect(page.locator(".ft-body", has_text=shows or body)).to_be_visible()


def test_a_strict_policy_with_trusted_types_is_not_violated(
    server: str, website: Website, open_tab: OpenTab
) -> None:
    url = website.put(
        "strict",
        f'{script(server)}<div id="flatthread">loading</div>',
        Content_Security_Policy=STRICT.format(server=server),
    )
    tab = open_tab(url)
    post(tab.page, "under a strict policy")
    tab.page.reload()
    expect(tab.page.locator(".ft-body")).to_have_text("under a strict policy")
    button = widget_form.opened(tab.page).get_by_role("button", name="Post comment")
    assert button.evaluate("node => getComputedStyle(node).cursor") == "pointer"
    assert tab.page.evaluate("window.violations") == []


def test_a_page_names_its_categories(
    server: str, website: Website, open_tab: OpenTab, open_store: connection.Store
) -> None:
    with open_store.context():
        site_settings.change("demo", filed=["News", "How to"])
    html = f'{script(server)}<div id="flatthread" data-categories="how to, ,News,Other"></div>'
    post(open_tab(website.put("filed", html)).page, "words")
    with open_store.context():
        (row,) = reads.fetch(reads.Query("Thread"))
        assert conversion.texts(row.properties["categories"]) == ("how to", "news")


def test_the_policy_may_name_the_one_trusted_type(
    server: str, website: Website, open_tab: OpenTab
) -> None:
    policy = f"{STRICT.format(server=server)}; trusted-types flatthread"
    html = f'{script(server)}<div id="flatthread"></div>'
    page = open_tab(website.put("named", html, Content_Security_Policy=policy)).page
    post(page, "**strong** words", shows="strong words")
    expect(page.locator(".ft-body strong")).to_have_text("strong")


def test_a_policy_that_forbids_our_trusted_type_leaves_text(
    server: str, website: Website, open_tab: OpenTab
) -> None:
    policy = f"{STRICT.format(server=server)}; trusted-types somebody-else"
    html = f'{script(server)}<div id="flatthread"></div>'
    tab = open_tab("about:blank")
    tab.expected += ["flatthread", "trusted-types"]
    tab.page.goto(website.put("forbidden", html, Content_Security_Policy=policy))
    post(tab.page, "plain words")


def test_a_strict_nonce_policy_is_not_violated(
    server: str, website: Website, open_tab: OpenTab
) -> None:
    policy = (
        f"default-src 'none'; script-src 'nonce-abc' 'strict-dynamic'; connect-src {server}; "
        "base-uri 'none'; require-trusted-types-for 'script'"
    )
    nonced = script(server).replace("<script", '<script nonce="abc"')
    html = f'{nonced}<div id="flatthread"></div>'
    page = open_tab(website.put("nonce", html, Content_Security_Policy=policy)).page
    post(page, "under a nonce")


def test_tampered_prototypes_and_names_change_nothing(
    server: str, website: Website, open_tab: OpenTab
) -> None:
    html = f"""
      <script>
        Object.prototype.toJSON = function () {{ return "spoiled"; }};
        Array.prototype.toJSON = function () {{ return "spoiled"; }};
        Object.prototype.body = "spoiled";
        Object.prototype.parent = "spoiled";
        Object.prototype.around = "spoiled";
        Object.prototype.field = "spoiled";
      </script>
      <a id="trustedTypes"></a><a id="Flatthread"></a><img name="cookie"><a id="history"></a>
      <form id="localStorage"><input name="getItem"></form>
      {script(server)}<div id="flatthread"></div>"""
    page = open_tab(website.put("spoiled", html)).page
    post(page, "unspoiled")
    page.reload()
    expect(page.locator(".ft-body")).to_have_text("unspoiled")


def test_pages_have_their_own_threads_by_canonical_url(
    server: str, website: Website, open_tab: OpenTab
) -> None:
    html = f'{script(server)}<div id="flatthread"></div>'
    canonical = f'<link rel="canonical" href="{website.origin}/one">'
    one = website.put("one", html)
    same = website.put("same", canonical + html)
    other = website.put("other", html)
    tab = open_tab(f"{one}#somewhere")
    post(tab.page, "on page one")
    tab.page.goto(same)
    expect(tab.page.locator(".ft-body")).to_have_text("on page one")
    tab.page.goto(other)
    expect(tab.page.get_by_text("No comments yet.")).to_be_visible()


def test_a_page_with_a_new_canonical_address_keeps_its_comments(
    server: str, website: Website, open_tab: OpenTab, open_store: connection.Store
) -> None:
    html = f'{script(server)}<div id="flatthread"></div>'
    old = website.put("old", html)
    page = open_tab(old).page
    post(page, "before the move")
    permalink = page.locator(".ft-comment").get_attribute("id")
    website.put("old", f'<link rel="canonical" href="{website.origin}/new">{html}')
    page.goto("about:blank")
    page.goto(f"{old}#{permalink}")
    expect(page.locator(".ft-body")).to_have_text("before the move")
    page.goto("about:blank")
    page.goto(f"{old}?utm_source=mail")
    expect(page.locator(".ft-body")).to_have_text("before the move")
    post(page, "after the move")
    page.reload()
    expect(page.locator(".ft-body")).to_have_count(2)
    with open_store.context():
        proposed = declared_moves.proposals(site_settings.get("demo"), datetime.now(UTC))
    assert [move.url for move in proposed] == [f"{website.origin}/new"]


def test_the_open_graph_address_names_the_page_if_it_has_no_canonical_link(
    server: str, website: Website, open_tab: OpenTab
) -> None:
    html = f'{script(server)}<div id="flatthread"></div>'
    graph = '<meta property="og:url" content="{}">'
    one = website.put("one", html)
    tab = open_tab(one)
    post(tab.page, "on page one")
    tab.page.goto(website.put("same", graph.format(f"{one}#top") + html))
    expect(tab.page.locator(".ft-body")).to_have_text("on page one")
    link = f'<link rel="canonical" href="{website.origin}/linked">'
    for number, head in enumerate(
        [
            link + graph.format(one),
            graph.format(website.origin),
            graph.format("https://{{ host }}/x"),
        ]
    ):
        tab.page.goto(website.put(f"other{number}", head + html))
        expect(tab.page.get_by_text("No comments yet.")).to_be_visible()
        post(tab.page, f"on page {number} itself")


def test_an_explicit_thread_id_overrides_the_url(
    server: str, website: Website, open_tab: OpenTab
) -> None:
    html = f'{script(server)}<div id="flatthread" data-thread="post 1/ä?b#c"></div>'
    tab = open_tab(website.put("first", html))
    post(tab.page, "by id")
    tab.page.goto(website.put("second", html))
    expect(tab.page.locator(".ft-body")).to_have_text("by id")


def test_the_query_of_a_visitors_url_is_not_stored(
    server: str, website: Website, open_tab: OpenTab, open_store: connection.Store
) -> None:
    html = f'{script(server)}<div id="flatthread"{{}}></div>'
    page = open_tab("about:blank").page
    for place, (named, body) in enumerate(
        [("", "by its address"), (' data-thread="post 2"', "by an id of the site's")]
    ):
        url = website.put(f"asked{place}", html.format(named))
        page.goto(f"{url}?reset=secret&x=1#there")
        with page.expect_request(
            lambda each: each.method == "POST" and "/comments" in each.url
        ) as sent:
            post(page, body)
        shown = sent.value.post_data_json["url"]
        assert shown == url if named else shown.startswith(url)
        with open_store.context():
            threads = list(reads.fetch(reads.Query("Thread")))
        assert url in {row.properties["url"].string_value for row in threads}


def test_the_placeholder_stays_until_the_thread_is_loaded(
    server: str, website: Website, open_tab: OpenTab, say: Say
) -> None:
    say("loaded")
    html = f'{script(server)}<div id="flatthread" data-thread="demo"><p>a placeholder</p></div>'
    url = website.put("placeholder", html)
    page = open_tab("about:blank").page
    held = []
    # Playwright accepts plain functions only, not methods of a list.
    page.route("**/comments?*", lambda route: held.append(route))  # noqa: PLW0108
    with page.expect_request("**/comments?*"):
        page.goto(url)
    expect(page.get_by_text("a placeholder")).to_be_visible()
    route_holding.wait_until_sent(page, held)
    held[0].continue_()
    expect(page.locator(".ft-body")).to_have_text("loaded")
    expect(page.get_by_text("a placeholder")).to_be_hidden()


def test_the_snippets_link_leads_to_the_pages_thread_if_the_script_is_blocked(
    server: str, website: Website, open_tab: OpenTab
) -> None:
    element = programs.ROOT.joinpath("docs/embedding.md").read_text().split("```html\n")[1]
    element = element.split("```")[0].replace("https://comments.example", server)
    url = website.put(
        "linked", element.replace("embed/blog", "embed/demo").replace('"blog"', '"demo"')
    )
    post(open_tab(url).page, "words")
    tab = open_tab("about:blank")
    tab.expected.append("net::ERR_FAILED")
    tab.page.route("**/flatthread.js", lambda route: route.abort())
    tab.page.goto(url)
    tab.page.get_by_role("link", name="Comments").click()
    expect(tab.page.locator(".ft-body")).to_have_text("words")


def test_a_failed_start_keeps_the_placeholder_and_offers_a_retry(
    server: str, website: Website, open_tab: OpenTab, say: Say
) -> None:
    say("loaded at last")
    html = f'{script(server)}<div id="flatthread" data-thread="demo"><p>a placeholder</p></div>'
    tab = open_tab("about:blank")
    tab.expected.append("net::ERR_FAILED")
    tab.page.route("**/comments?*", lambda route: route.abort(), times=1)
    tab.page.goto(website.put("failing", html))
    expect(tab.page.get_by_role("alert")).to_contain_text("could not be loaded")
    expect(tab.page.get_by_text("a placeholder")).to_be_visible()
    tab.page.get_by_role("button", name="Try again").click()
    expect(tab.page.locator(".ft-body")).to_have_text("loaded at last")


def test_an_unknown_site_is_named(server: str, website: Website, open_tab: OpenTab) -> None:
    tab = open_tab("about:blank")
    tab.expect_status(404)
    tab.expected.append("Flatthread: ")
    html = f'{script(server, site="nobody")}<div id="flatthread"></div>'
    tab.page.goto(website.put("unknown", html))
    expect(tab.page.get_by_text("the site “nobody” does not exist")).to_be_visible()


SINGLE_PAGE = """
  <div id="view"><p>the view's own content</p></div>
  <script type="module">
    import * as flatthread from "{server}/widget/flatthread.js";
    const view = document.getElementById("view");
    window.show = (thread) => flatthread.mount(view, {{ site: "demo", thread }});
    window.change = (thread) => flatthread.update(view, {{ site: "demo", thread }});
    window.leave = () => flatthread.destroy(view);
    window.both = () => Promise.all([window.show("other"), window.show("demo")]);
  </script>"""


def test_a_single_page_site_mounts_updates_and_destroys(
    server: str, website: Website, open_tab: OpenTab, say: Say
) -> None:
    say("in the demo thread")
    page = open_tab(website.put("spa", SINGLE_PAGE.format(server=server))).page
    page.wait_for_function("window.show")
    for _ in range(2):
        page.evaluate("show('demo')")
        expect(page.locator(".ft-body")).to_have_text("in the demo thread")
        page.evaluate("change('other')")
        expect(page.get_by_text("No comments yet.")).to_be_visible()
        page.evaluate("leave()")
        expect(page.get_by_text("the view's own content")).to_be_visible()
        expect(page.locator(".ft-thread")).to_have_count(0)


def test_of_two_quick_mounts_the_last_one_stays(
    server: str, website: Website, open_tab: OpenTab, say: Say
) -> None:
    say("in the demo thread")
    page = open_tab(website.put("race", SINGLE_PAGE.format(server=server))).page
    page.wait_for_function("window.show")
    page.evaluate("both()")
    expect(page.locator(".ft-body")).to_have_text("in the demo thread")
    expect(page.locator(".ft-thread")).to_have_count(1)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_page_can_choose_a_theme(
    server: str, website: Website, open_tab: OpenTab, theme: str
) -> None:
    html = f'{script(server)}<div id="flatthread" data-theme="{theme}"></div>'
    page = open_tab(website.put("themed", html)).page
    expect(page.locator(".ft-title")).to_be_visible()
    luminance = "node => getComputedStyle(node).color.match(/\\d+/g).map(Number)[0]"
    assert (page.locator(".ft-title").evaluate(luminance) > 128) == (theme == "dark")


def test_the_pages_colors_and_variables_are_inherited(
    server: str, website: Website, open_tab: OpenTab
) -> None:
    html = f"""<style>
        body {{ color: rgb(1, 2, 3); }}
        #flatthread {{ --ft-accent: rgb(9, 99, 9); }}
        #flatthread::part(ft-submit) {{ letter-spacing: 7px; }}
      </style>{script(server)}<div id="flatthread"></div>"""
    page = open_tab(website.put("styled", html)).page
    title = page.locator(".ft-title")
    expect(title).to_have_css("color", "rgb(1, 2, 3)")
    widget_form.opened(page)
    expect(page.locator(".ft-submit")).to_have_css("background-color", "rgb(9, 99, 9)")
    expect(page.locator(".ft-submit")).to_have_css("letter-spacing", "7px")


def test_the_demo_page_obeys_its_own_policy_and_fits_a_phone(
    server: str, open_tab: OpenTab, say: Say
) -> None:
    say("a" * 300)
    tab = open_tab(server, viewport={"width": 360, "height": 740}, color_scheme="dark")
    expect(tab.page.locator(".ft-body")).to_be_visible()
    assert tab.page.evaluate("document.documentElement.scrollWidth") == 360


def test_the_demo_page_shows_any_thread_with_its_name_as_text(
    server: str, open_tab: OpenTab
) -> None:
    thread = "\"><script>alert(1)</script>&'"
    page = open_tab(f"{server}/?thread={urllib.parse.quote(thread)}").page
    expect(page.get_by_text("No comments yet.")).to_be_visible()
    expect(page.get_by_text(thread)).to_be_visible()
    post(page, "in that thread")
    page.reload()
    expect(page.locator(".ft-body")).to_have_text("in that thread")


def test_without_storage_people_can_still_post(
    server: str, website: Website, open_tab: OpenTab
) -> None:
    html = f"""<script>
        const get = () => {{ throw new Error("forbidden"); }};
        Object.defineProperty(window, "localStorage", {{ get }});
      </script>{script(server)}<div id="flatthread"></div>"""
    page = open_tab(website.put("forgetful", html)).page
    post(page, "no memory")
    choose(comment(page, "no memory"), "Delete")
    page.get_by_role("button", name="Delete comment").click()
    expect(page.get_by_text("No comments yet.")).to_be_visible()
