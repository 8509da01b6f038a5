"""The admin console works by keyboard, without JavaScript, on phones and with screen readers."""

import re

import playwright.sync_api as playwright
import pytest
from playwright.sync_api import expect

from comments.domain import records
from comments.domain.records import Policy, Verb
from comments.events import dispatcher
from comments.moderation import bulk_decisions, decisions
from comments.moderation.policy import policy_changes, rules
from comments.sites import site_deletion, site_settings, site_setup
from comments.store import connection
from comments.transfer.importing import running_import
from comments.transfer.moves import (
    declared_moves,
    doubled_threads,
    move_journal,
    move_plan,
    thread_moves,
)
from comments.transfer.parsing import imported_file
from comments.transfer.uploads import site_copy
from comments.upkeep import wiring
from tests.browser.conftest import OpenTab, Say, Tab
from tests.browser.test_conversation import choose, comment, write
from tests.support import stored_state
from tests.support.html import accessibility
from tests.support.people import account_holders
from tests.support.people.account_holders import OWNER, PASSWORD, moderator
from tests.support.threads import sample_threads

pytestmark = pytest.mark.browser

ADA = records.Actor("cli", "Ada")
LAPTOP: playwright.ViewportSize = {"width": 1280, "height": 800}
PHONE: playwright.ViewportSize = {"width": 360, "height": 740}


@pytest.fixture
def held(open_store: connection.Store, say: Say) -> list[str]:
    """Four held comments, newest first."""
    ids = [say(f"text **{number}**", name=f"Guest {number}") for number in range(4)]
    with open_store.context():
        for each in ids:
            decisions.decide("demo", each, Verb.HOLD, ADA, now=account_holders.here())
    return ids[::-1]


