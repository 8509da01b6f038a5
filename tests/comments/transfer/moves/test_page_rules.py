"""Settings that give pages other ids move their threads, so every address still leads to them."""

from typing import Any

import flask
import pytest

from comments import errors
from comments.domain import records
from comments.domain.ids import thread_ids
from comments.sites import site_settings
from comments.threads import thread_aliases, thread_info
from comments.transfer.moves import move_journal, page_rules, thread_moves
from tests.support.threads import sample_threads

ADA, NOW = sample_threads.ADA, sample_threads.START
WWW = "https://www.demo.example"
PAGES = ("/a", "/b/amp", "/c/")


@pytest.fixture
def pages(site: records.Site) -> None:
    del site
    changed = site_settings.change("demo", origins=[WWW])
    for path in PAGES:
        address = f"{WWW}{path}"
        thread = thread_ids.page_id(address, changed)
        sample_threads.post(changed, path, thread=thread, url=address)


def change(**settings: Any) -> None:
    page_rules.change("demo", ADA, **settings)


def led_to(address: str) -> list[str]:
    """Return the comments at an address."""
    site = site_settings.get("demo")
    stored = thread_aliases.stored_id(site, thread_ids.page_id(address, site))
    return sample_threads.listed(site, stored)


def shown() -> list[str]:
    names = [records.ThreadName("demo", f"www.demo.example{path.rstrip('/')}") for path in PAGES]
    return [row.shown_id for row in map(thread_info.fresh, names) if row is not None]


@pytest.mark.usefixtures("store", "pages")
def test_threads_move_with_the_rules_and_back() -> None:
    before = shown()
    change(ignore_www=True, ignore_amp=True, title="Demo")
    assert shown() == ["demo.example/a", "demo.example/b", "demo.example/c"]
    for www in (WWW, "http://demo.example"):
        for path, text in zip(["/a/amp/", "/b", "/c"], PAGES, strict=True):
            assert led_to(f"{www}{path}") == [text]
    name = records.ThreadName("demo", "www.demo.example/a")
    row = thread_info.fresh(name)
    assert row is not None
    assert row.url == f"{WWW}/a"
    assert thread_info.page_address("", "demo.example/a", site_settings.get("demo")) == f"{WWW}/a"
    (move,) = move_journal.of_site("demo")
    undone = thread_moves.run_to_end(thread_moves.undo("demo", move.id, ADA, now=move.began))
    assert (undone.moved, undone.restored) == (3, 0)
    assert led_to(f"{WWW}/a") == ["/a"]
    change(ignore_www=False, ignore_amp=False)
    assert shown() == before
    assert [led_to(f"{WWW}{path}") for path in PAGES] == [[path] for path in PAGES]


@pytest.mark.usefixtures("store", "pages")
def test_two_discussions_of_one_page_are_merged_first() -> None:
    site = site_settings.get("demo")
    sample_threads.post(site, "bare", thread="demo.example/a")
    with pytest.raises(errors.MoveRefused, match="Merge them first") as refused:
        change(ignore_www=True, title="Changed")
    assert refused.value.field == "ignore_www"
    assert (site_settings.get("demo").title, move_journal.of_site("demo")) == ("", [])


@pytest.mark.usefixtures("store", "pages")
def test_a_refused_setting_moves_nothing() -> None:
    with pytest.raises(errors.BadInput):
        change(ignore_www=True, origins=["nowhere"])
    with pytest.raises(errors.MoveRefused, match="more than 2 pages"):
        change(ignore_www=True, most=2)
    assert move_journal.of_site("demo") == []
    assert not site_settings.get("demo").ignore_www


@pytest.mark.usefixtures("store", "pages")
def test_a_change_that_ended_after_its_move_is_completed_by_repeating_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    saved = site_settings.change

    def die(*given: Any, is_trial: bool = False, **settings: Any) -> records.Site:
        if not is_trial:
            raise KeyboardInterrupt
        return saved(*given, is_trial=is_trial, **settings)

    monkeypatch.setattr(site_settings, "change", die)
    with pytest.raises(KeyboardInterrupt):
        change(ignore_www=True)
    monkeypatch.undo()
    assert led_to(f"{WWW}/a") == led_to("https://demo.example/a") == ["/a"]
    change(ignore_www=True)
    assert led_to(f"{WWW}/a") == ["/a"]
    assert len(move_journal.of_site("demo")) == 1


@pytest.mark.usefixtures("store")
def test_commands_add_sites_that_ignore_www_and_change_it(app: flask.Flask) -> None:
    run = app.test_cli_runner().invoke
    assert run(args=["site", "add", "blog", "--origin", WWW]).exit_code == 0
    assert site_settings.get("blog").ignore_www
    assert run(args=["site", "set", "blog", "--keep-www", "--ignore-amp"]).exit_code == 0
    assert (site_settings.get("blog").ignore_www, site_settings.get("blog").ignore_amp) == (
        False, True,
    )  # fmt: skip
