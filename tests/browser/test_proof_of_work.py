"""A real browser finds the proof of work in the background without disturbing the author."""

from datetime import UTC, datetime
from typing import Any

import pytest
from playwright.sync_api import expect

from comments.limits import usage
from comments.sites import site_settings
from comments.store import connection
from tests.browser import widget_form
from tests.browser.conftest import OpenTab, Say, Website, built
from tests.browser.test_forms import on_posts
from tests.browser.test_votes import cast, score, settled, up
from tests.browser.test_widget_embedding import STRICT, post, script

TRIES = 20_000
pytestmark = [
    pytest.mark.browser,
    pytest.mark.settings(proof_of_work=TRIES, form_seconds=1, posts_per_network=50),
]
CHALLENGES = "**/api/v1/sites/demo/challenge"


def test_a_post_under_a_strict_policy_has_a_proof(
    server: str, website: Website, open_tab: OpenTab
) -> None:
    url = website.put(
        "strict",
        f'{script(server)}<div id="flatthread">loading</div>',
        Content_Security_Policy=STRICT.format(server=server),
    )
    tab = open_tab(url)
    post(tab.page, "with a proof")
    post(tab.page, "with another one")
    tab.page.reload()
    expect(tab.page.locator(".ft-body")).to_have_count(2)


def test_nothing_for_proofs_is_loaded_before_somebody_writes(
    server: str, open_tab: OpenTab
) -> None:
    tab = open_tab("about:blank")
    asked = []
    tab.page.on("request", lambda request: asked.append(request.url))
    tab.page.goto(server)
    form = tab.page.get_by_role("form", name="Write a comment")
    expect(form).to_be_visible()
    assert not [url for url in asked if "/writer-" in url or "challenge" in url]
    with tab.page.expect_response(CHALLENGES):
        form.get_by_role("textbox", name="Comment").focus()
    assert [url for url in asked if "/widget/writer-" in url]


def test_a_refused_proof_is_replaced_without_asking(server: str, open_tab: OpenTab) -> None:
    tab = open_tab(server)
    tab.expect_status(403)
    sent = []

    def spoiled(route: Any) -> None:
        body = route.request.post_data_json
        sent.append(body["proof"])
        if len(sent) == 1:
            body["proof"] = body["proof"][:-8]
        route.continue_(post_data=body)

    on_posts(tab.page, spoiled)
    post(tab.page, "in the end")
    assert len(set(sent)) == 2


def test_the_page_stays_responsive_during_the_search(server: str, open_tab: OpenTab) -> None:
    """The search yields to the page after each slice, so the page never waits for long."""
    tab = open_tab(server)
    found = tab.page.evaluate(
        """async (writer) => {
            const { solve } = await import(writer);
            const challenge = "0".repeat(64);
            let turns = 0;
            const timer = setInterval(() => turns++, 0);
            const asked = { challenge, salt: "a salt", maxnumber: 60000 };
            const failed = await solve(asked).catch(() => "none");
            clearInterval(timer);
            return [failed, turns];
        }""",
        f"{server}/widget/{built('writer')}",
    )
    assert found[0] == "none"
    assert found[1] > 5


def test_the_search_finds_the_right_number(server: str, open_tab: OpenTab) -> None:
    tab = open_tab(server)
    found = tab.page.evaluate(
        """async (writer) => {
            const { solve } = await import(writer);
            const hex = (byte) => byte.toString(16).padStart(2, "0");
            const sizes = [[0, 0], [3, 9], [54, 7], [55, 64], [56, 65], [63, 100], [119, 999]];
            const found = [];
            for (const [length, number] of sizes) {
                const salt = "s".repeat(length);
                const bytes = new TextEncoder().encode(salt + number);
                const made = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
                const challenge = Array.from(made, hex).join("");
                found.push((await solve({ challenge, salt, maxnumber: number })) - number);
            }
            return found;
        }""",
        f"{server}/widget/{built('writer')}",
    )
    assert found == [0] * 7