def sign_in(page: playwright.Page, server: str, login: str = "bob") -> None:
    page.goto(f"{server}/admin")
    page.get_by_label("Name or e-mail address").fill(login)
    page.get_by_label("Password").fill(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Your sites")).to_be_visible()


@pytest.fixture
def desk(server: str, open_tab: OpenTab, open_store: connection.Store) -> Tab:
    """The queue in a moderator's browser."""
    with open_store.context():
        account_holders.account("bob", moderator())
    tab = open_tab(f"{server}/admin/sign-in")
    sign_in(tab.page, server)
    return tab


def statuses(open_store: connection.Store, ids: list[str]) -> list[str]:
    with open_store.context():
        return [decisions.case("demo", each).comment.status for each in ids]


def has_keys(page: playwright.Page) -> None:
    """Wait until the script runs; keys have no effect before that."""
    expect(page.get_by_role("button", name="Keyboard shortcuts (?)")).to_be_visible()


def told() -> list[str]:
    """Return the ids of pending events."""
    return [stored_state.name_of(each) for each in stored_state.rows("Event")]


def row(page: playwright.Page, comment_id: str) -> playwright.Locator:
    return page.locator(f"#case-{comment_id}")


def test_on_a_laptop_the_navigation_is_beside_the_page_and_imports_fit(
    server: str, open_tab: OpenTab, open_store: connection.Store
) -> None:
    with open_store.context():
        account_holders.account("bob", OWNER)
        name = "wordpress-of-the-garden.xml"
        file = imported_file.ImportedFile("wordpress", name, "digest", 12_345)
        here = account_holders.here
        journal = running_import.RunningImport("demo", file, here(), here)
        journal.begin()
        journal.end()
    page = open_tab(f"{server}/admin/sign-in", viewport={"width": 1100, "height": 800}).page
    sign_in(page, server)
    page.goto(f"{server}/admin/sites/demo/imports")
    bar, content = (
        page.get_by_role("banner").bounding_box(),
        page.get_by_role("main").bounding_box(),
    )
    assert bar is not None
    assert content is not None
    assert (bar["y"], content["y"]) == (0, 0)
    assert bar["x"] + bar["width"] == content["x"]
    table = page.get_by_role("region", name="Imports")
    assert table.evaluate("region => region.scrollWidth - region.clientWidth") == 0


def test_keys_alone_decide_select_and_undo(
    desk: Tab, server: str, held: list[str], open_store: connection.Store
) -> None:
    page, live = desk.page, desk.page.get_by_role("status")
    page.get_by_role("link", name="demo").click()
    expect(page.get_by_role("heading", name="Pending comments")).to_be_visible()
    has_keys(page)
    page.keyboard.press("j")
    expect(row(page, held[0])).to_be_focused()
    page.keyboard.press("a")
    expect(row(page, held[1])).to_be_focused()
    expect(live).to_have_text("Guest 3: Approved. 3 comments left on this page. Press u to undo.")
    assert statuses(open_store, held) == ["approved", "pending", "pending", "pending"]
    page.keyboard.press("s")
    page.keyboard.press("r")  # Early key presses apply to the current rows
    expect(live).to_have_text("Guest 1: Rejected. 1 comment left on this page. Press u to undo.")
    assert statuses(open_store, held) == ["approved", "spam", "rejected", "pending"]
    expect(page.get_by_text("Decide about all matching comments")).to_be_visible()
    page.keyboard.press("s")
    expect(page.get_by_text("You have decided about all comments of this page.")).to_be_visible()
    expect(page.get_by_text("Decide about all matching comments")).to_be_hidden()
    page.keyboard.press("u")
    expect(live).to_have_text(re.compile("^Ada: Pending|^Guest 0: Pending"))
    page.keyboard.press("u")
    expect(live).to_have_text(re.compile("^Guest 1: Pending"))
    expect(row(page, held[2])).to_be_focused()
    page.keyboard.press("u")
    expect(live).to_have_text(re.compile("^Guest 2: Pending"))
    assert statuses(open_store, held) == ["approved", "pending", "pending", "pending"]


def test_a_selection_is_decided_together_and_undone_together_or_one_by_one(
    desk: Tab, server: str, held: list[str], open_store: connection.Store
) -> None:
    page, live = desk.page, desk.page.get_by_role("status")
    page.goto(f"{server}/admin/sites/demo/queue")
    row(page, held[1]).focus()
    page.keyboard.press("x")
    page.keyboard.press("j")
    page.keyboard.press("x")
    expect(live).to_have_text("2 selected.")
    page.keyboard.press("h")  # Each row says that an invisible comment cannot be hidden
    expect(live).to_have_text(re.compile("^0 of 2 done"))
    expect(row(page, held[1])).to_contain_text("Only approved comments can be pinned or hidden.")
    page.keyboard.press("k")
    for each in held[1:3]:
        row(page, each).get_by_role("checkbox").check()
    page.keyboard.press("a")
    expect(live).to_have_text(re.compile("^2 of 2 done. 2 comments left"))
    row(page, held[1]).get_by_role("button", name="Undo").click()
    expect(row(page, held[1])).to_be_focused()
    expect(live).to_have_text(re.compile("^Guest 2: Pending"))
    page.keyboard.press("u")  # Undo the rest of the bulk decision
    expect(live).to_have_text(re.compile("^Guest 1: Pending"))
    assert statuses(open_store, held) == ["pending"] * 4
    page.keyboard.press("o")
    expect(page.get_by_role("heading", name="Comment by Guest 1")).to_be_visible()
    has_keys(page)
    page.keyboard.press("j")
    page.keyboard.press("a")
    expect(live).to_have_text(re.compile("^Guest 1: Approved"))
    page.reload()
    page.keyboard.press("j")
    for words in ("Approved, pinned", "Approved"):
        page.keyboard.press("p")
        expect(live).to_have_text(re.compile(f"^Guest 1: {words}\\."))


def test_no_key_acts_while_typing_or_in_a_dialog_and_keys_can_be_disabled(
    desk: Tab, server: str, held: list[str], open_store: connection.Store
) -> None:
    page = desk.page
    page.goto(f"{server}/admin/sites/demo/queue")
    for key in "j/":
        page.keyboard.press(key)
    field = page.get_by_role("searchbox")
    expect(field).to_be_focused()
    page.keyboard.type("jars?u")
    expect(field).to_have_value("jars?u")
    expect(page.get_by_role("dialog")).to_be_hidden()
    row(page, held[0]).get_by_role("checkbox").check()
    page.get_by_label("Reason (only moderators see it)").press("a")
    row(page, held[0]).focus()
    for combined in ("Control+a", "Alt+a", "Meta+s"):
        page.keyboard.press(combined)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    assert accessibility.complaints(page) == []
    page.keyboard.press("a")
    page.get_by_label("Use keyboard shortcuts in this browser").uncheck()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    row(page, held[0]).focus()
    page.keyboard.press("a")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_hidden()
    assert statuses(open_store, held) == ["pending"] * 4
    page.reload()
    page.get_by_role("button", name="Keyboard shortcuts (?)").click()
    page.get_by_label("Use keyboard shortcuts in this browser").check()
    page.get_by_role("button", name="Close").click()
    page.keyboard.press("j")
    expect(row(page, held[0])).to_be_focused()


def test_a_queue_of_thirty_is_decided_without_a_pointer(
    desk: Tab, server: str, open_store: connection.Store, say: Say
) -> None:
    page, live = desk.page, desk.page.get_by_role("status")
    ids = [say(f"text {number}", name=f"Guest {number}") for number in range(30)][::-1]
    with open_store.context():
        for each in ids:
            decisions.decide("demo", each, Verb.HOLD, ADA, now=account_holders.here())
    page.goto(f"{server}/admin/sites/demo/queue")
    has_keys(page)
    page.keyboard.press("j")
    for place in range(25):  # Type at human speed without waiting for responses
        page.keyboard.press("s" if place % 5 == 4 else "a")
    expect(live).to_have_text("Guest 5: Spam. 0 comments left on this page. Press u to undo.")
    page.keyboard.press("n")
    expect(page.locator(".ft-case")).to_have_count(5)
    has_keys(page)
    for key in "jxjxjxjxjx":
        page.keyboard.press(key)
    expect(live).to_have_text("5 selected.")
    page.keyboard.press("a")
    expect(live).to_have_text(re.compile("^5 of 5 done. 0 comments left"))
    expected = ["spam" if place % 5 == 4 else "approved" for place in range(25)]
    assert statuses(open_store, ids) == [*expected, *["approved"] * 5]


def test_an_earlier_decision_or_a_lost_session_is_reported_and_changes_nothing(
    desk: Tab, server: str, held: list[str], open_store: connection.Store
) -> None:
    page, live = desk.page, desk.page.get_by_role("status")
    page.goto(f"{server}/admin/sites/demo/queue")
    with open_store.context():
        decisions.decide("demo", held[0], Verb.SPAM, ADA, now=account_holders.here())
    row(page, held[0]).get_by_role("button", name="Approve").click()
    expect(live).to_have_text(re.compile("was changed after you opened this page. Status: Spam."))
    expect(row(page, held[0])).to_contain_text("Not changed: the comment was changed")
    assert statuses(open_store, held[:1]) == ["spam"]
    page.context.clear_cookies()
    desk.expect_status(403)
    row(page, held[1]).get_by_role("button", name="Approve").click()
    expect(live).to_have_text("You are signed out, or this page is out of date. Reload it.")
    assert statuses(open_store, held[1:]) == ["pending"] * 3


def test_without_javascript_and_on_a_phone_forms_do_the_same(
    server: str, open_tab: OpenTab, held: list[str], open_store: connection.Store
) -> None:
    with open_store.context():
        account_holders.account("bob", moderator())
    page = open_tab(f"{server}/admin/sign-in", java_script_enabled=False, viewport=PHONE).page
    sign_in(page, server)
    page.get_by_role("link", name="demo").click()
    for each in held[:2]:
        row(page, each).get_by_role("checkbox").check()
    page.get_by_label("Reason (only moderators see it)").fill("seen")
    page.get_by_role("group", name="Selected comments").get_by_role(
        "button", name="Mark as spam"
    ).click()
    expect(page.get_by_role("heading", name="Mark as spam: 2 of 2 done.")).to_be_visible()
    assert statuses(open_store, held) == ["spam", "spam", "pending", "pending"]
    page.get_by_role("button", name="Undo").click()
    expect(
        page.get_by_role("heading", name="Restore previous status: 2 of 2 done.")
    ).to_be_visible()
    row(page, held[3]).get_by_role("button", name="Approve").click()
    expect(page.get_by_role("heading", name="Approve: 1 of 1 done.")).to_be_visible()
    assert statuses(open_store, held) == ["pending", "pending", "pending", "approved"]


def check_look(page: playwright.Page, path: str) -> None:
    """Check the accessibility and width of a page, in light and dark, on a laptop and a phone."""
    for size in (LAPTOP, PHONE):
        page.set_viewport_size(size)
        page.emulate_media(color_scheme="light")
        assert accessibility.complaints(page) == [], path
        page.emulate_media(color_scheme="dark")
        assert accessibility.complaints(page, rules=["color-contrast"]) == [], path
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
        heads = page.locator("thead th").evaluate_all("all => all.map((each) => each.offsetHeight)")
        assert max(heads, default=0) < 80, path  # Pixels, which is only a few lines
        beyond = page.locator(".ft-wide:has(.ft-stack)").evaluate_all(
            "all => all.filter((each) => each.scrollWidth > each.clientWidth).length"
        )
        assert beyond == 0, path


def test_every_page_is_accessible_in_light_and_dark_and_fits_a_phone(
    server: str, open_tab: OpenTab, held: list[str], open_store: connection.Store, say: Say
) -> None:
    """Open every page with content. `Tab` also fails the test if a page violates its policy."""
    reply = say("a reply with `code` and a very-long-word-" + "x" * 300)
    with open_store.context():
        bob = account_holders.account("bob", OWNER)
        account_holders.account("cleo", moderator())
        now = account_holders.here()
        decisions.decide("demo", reply, Verb.SPAM, ADA, now=now, reason="why not")
        rule = rules.Rule("bets", rules.Action.HOLD, words=("casino*",))
        policy_changes.put_rule("demo", rule, ADA, now=now)
        policy_changes.ban("demo", "g:eve", ADA, now=now)
        dispatcher.deliver(told(), now=now, handlers=wiring.HANDLERS)
        author = decisions.case("demo", held[0]).comment.author.id
    page = open_tab(f"{server}/admin/sign-in", viewport=PHONE).page
    assert accessibility.complaints(page) == []
    sign_in(page, server)
    paths = [
        "", "/health", "/account", "/people", f"/people/account?id={bob.id}", "/mail", "/service",
        "/providers", f"/people/data?who={author}",
        *(f"/sites/demo/{path}" for path in (
            "queue", "queue?status=any&q=text", f"comments/{reply}", "reported", "threads",
            "thread?thread=demo", "thread/stored?thread=demo", "authors", f"author?id={author}",
            "rules?rule=bets", "statistics", "log", "settings", "settings/delete", "limits",
            "imports", "advisers", "team", "sign-in", "counters", "connections", "notifications",
            "thread/followers?thread=demo", "audiences?every=site", "moves?old=demo",
        )),
    ]  # fmt: skip
    for path in paths:
        page.goto(f"{server}/admin{path}")
        check_look(page, path)


def test_home_a_site_copy_and_the_pages_of_bulk_decisions_are_accessible(
    server: str, open_tab: OpenTab, held: list[str], open_store: connection.Store
) -> None:
    """Home lists a copy, a deleted site, an origin that is not allowed and held comments."""
    with open_store.context():
        account_holders.account("bob", OWNER)
        now, scheme = account_holders.here(), sample_threads.SETTINGS.scheme
        site_settings.add("old", ["https://old.example"], scheme=scheme, now=now)
        site_deletion.delete("old", ADA, now=now)
        site_copy.copy("demo", "demo-staging", ["https://staging.example"], ADA, now=now)
        site_setup.note(site_settings.get("demo"), "https://other.example", now=now)
    page = open_tab(f"{server}/admin/sign-in", viewport=PHONE).page
    sign_in(page, server)
    expect(page.get_by_text("A page of https://other.example asked")).to_be_visible()
    expect(page.get_by_role("button", name="Take back old")).to_be_visible()
    check_look(page, "home")
    for path in ("demo-staging/queue", "demo-staging/settings", "demo/queue/all"):
        page.goto(f"{server}/admin/sites/{path}")
        check_look(page, path)
    page.get_by_role("button", name="Mark as spam").click()
    expect(page.get_by_role("progressbar")).to_be_visible()
    check_look(page, "a bulk decision")
    with open_store.context():
        bulk_decisions.go_on("demo", bulk_decisions.jobs("demo")[0].id, now=now)
    expect(page.get_by_role("button", name="Undo")).to_be_visible()
    check_look(page, "a bulk decision that has ended")


def test_every_page_of_a_new_site_is_accessible(
    server: str, open_tab: OpenTab, site: records.Site, open_store: connection.Store
) -> None:
    with open_store.context():
        account_holders.account("bob", OWNER)
        now = account_holders.here()
        scheme = sample_threads.SETTINGS.scheme
        site_settings.add("new", ["https://new.example"], scheme=scheme, now=now)
    page = open_tab(f"{server}/admin/sign-in").page
    sign_in(page, server)
    for path in (
        "start", "queue", "queue?status=any&q=text&category=sport", "reported", "threads",
        "threads?order=comments&category=sport", "authors", "statistics", "log", "rules",
        "imports", "connections", "counters", "sign-in",
    ):  # fmt: skip
        page.goto(f"{server}/admin/sites/new/{path}")
        check_look(page, path)


def test_proposed_moves_and_doubled_pages_are_accessible_in_every_state(
    server: str, open_tab: OpenTab, site: records.Site, open_store: connection.Store
) -> None:
    home, now = site.origins[0], account_holders.here()
    host = home.partition("//")[2]
    pages = {"a": ("one", "two"), "b": ("one", "three"), "x": ("four",), "y": ("four",)}
    with open_store.context():
        account_holders.account("bob", OWNER)
        for name, texts in pages.items():
            for text in (*texts, name * 2, name * 3)[: 4 if name in "ab" else 1]:
                sample_threads.post(site, text, thread=f"{host}/{name}", url=f"{home}/{name}")
        declared_moves.note(site, f"{host}/x", f"{home}/{'long-' * 50}", now=now)
        plan = move_plan.of_list(site, [("/y", "/new")])
        thread_moves.run_to_end(thread_moves.begin(site, plan, "a move", ADA, now=now))
        move_journal.expire(now + move_journal.TERM)
        declared_moves.note_answer(site_settings.get("demo"), f"{host}/y", f"{host}/y", now=now)
    page = open_tab(f"{server}/admin/sign-in", viewport=PHONE).page
    sign_in(page, server)

    def check(*shown: str) -> None:
        page.goto(f"{server}/admin/sites/demo/moves")
        for text in shown:
            expect(page.get_by_text(text)).to_be_visible()
        check_look(page, shown[0])

    check("Pages that say they have moved", "Pages that answer at another address")
    with open_store.context():
        doubled_threads.begin("demo", now=now)
    check("Looking for doubled pages.")
    with open_store.context():
        doubled_threads.finish(9)
    check("2 doubled comments found", "may be different pages")
    with open_store.context():
        doubled_threads.merge_all("demo", ADA)
    check("Merging pages: 0 of 2.")
    with open_store.context():
        doubled_threads.finish(9)
    check("1 doubled comment found", "1 comment moved")


# Pages, and a field of each that refuses "x!".
REFUSED = {
    "": "origin",
    "/account": "current",
    "/people": "current",
    "/sites/demo/author?id={author}": "days",
    "/sites/demo/thread?thread=demo": "url",
    "/sites/demo/settings": "reports",
    "/sites/demo/settings/delete": "site",
    "/sites/demo/limits": "posts_per_author",
    "/sites/demo/rules": "id",
    "/sites/demo/connections": "url",
    "/sites/demo/advisers": "url",
    "/sites/demo/start": "page",
}
SEND = """each => {
    each.form.noValidate = true;
    for (const box of each.form.querySelectorAll("details")) box.open = true;
    each.value = "x!";
    each.form.querySelector(".ft-primary, [type=submit]").click();
}"""


def test_an_error_of_a_form_has_the_focus_and_is_accessible(
    server: str, open_tab: OpenTab, open_store: connection.Store, say: Say
) -> None:
    said = say("Hello")
    with open_store.context():
        account_holders.account("bob", OWNER)
        author = decisions.case("demo", said).comment.author.id
    tab = open_tab(f"{server}/admin/sign-in")
    tab.expect_status(400)
    tab.expect_status(403)
    page = tab.page
    sign_in(page, server)
    for path, field in REFUSED.items():
        page.goto(f"{server}/admin{path.format(author=author)}")
        page.locator(f'[name="{field}"]').first.evaluate(SEND)
        expect(page.locator("[aria-invalid]")).to_be_focused()
        check_look(page, path)


def test_a_guest_is_held_approved_held_again_for_a_link_banned_and_restored(
    server: str, open_tab: OpenTab, desk: Tab, open_store: connection.Store
) -> None:
    moderate(open_store)
    guest = open_tab(server, locale="en-GB").page
    reader = open_tab(server, locale="en-US").page
    queue = f"{server}/admin/sites/demo/queue"

    write(guest, "Hello there")
    for _ in range(2):
        expect(comment(guest, "Hello there")).to_contain_text("Awaiting approval")
        expect(guest.get_by_role("heading", name="1 comment")).to_have_count(0)
        guest.reload()
    see(reader, None)
    approve(desk.page, queue)
    see(reader, "Hello there")
    see(guest, "Hello there")
    expect(guest.get_by_text("Awaiting approval")).to_have_count(0)

    edit(guest, "Hello there", "Look [here](https://shop.example)")
    expect(comment(guest, "Look here")).to_contain_text("Awaiting approval")
    see(reader, None)
    desk.page.goto(queue)
    expect(desk.page.get_by_text("Rule “links”: there are more than 0 links")).to_be_visible()
    approve(desk.page, queue)
    see(reader, "Look here")

    ban(desk.page)
    see(reader, None)
    desk.page.get_by_label("Restore hidden comments").check()
    desk.page.get_by_role("button", name="Lift ban").click()
    expect(desk.page.get_by_text("Ban this author")).to_be_visible()
    see(reader, "Look here")
    with open_store.context():
        dispatcher.deliver(told(), now=account_holders.here(), handlers=wiring.HANDLERS)
        stored_state.assert_sums()


def moderate(open_store: connection.Store) -> None:
    """Hold first comments and comments with links."""
    rule = rules.Rule("links", rules.Action.HOLD, links=0)
    with open_store.context():
        policy_changes.set_policy("demo", ADA, now=account_holders.here(), policy=Policy.FIRST)
        policy_changes.put_rule("demo", rule, ADA, now=account_holders.here())


def see(page: playwright.Page, body: str | None) -> None:
    """Reload the thread and check that it shows this comment, or no comments if `body` is None."""
    page.reload()
    if body is None:
        expect(page.get_by_text("No comments yet.")).to_be_visible()
    else:
        expect(comment(page, body)).to_be_visible()


def approve(page: playwright.Page, queue: str) -> None:
    """Approve the held comment by keyboard alone."""
    page.goto(queue)
    page.keyboard.press("j")
    page.keyboard.press("a")
    expect(page.get_by_role("status")).to_have_text(re.compile("^Ada: Approved"))


def edit(page: playwright.Page, body: str, text: str) -> None:
    choose(comment(page, body), "Edit")
    form = page.get_by_role("form", name="Edit")
    form.get_by_role("textbox").first.fill(text)
    form.get_by_role("button", name="Save").click()


def ban(page: playwright.Page) -> None:
    """Ban the author of the rejected comment and hide all their comments."""
    page.get_by_role("link", name="Ada", exact=True).click()
    page.get_by_text("Ban this author").click()
    page.get_by_label("Hide existing comments").check()
    page.get_by_role("button", name="Ban author").click()
    expect(page.get_by_text("Banned", exact=True)).to_be_visible()


def test_the_time_zone_of_the_browser_is_only_proposed(
    server: str, open_tab: OpenTab, open_store: connection.Store
) -> None:
    with open_store.context():
        account_holders.account("bob", moderator(), mail="bob@example.org")
    page = open_tab(f"{server}/admin/sign-in", timezone_id="Asia/Tokyo").page
    sign_in(page, server)
    page.goto(f"{server}/admin/sites/demo/notifications")
    zone, save = page.get_by_label("Time zone"), page.get_by_role("button", name="Save")
    expect(zone).to_have_value("Asia/Tokyo")
    zone.fill("Europe/Paris")
    page.get_by_label("Mail to Bob about").select_option("Daily summary")
    save.click()
    expect(page).to_have_url(re.compile("#saved$"))
    page.reload()
    expect(zone).to_have_value("Europe/Paris")
