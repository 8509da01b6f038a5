"""The widget starts early, in parallel and once; a failed file leads to a message and a retry."""

import json
import re
from collections.abc import Iterator

import playwright.sync_api as playwright
import pytest
from playwright.sync_api import expect

from comments.domain.languages import catalogue
from tests.browser import route_holding
from tests.browser.conftest import OpenTab, Say, Tab, Website, built

pytestmark = pytest.mark.browser

FAR = '<div style="height: 5000px"></div>'
STRICT = (
    "default-src 'none'; script-src 'nonce-abc' 'strict-dynamic'; style-src 'none'; "
    "connect-src {server}; base-uri 'none'; require-trusted-types-for 'script'; "
    "trusted-types flatthread"
)
# Record the widget's events, which bubble to the document.
EVENTS = """<script>
  window.events = [];
  for (const name of ["ready", "posted", "count", "error"])
    addEventListener(`flatthread:${name}`, (event) =>
      events.push([name, event.target.id, { ...event.detail }]));
</script>"""


def script(server: str, attributes: str = "") -> str:
    source = f"{server}/widget/flatthread.js"
    return f'<script type="module" src="{source}" data-site="demo" async {attributes}></script>'


def element(attributes: str = "", thread: str = "demo") -> str:
    return f'<div id="flatthread" data-thread="{thread}" {attributes}>before</div>'


@pytest.fixture
def tab(open_tab: OpenTab) -> Tab:
    return open_tab("about:blank")


@pytest.fixture
def asked(tab: Tab, server: str) -> Iterator[list[str]]:
    """The requests to the service, by the last part of their path."""
    found: list[str] = []

    def note(request: playwright.Request) -> None:
        if request.url.startswith(server):
            found.append(request.url.partition("?")[0].rpartition("/")[2])

    tab.page.on("request", note)
    return iter([found])


def bodies(page: playwright.Page) -> playwright.Locator:
    return page.locator(".ft-body")


def test_four_requests_load_a_thread_and_a_reload_asks_only_for_comments(
    server: str, website: Website, tab: Tab, asked: Iterator[list[str]], say: Say
) -> None:
    say("hello")
    found = next(asked)
    tab.page.goto(website.put("four", script(server) + element()))
    expect(bodies(tab.page)).to_have_text("hello")
    files = ["flatthread.js", "comments", built("widget"), built("strings-en")]
    assert sorted(found) == sorted(files)
    # The entry has started all others before any of them arrived.
    assert found[0] == "flatthread.js"


def test_the_files_load_in_parallel(server: str, website: Website, tab: Tab, say: Say) -> None:
    """None of the three waits for another: all are requested while all responses are held back."""
    say("hello")
    held: list[playwright.Route] = []
    for pattern in ("**/widget/widget-*", "**/widget/strings-*", "**/comments?*"):
        tab.page.route(pattern, lambda route: held.append(route))  # noqa: PLW0108 - plain function
    with (
        tab.page.expect_request("**/widget/widget-*"),
        tab.page.expect_request("**/widget/strings-*"),
        tab.page.expect_request("**/comments?*"),
    ):
        tab.page.goto(website.put("parallel", f'<html lang="en-GB">{script(server)}{element()}'))
    expect(tab.page.locator("#flatthread")).to_have_attribute("aria-busy", "true")
    box = tab.page.locator("#flatthread").bounding_box()
    assert box is not None
    assert box["height"] > 300, "the entry reserves the height of some comments"
    for route in held:
        route.continue_()
    expect(bodies(tab.page)).to_have_text("hello")
    expect(tab.page.locator("#flatthread")).not_to_have_attribute("aria-busy", "true")


def test_an_element_far_below_starts_when_it_comes_near(
    server: str, website: Website, tab: Tab, asked: Iterator[list[str]], say: Say
) -> None:
    say("hello")
    found = next(asked)
    tab.page.goto(website.put("far", script(server) + FAR + element()))
    tab.page.wait_for_function("document.querySelector('#flatthread').shadowRoot")
    assert found == ["flatthread.js"]
    tab.page.evaluate("scrollTo(0, 4200)")
    expect(bodies(tab.page)).to_have_text("hello")