def test_a_refused_post_is_explained_and_its_text_kept(
    server: str, open_tab: OpenTab, open_store: connection.Store
) -> None:
    with open_store.context():
        site_settings.change("demo", guard={"posts_per_network": 1})
    tab = open_tab(server)
    post(tab.page, "the one")
    tab.expect_status(429)
    form = tab.page.get_by_role("form", name="Write a comment")
    form.get_by_role("textbox", name="Comment").fill("one too many")
    form.get_by_role("button", name="Post comment").click()
    expect(form.get_by_role("alert").last).to_contain_text("You're posting too fast. Try again in")
    expect(form.get_by_role("textbox", name="Comment")).to_have_value("one too many")


def test_the_honeypot_is_invisible_to_people(server: str, open_tab: OpenTab) -> None:
    tab = open_tab(server)
    form = widget_form.opened(tab.page)
    form.get_by_role("textbox", name="Name").fill("Ada")
    expect(form.get_by_role("textbox")).to_have_count(3)
    form.get_by_role("textbox", name="Website").press("Tab")
    assert (
        tab.page.evaluate("document.querySelector('#flatthread').shadowRoot.activeElement.name")
        != "subject"
    )
    tab.expect_status(403)
    form.get_by_role("textbox", name="Comment").fill("Buy")
    form.locator("[name=subject]").evaluate("node => { node.value = 'Cheap'; }")
    form.get_by_role("button", name="Post comment").click()
    expect(form.get_by_role("alert").last).to_contain_text("was not accepted")


def test_a_site_with_a_spent_budget_reports_it_and_stays_readable(
    server: str, open_tab: OpenTab, open_store: connection.Store, say: Say
) -> None:
    say("was here before")
    with open_store.context():
        for name, value in (("posts", 1), ("then", "read-only")):
            site_settings.change("demo", budget={name: value})
        usage.note("demo", usage.UsageAmounts(posts=1), now=datetime.now(UTC))
    tab = open_tab(f"{server}/?thread=demo")
    expect(tab.page.locator(".ft-body")).to_have_text("was here before")
    expect(tab.page.get_by_text("New comments are paused.")).to_be_visible()
    expect(tab.page.get_by_role("form")).to_have_count(0)
    expect(tab.page.get_by_role("button", name="Reply to")).to_have_count(0)


def test_a_first_vote_has_a_light_proof_and_later_votes_none(
    server: str, website: Website, open_tab: OpenTab, say: Say, open_store: connection.Store
) -> None:
    say("one")
    say("two")
    url = website.put(
        "strict-votes",
        f'{script(server)}<div id="flatthread" data-thread="demo">loading</div>',
        Content_Security_Policy=STRICT.format(server=server),
    )
    tab = open_tab(url)
    sent = []
    tab.page.on("request", lambda each: sent.append(each.url) if "challenge" in each.url else None)
    for body in ("one", "two"):
        up(tab.page, body).click()
        settled(tab.page, body)
        expect(score(tab.page, body)).to_have_text("1")
    assert cast(open_store) == [1, 1]
    assert [url.partition("?")[2] for url in sent] == ["purpose=vote"]


def test_a_votes_refused_proof_is_replaced(
    server: str, open_tab: OpenTab, say: Say, open_store: connection.Store
) -> None:
    say("one")
    tab = open_tab(server)
    tab.expect_status(403)
    sent = []

    def spoiled(route: Any) -> None:
        body = route.request.post_data_json
        sent.append(body["proof"])
        if len(sent) == 1:
            body["proof"] = body["proof"][:-8]
        route.continue_(post_data=body)

    tab.page.route("**/vote", spoiled)
    up(tab.page, "one").click()
    settled(tab.page, "one")
    expect(score(tab.page, "one")).to_have_text("1")
    assert cast(open_store) == [1]
    assert len(set(sent)) == 2
