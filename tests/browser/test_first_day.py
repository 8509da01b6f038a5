"""A reader's first day: everything that a new reader does, on a phone, in German, in one visit."""

import playwright.sync_api as playwright
import pytest
from playwright.sync_api import expect

from comments.domain import records
from comments.sites import site_settings
from comments.store import connection
from tests.browser.conftest import OpenTab, Say, Website

pytestmark = pytest.mark.browser

SECONDS = 60  # Between two checks for new comments
PHONE = {
    "viewport": {"width": 375, "height": 800}, "has_touch": True, "is_mobile": True,
    "locale": "de-DE",
}  # fmt: skip


def _bodies(page: playwright.Page) -> list[str]:
    return page.locator(".ft-body:visible").all_inner_texts()


def _comment(page: playwright.Page, text: str) -> playwright.Locator:
    """Return the comment itself, not a comment that contains it: the list is flat."""
    return page.get_by_role("listitem").filter(has=page.get_by_text(text, exact=True))


def _choose(page: playwright.Page, text: str, item: str) -> None:
    _comment(page, text).get_by_role("button", name="Weitere Aktionen").tap()
    page.get_by_role("menuitem", name=item).tap()


def _read(page: playwright.Page) -> None:
    """Check that nothing is wider than the phone and that the interface is in German."""
    expect(page.get_by_role("heading", name="3 Kommentare")).to_be_visible()
    assert _bodies(page) == ["Wer war dabei?", "Ich nicht.", "Kauft Pillen!"]
    expect(page.locator(".ft-thread")).to_have_attribute("lang", "de")
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["viewport"]["width"]


def _sort(page: playwright.Page) -> None:
    """Put the newest discussion first."""
    page.get_by_role("button", name="Sortierung: Älteste").tap()
    page.get_by_role("menuitemradio", name="Neueste").tap()
    expect(page.locator(".ft-body").first).to_have_text("Kauft Pillen!")


def _collapse_and_open(page: playwright.Page) -> None:
    """Collapse a discussion, and open it again."""
    page.get_by_role("button", name="Kommentar von Ada einklappen").tap()
    expect(page.get_by_text("Ich nicht.")).to_be_hidden()
    page.get_by_role("button", name="Kommentar von Ada ausklappen").tap()
    expect(page.get_by_text("Ich nicht.")).to_be_visible()


def _answer(page: playwright.Page) -> None:
    """Reply. The browser notices that the name is missing."""
    _comment(page, "Wer war dabei?").get_by_role("button", name="Ada antworten").tap()
    form = page.get_by_role("form", name="Ada antworten")
    form.get_by_role("textbox", name="Kommentar").fill("Ich war da")
    form.get_by_role("button", name="Antwort veröffentlichen").tap()
    expect(form.get_by_text("Gib deinen Namen ein.")).to_be_visible()
    form.get_by_role("textbox", name="Name").fill("Grete")
    form.get_by_role("button", name="Antwort veröffentlichen").tap()
    expect(page.get_by_text("Dein Kommentar wurde veröffentlicht.").first).to_be_visible()
    expect(page.get_by_role("heading", name="4 Kommentare")).to_be_visible()


def _edit(page: playwright.Page) -> str:
    """Edit while the server accepts it. Return the comment's id."""
    _choose(page, "Ich war da", "Bearbeiten (noch")
    form = page.get_by_role("form", name="Deinen Kommentar bearbeiten")
    expect(form.get_by_text("Zeit zum Bearbeiten: ")).to_be_visible()
    form.get_by_role("textbox").fill("Ich war da.")
    form.get_by_role("button", name="Änderungen speichern").tap()
    own = _comment(page, "Ich war da.")
    expect(own.get_by_text("bearbeitet")).to_be_visible()
    return own.get_attribute("data-id") or ""


def _see_the_answer(page: playwright.Page) -> None:
    """Look at a reply that another person posts in the meantime."""
    with page.expect_response(lambda answer: "/comments?" in answer.url):
        page.clock.run_for(SECONDS * 1000)
    page.get_by_role("button", name="1 neue Antwort").tap()
    expect(page.get_by_text("Wie war es?")).to_be_visible()
    expect(page.get_by_role("heading", name="5 Kommentare")).to_be_visible()


def _report_and_mute(page: playwright.Page) -> None:
    """Report a comment, and mute its author."""
    _choose(page, "Kauft Pillen!", "Melden")
    page.get_by_role("radio", name="Spam oder Werbung").tap()
    with page.expect_response(lambda answer: answer.url.endswith("/report")) as reported:
        page.get_by_role("button", name="Kommentar melden").tap()
    assert reported.value.status == 202
    expect(page.get_by_role("status").filter(has_text="Die Moderation sieht sich")).to_be_visible()
    _choose(page, "Kauft Pillen!", "Spam stummschalten")
    expect(page.get_by_text("Kauft Pillen!")).to_have_count(0)
    expect(page.get_by_text("Du hast Spam stummgeschaltet.")).to_be_visible()


def _erase(page: playwright.Page) -> None:
    """Erase everything. The other person's reply stays below a comment without text."""
    page.get_by_role("button", name="Dein Menü, Grete").tap()
    page.get_by_role("menuitem", name="Meine Kommentare und Daten löschen").tap()
    page.get_by_role("button", name="Alles löschen").tap()
    expect(page.get_by_text("Dieser Kommentar wurde entfernt.")).to_be_visible()
    expect(page.get_by_text("Ich war da.")).to_have_count(0)
    assert "Grete" not in page.evaluate("JSON.stringify(localStorage)")
    page.reload()
    expect(page.get_by_text("Wie war es?")).to_be_visible()
    expect(page.get_by_text("Dieser Kommentar wurde entfernt.")).to_be_visible()
    expect(page.get_by_text("Kauft Pillen!")).to_have_count(0)


def test_a_readers_first_day(
    server: str,
    website: Website,
    open_tab: OpenTab,
    say: Say,
    open_store: connection.Store,
    site: records.Site,
) -> None:
    with open_store.context():
        site_settings.change(site.id, options={"live": SECONDS})
    question = say("Wer war dabei?", name="Ada")
    say("Ich nicht.", name="Bob", parent=question)
    say("Kauft Pillen!", name="Spam")
    html = (
        '<!doctype html><html lang="de"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><title>Ein Artikel</title>'
        "<h1>Ein Artikel</h1><p>Mit einem Absatz.</p>"
        f'<script type="module" src="{server}/widget/flatthread.js" data-site="demo"></script>'
        '<div id="flatthread" data-thread="demo"></div>'
    )
    tab = open_tab("about:blank", **PHONE)
    page = tab.page
    page.clock.install()
    page.goto(website.put("artikel", html))
    _read(page)
    _sort(page)
    _collapse_and_open(page)
    _answer(page)
    own = _edit(page)
    say("Wie war es?", name="Ada", parent=own)
    _see_the_answer(page)
    _report_and_mute(page)
    _erase(page)
