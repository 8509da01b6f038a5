"""Turnstile works in a real browser; its script is loaded only on sites that enable it.

An intercepted browser route and a loopback server simulate Cloudflare: the script issues tokens,
and the server accepts each token once.
"""

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs

import pytest
from playwright import sync_api as playwright
from playwright.sync_api import expect

from comments import config
from comments.domain import records
from comments.limits import turnstile
from comments.sites import site_settings, turnstile_settings
from comments.store import connection
from tests.browser.conftest import OpenTab, Website
from tests.browser.test_widget_embedding import STRICT, post, script
from tests.support import loopback_servers
from tests.support.threads import sample_threads

pytestmark = pytest.mark.browser

CLOUDFLARE = "https://challenges.cloudflare.com"
# A substitute for Cloudflare's script that renders a box and later issues a token.
THEIRS = """
    let made = 0, asked = [];
    window.turnstile = {
        render(box, options) {
            asked.push({ options, box });
            box.textContent = `Turnstile for ${options.action}`;
            window.rendered = [options.sitekey, options.action, box.isConnected];
            setTimeout(() => options.callback(`token ${++made}`), 20);
            return asked.length - 1;
        },
        reset(id) {
            setTimeout(() => asked[id].options.callback(`token ${++made}`), 20);
        },
    };
"""


@pytest.fixture
def cloudflare(
    open_store: connection.Store, site: records.Site, settings: config.Settings, website: Website
) -> Iterator[Any]:
    used = []

    def answer(heard: Any) -> None:
        token = parse_qs(heard.body.decode())["response"][0]
        said = {"success": False, "error-codes": ["timeout-or-duplicate"]}
        if token not in used:
            used.append(token)
            said = {"success": True, "hostname": "127.0.0.1", "action": "comment"}
        receiver.answer = json.dumps(said).encode()

    with loopback_servers.receiver() as receiver:
        receiver.then = answer
        client = loopback_servers.client(receiver.port)
        turnstile.OUTBOUND.put(open_store, client)
        with open_store.context():
            url = f"http://{loopback_servers.NAME}:{receiver.port}/siteverify"
            given = turnstile_settings.TurnstileInput("site-key", "secret-key", url=url)
            turnstile_settings.set_up("demo", given, settings=settings, now=sample_threads.START)
        yield used


def route(page: playwright.Page, body: str = THEIRS) -> None:
    page.route(
        f"{CLOUDFLARE}/**",
        lambda route: (
            route.fulfill(body=body, content_type="text/javascript")
            if body is not None
            else route.abort()
        ),
    )


def opened(open_tab: OpenTab, server: str, website: Website, body: str = THEIRS) -> Any:
    """Open a page with a strict policy that allows only the sources listed in the documentation."""
    policy = STRICT.format(server=server).replace(
        f"script-src {server}", f"script-src {server} {CLOUDFLARE}; frame-src {CLOUDFLARE}"
    )
    html = f'{script(server)}<div id="flatthread">loading</div>'
    url = website.put(
        "strict", html,
        Content_Security_Policy=f"{policy}; trusted-types flatthread flatthread-turnstile",
    )  # fmt: skip
    tab = open_tab("about:blank")
    route(tab.page, body)
    tab.page.goto(url)
    return tab


def test_each_post_has_a_token_under_a_strict_policy(
    cloudflare: Any, server: str, website: Website, open_tab: OpenTab
) -> None:
    tab = opened(open_tab, server, website)
    asked = []
    tab.page.on("request", lambda request: asked.append(request.url))
    form = tab.page.get_by_role("form", name="Write a comment")
    expect(form).to_be_visible()
    assert not [url for url in asked if "turnstile" in url]
    form.get_by_role("textbox", name="Comment").focus()
    expect(tab.page.get_by_text("Turnstile for comment")).to_be_visible()
    assert tab.page.evaluate("rendered") == ["site-key", "comment", True]
    post(tab.page, "with a token")
    post(tab.page, "with another one")
    assert cloudflare == ["token 1", "token 2"]


def test_a_refused_token_is_replaced_without_asking(
    cloudflare: Any, server: str, website: Website, open_tab: OpenTab
) -> None:
    cloudflare.append("token 1")
    tab = opened(open_tab, server, website)
    tab.expect_status(403)
    post(tab.page, "in the end")
    assert cloudflare == ["token 1", "token 2"]


def test_if_turnstile_is_unreachable_the_reader_is_told_and_the_text_kept(
    cloudflare: Any, server: str, website: Website, open_tab: OpenTab
) -> None:
    tab = opened(open_tab, server, website, body=None)  # type: ignore[arg-type]
    tab.expected.append("net::ERR_FAILED")
    form = tab.page.get_by_role("form", name="Write a comment")
    form.get_by_role("textbox", name="Comment").fill("kept")
    form.get_by_role("textbox", name="Name").fill("Ada")
    form.get_by_role("button", name="Post comment").click()
    expect(form.get_by_role("alert").last).to_contain_text("Turnstile")
    expect(form.get_by_role("textbox", name="Comment")).to_have_value("kept")
    tab.page.unroute(f"{CLOUDFLARE}/**")
    route(tab.page)
    form.get_by_role("button", name="Post comment").click()
    expect(tab.page.locator(".ft-body", has_text="kept")).to_be_visible()


def test_turnstile_is_not_loaded_on_sites_without_it(
    cloudflare: Any, server: str, open_store: connection.Store, open_tab: OpenTab
) -> None:
    with open_store.context():
        turnstile_settings.remove("demo")
        assert site_settings.get("demo").turnstile is None
    tab = open_tab("about:blank")
    asked = []
    tab.page.on("request", lambda request: asked.append(request.url))
    tab.page.goto(server)
    post(tab.page, "without")
    assert not [url for url in asked if "turnstile" in url or CLOUDFLARE in url]