@pytest.mark.parametrize("is_named", [True, False])
def test_an_element_far_below_starts_at_once_if_asked_or_if_the_url_names_a_comment(
    server: str, website: Website, tab: Tab, say: Say, is_named: bool
) -> None:
    comment = say("hello")
    attributes = "" if is_named else 'data-load="now"'
    url = website.put("now", script(server) + FAR + element(attributes))
    tab.page.goto(f"{url}#comment-{comment}" if is_named else url)
    expect(bodies(tab.page)).to_have_text("hello")
    assert (tab.page.evaluate("scrollY") > 0) == is_named


def test_a_link_to_a_comment_starts_an_element_far_below(
    server: str, website: Website, tab: Tab, say: Say
) -> None:
    comment = say("hello")
    link = f'<a href="#comment-{comment}">go</a>'
    tab.page.goto(website.put("link", script(server) + link + FAR + element()))
    tab.page.wait_for_function("document.querySelector('#flatthread').shadowRoot")
    tab.page.get_by_role("link", name="go").click()
    expect(bodies(tab.page)).to_be_in_viewport()


def test_a_hidden_element_starts_when_it_is_shown(
    server: str, website: Website, tab: Tab, asked: Iterator[list[str]], say: Say
) -> None:
    say("hello")
    found = next(asked)
    tab.page.goto(website.put("hidden", script(server) + f"<div hidden>{element()}</div>"))
    tab.page.wait_for_function("document.querySelector('#flatthread').shadowRoot")
    assert found == ["flatthread.js"]
    tab.page.evaluate("document.querySelector('[hidden]').hidden = false")
    expect(bodies(tab.page)).to_have_text("hello")


def test_an_element_inserted_later_starts_and_one_inserted_again_too(
    server: str, website: Website, tab: Tab, say: Say
) -> None:
    say("hello")
    tab.page.goto(website.put("late", script(server) + "<main></main>"))
    tab.page.wait_for_load_state("load")
    insert = f"document.querySelector('main').innerHTML = {json.dumps(element())}"
    for _ in range(2):
        tab.page.evaluate(insert)
        expect(bodies(tab.page)).to_have_text("hello")
    tab.page.evaluate(
        """async () => {
          window.kept = document.querySelector("#flatthread");
          kept.remove();
          await new Promise(requestAnimationFrame);
        }"""
    )
    assert tab.page.evaluate("kept.shadowRoot.querySelector('.ft-body')") is None
    tab.page.evaluate("document.querySelector('main').append(kept)")
    expect(bodies(tab.page)).to_have_text("hello")


def test_an_element_removed_while_loading_shows_and_reports_nothing(
    server: str, website: Website, tab: Tab, say: Say
) -> None:
    say("hello")
    held: list[playwright.Route] = []
    tab.page.route("**/comments?*", lambda route: held.append(route))  # noqa: PLW0108 - plain function
    with tab.page.expect_request("**/comments?*"):
        tab.page.goto(website.put("removed", EVENTS + script(server) + element()))
    tab.page.evaluate("window.kept = document.querySelector('#flatthread'); kept.remove()")
    route_holding.wait_until_sent(tab.page, held)
    with tab.page.expect_response("**/comments?*"):
        held[0].continue_()
    tab.page.evaluate("new Promise((done) => setTimeout(done, 50))")
    assert tab.page.evaluate("kept.shadowRoot.textContent") == ""
    assert tab.page.evaluate("events") == []


def test_a_page_that_takes_a_waiting_element_over_decides_what_it_shows(
    server: str, website: Website, tab: Tab, say: Say
) -> None:
    say("hello")
    module = f"""<script type="module">
        window.flatthread = await import("{server}/widget/flatthread.js");
      </script>"""
    tab.page.goto(website.put("taken", script(server) + FAR + element() + module))
    tab.page.wait_for_function("window.flatthread")
    host = "document.querySelector('#flatthread')"
    tab.page.evaluate(f"flatthread.update({host}, {{ thread: 'other' }})")
    expect(tab.page.locator(".ft-none:visible")).to_have_count(1)
    tab.page.evaluate("scrollTo(0, 5000)")
    tab.page.evaluate(
        f"""async () => {{
          const parent = {host}.parentNode;
          window.kept = {host};
          kept.remove();
          await new Promise(requestAnimationFrame);
          parent.append(kept);
          await new Promise(requestAnimationFrame);
        }}"""
    )
    expect(tab.page.locator(".ft-none:visible")).to_have_count(1)
    tab.page.evaluate("flatthread.destroy(kept)")
    tab.page.evaluate("document.body.append('a change')")
    expect(tab.page.locator(".ft-thread")).to_have_count(0)
    expect(tab.page.get_by_text("before")).to_be_visible()


def test_each_of_two_elements_shows_its_own_thread(
    server: str, website: Website, tab: Tab, say: Say
) -> None:
    say("hello")
    both = element() + element(thread="other") + script(server) + script(server)
    tab.page.goto(website.put("twice", both))
    expect(bodies(tab.page)).to_have_text("hello")
    expect(tab.page.locator(".ft-none:visible")).to_have_count(1)
    expect(tab.page.get_by_role("form", name="Write a comment")).to_have_count(2)


def test_a_base_element_changes_no_address(
    server: str, website: Website, tab: Tab, say: Say
) -> None:
    say("hello")
    base = '<base href="https://elsewhere.example/sub/">'
    tab.page.goto(website.put("base", base + script(server) + element()))
    expect(bodies(tab.page)).to_have_text("hello")


def test_a_nonce_with_strict_dynamic_and_trusted_types_allows_every_file(
    server: str, website: Website, tab: Tab, say: Say
) -> None:
    say("hello")
    url = website.put(
        "nonce",
        script(server, 'nonce="abc"') + element(),
        Content_Security_Policy=STRICT.format(server=server),
    )
    tab.page.goto(url)
    expect(bodies(tab.page)).to_have_text("hello")
    with tab.page.expect_response("**/widget/writer-*"):
        tab.page.get_by_role("textbox", name="Comment").focus()


@pytest.mark.parametrize("file", ["widget/widget-*", "widget/strings-*", "comments?*"])
def test_a_failed_file_leaves_a_sentence_and_a_retry(
    server: str, website: Website, tab: Tab, say: Say, file: str
) -> None:
    say("at last")
    tab.expected += ["net::ERR_FAILED", "Flatthread: A call to"]
    tab.page.route(f"**/{file}", lambda route: route.abort(), times=2)
    tab.page.goto(website.put("failed", EVENTS + script(server) + element()))
    expect(tab.page.get_by_role("alert")).to_contain_text("The comments could not be loaded.")
    expect(tab.page.get_by_text("before")).to_be_visible()
    assert [name for name, *_ in tab.page.evaluate("events")] == ["error"]
    again = tab.page.get_by_role("button", name="Try again")
    again.focus()
    with tab.page.expect_event("requestfailed"):
        again.press("Enter")
    expect(again).to_be_focused()
    again.press("Enter")
    expect(bodies(tab.page)).to_have_text("at last")
    expect(tab.page.locator(".ft-title")).to_be_focused()
    names = [name for name, *_ in tab.page.evaluate("events")]
    assert names == ["error", "error", "count", "ready"]


@pytest.mark.parametrize("stem", ["widget", "strings-en", "writer", "writing-en"])
def test_a_changed_file_is_refused(
    server: str, website: Website, tab: Tab, say: Say, stem: str
) -> None:
    say("hello")
    tab.expected += ["Failed to find a valid digest", "net::ERR_FAILED", "integrity"]

    def change(route: playwright.Route) -> None:
        response = route.fetch()
        body = response.text() + " "
        route.fulfill(response=response, body=body)

    tab.page.route(f"**/widget/{stem}-*", change)
    tab.page.goto(website.put("changed", script(server) + element()))
    if stem.startswith("writ"):
        expect(bodies(tab.page)).to_have_text("hello")
        form = tab.page.get_by_role("form", name="Write a comment")
        form.get_by_role("textbox", name="Comment").fill("kept")
        expect(form.get_by_role("alert").filter(has_text="did not respond")).to_be_visible()
        expect(form.get_by_role("textbox", name="Comment")).to_have_value("kept")
    else:
        sentence = "The comments could not be loaded."
        expect(tab.page.get_by_role("alert")).to_contain_text(sentence)
    tab.page.unroute_all(behavior="wait")


def test_the_entry_of_a_new_release_replaces_one_whose_files_are_gone(
    server: str, website: Website, tab: Tab, say: Say
) -> None:
    say("hello")
    tab.expected += ["responded with a status of 404", "CORS policy", "net::ERR_FAILED"]

    def older(route: playwright.Route) -> None:
        """Answer with the entry of an older release, as a cache does for some minutes."""
        if "?" in route.request.url:
            route.continue_()
            return
        response = route.fetch()
        digest = re.findall(r'widget:"([^"]{44})"', response.text())[0]
        route.fulfill(response=response, body=response.text().replace(digest, "A" * 44))

    tab.page.route("**/widget/flatthread.js*", older)
    page = f"""{EVENTS}{script(server)}{element()}<script type="module">
        window.flatthread = await import("{server}/widget/flatthread.js");
      </script>"""
    tab.page.goto(website.put("older", page))
    expect(bodies(tab.page)).to_have_text("hello")
    assert [name for name, *_ in tab.page.evaluate("events")] == ["count", "ready"]
    host = "document.querySelector('#flatthread')"
    tab.page.evaluate(f"flatthread.destroy({host})")
    expect(bodies(tab.page)).to_have_count(0)
    tab.page.evaluate(f"flatthread.mount({host}, {{ site: 'demo', thread: 'demo' }})")
    expect(bodies(tab.page)).to_have_text("hello")


def test_nothing_below_moves_if_the_page_reserves_the_height(
    server: str, website: Website, tab: Tab, say: Say
) -> None:
    for number in range(60):
        say(f"comment {number}")
    style = "<style>#flatthread { min-height: 100vh }</style>"
    page = f"<h1>Title</h1>{style}{script(server)}{element()}<footer>the end</footer>"
    tab.page.add_init_script(
        """window.shift = 0;
        new PerformanceObserver((list) => {
          for (const entry of list.getEntries()) window.shift += entry.value;
        }).observe({ type: "layout-shift", buffered: true });"""
    )
    tab.page.goto(website.put("still", page))
    expect(bodies(tab.page).first).to_be_visible()
    tab.page.evaluate("new Promise((done) => setTimeout(done, 100))")
    assert tab.page.evaluate("window.shift") <= 0.01


def test_events_report_what_happens(server: str, website: Website, tab: Tab, say: Say) -> None:
    say("hello")
    tab.page.goto(website.put("events", EVENTS + script(server) + element()))
    expect(bodies(tab.page)).to_have_text("hello")
    form = tab.page.get_by_role("form", name="Write a comment")
    form.get_by_role("textbox", name="Comment").fill("mine")
    form.get_by_role("textbox", name="Name").fill("Ada")
    form.get_by_role("button", name="Post comment").click()
    expect(bodies(tab.page)).to_have_count(2)
    tab.page.wait_for_function("events.length >= 4")
    found = tab.page.evaluate("events")
    assert [(name, host) for name, host, _ in found] == [
        (name, "flatthread") for name in ("count", "ready", "count", "posted")
    ]
    assert [found[0][2], found[2][2]] == [{"total": 1}, {"total": 2}]
    assert found[3][2]["status"] == "approved"
    assert len(found[3][2]["id"]) == 26


@pytest.mark.parametrize(
    ("stored", "attribute", "order"),
    [(None, "", None), (None, "newest", "newest"), ("best", "newest", "best"), ("x&y", "", None)],
)
def test_the_first_request_names_the_order_that_the_reader_chose(
    server: str,
    website: Website,
    tab: Tab,
    stored: str | None,
    attribute: str,
    order: str | None,
) -> None:
    value = json.dumps(json.dumps(stored))
    remember = f"<script>localStorage.setItem('flatthread:order', {value})</script>"
    body = remember + script(server) + element(f'data-order="{attribute}"')
    with tab.page.expect_request("**/comments?*") as asked:
        tab.page.goto(website.put("order", body))
    assert (f"order={order}" in asked.value.url) == (order is not None)
    assert ("order=" in asked.value.url) == (order is not None)


@pytest.mark.parametrize("stem", ["widget", "writer"])
def test_a_bundle_uses_no_text_while_it_is_loaded(
    server: str, website: Website, tab: Tab, stem: str
) -> None:
    """The strings may arrive after the bundle."""
    tab.page.goto(website.put("plain", ""))
    url = f"{server}/widget/{built(stem)}"
    assert tab.page.evaluate("(url) => import(url).then(Object.keys)", url)


def test_the_english_strings_are_the_catalogue(server: str, tab: Tab) -> None:
    answer = tab.page.request.get(f"{server}/widget/{built('strings-en')}")
    assert answer.json()["widget"] == catalogue.ENGLISH.entries["widget"]
