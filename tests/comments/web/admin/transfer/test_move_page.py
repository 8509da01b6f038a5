"""An owner moves threads in the console after a preview, and takes the move back."""

import re
from typing import Any

import flask
import pytest

from comments import errors
from comments.domain import records
from comments.moderation.policy import policy_changes
from comments.sites import site_settings
from comments.store import connection
from comments.transfer.moves import (
    doubled_threads,
    move_journal,
    move_plan,
    thread_joins,
    thread_moves,
)
from comments.upkeep import worker_threads
from comments.web.admin.transfer import move_page
from tests.support.html import html_validator
from tests.support.people import account_holders
from tests.support.people.account_holders import OWNER
from tests.support.people.console_browser import Desk
from tests.support.threads import sample_threads

HOST = "localhost:8080"
ADA = records.Actor("cli", "Ada")

FORM = {"way": "page", "old": "/blog/a", "new": "/posts/a"}


@pytest.fixture
def desk(app: flask.Flask, store: connection.Store, site: records.Site) -> Desk:
    account_holders.account("bob", OWNER)
    for page in ("a", "b", "c"):
        sample_threads.post(site, page, thread=f"{HOST}/blog/{page}")
    return Desk(app, "bob")


def _lines(page: str) -> list[str]:
    """Return the entries of a preview as text."""
    report = page.partition('<section class="ft-report"')[2].partition("</section>")[0]
    entries = re.findall(r"<li>(.*?)</li>", report, re.DOTALL)
    return [re.sub("<[^>]+>", "", each).strip() for each in entries]


def _states() -> list[tuple[str, int, int]]:
    moves = move_journal.of_site("demo")
    return [(each.state, each.moved, each.restored) for each in moves]


@pytest.mark.parametrize(
    ("form", "moved"),
    [
        (FORM, ["a"]),
        ({"way": "pages", "old": "/blog", "new": "/posts"}, ["a", "b", "c"]),
        ({"way": "pages", "old": "/blog/*", "new": "/posts/*"}, ["a", "b", "c"]),
        ({"way": "list", "pages": "/blog/a,/posts/a\r\n/blog/b,/posts/b\r\n"}, ["a", "b"]),
    ],
)
def test_a_move_begins_only_after_its_preview(
    desk: Desk, form: dict[str, str], moved: list[str]
) -> None:
    pages = [desk.page("/moves"), desk.settle("/moves", status=200, **form)]
    assert _lines(pages[1]) == [f"{HOST}/blog/{page} → {HOST}/posts/{page}" for page in moved]
    assert _states() == []
    count = len(moved)
    assert f'name="planned" value="{count}"' in pages[1]
    desk.settle("/moves", status=303, planned=str(count), **form)
    assert _states() == [("done", count, 0)]
    pages.append(desk.page("/moves"))
    assert f"{count} of {count} moved" in pages[2]
    assert f"{HOST}/posts/a" in desk.page("/threads")
    (done,) = move_journal.of_site("demo")
    desk.settle("/moves/undo", id=done.id)
    pages.append(desk.page("/moves"))
    assert f"Undone: {count} of {count} moved back" in pages[3]
    assert "Undo the move" not in pages[3]
    assert html_validator.complaints(pages) == [[]] * len(pages)


def test_a_preview_names_what_stays(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = "/blog/a,/blog/b\r\n/blog/c,/blog/c\r\n/none,/new\r\n"
    page = desk.settle("/moves", status=200, way="list", pages=pairs)
    assert _lines(page) == [f"{HOST}/blog/a → {HOST}/blog/b", "/none"]
    assert "1 page already has its new address." in page
    assert 'name="planned"' not in page
    monkeypatch.setattr(move_page, "_SHOWN", 2)
    page = desk.settle("/moves", status=200, way="pages", old="/blog", new="/posts")
    assert _lines(page)[1:] == [f"{HOST}/blog/b → {HOST}/posts/b", "1 more"]
    assert "0 other pages of the site stay where they are." in page


@pytest.mark.parametrize(
    ("form", "field"),
    [
        ({"way": "page", "old": "no address", "new": "other"}, "old"),
        ({"way": "page", "old": "own", "new": "no address"}, "new"),
        ({"way": "pages", "old": "no address", "new": "/new"}, "old"),
        ({"way": "merge", "source": "own", "target": "no address"}, "merge-target"),
        ({"way": "split", "comment": "FIRST", "target": "no address"}, "split-target"),
        ({"way": "split", "comment": "no comment", "target": "/new"}, "comment"),
    ],
)
@pytest.mark.parametrize("origins", [[], ["https://blog.example"]])
def test_what_is_no_address_is_refused_at_its_field(
    desk: Desk, site: records.Site, origins: list[str], form: dict[str, str], field: str
) -> None:
    first = sample_threads.post(site, "d", thread="own")
    sample_threads.post(site, "e", thread="own")
    site_settings.change("demo", origins=origins)
    sent = {name: value.replace("FIRST", first.id) for name, value in form.items()}
    assert f'id="{field}-problem"' in desk.settle("/moves", status=409, **sent)
    assert _states() == []


def test_a_site_that_changed_since_the_preview_is_previewed_again(
    desk: Desk, site: records.Site
) -> None:
    form = {"way": "pages", "old": "/blog", "new": "/posts"}
    sample_threads.post(site, "d", thread=f"{HOST}/blog/d")
    page = desk.settle("/moves", status=200, planned="3", **form)
    assert "has changed since the last preview" in page
    assert _states() == []


def test_a_large_site_moves_its_pages_with_the_command(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(move_page, "MOST_THREADS", 2)
    page = desk.settle("/moves", status=409, way="pages", old="/blog", new="/posts")
    assert "Use the command flatthread thread move" in page


def test_a_move_waits_for_another_one_that_is_not_finished(desk: Desk) -> None:
    site = site_settings.get("demo")
    plan = move_plan.of_list(site, [("/blog/b", "/b")])
    thread_moves.begin(site, plan, "a test", ADA, now=account_holders.here())
    assert "Moving: 0 of 1 moved" in desk.page("/moves")
    assert "is not finished" in desk.settle("/moves", status=409, **FORM, planned="1")
    assert _states() == [("running", 0, 0)]


def test_a_merge_begins_only_after_its_preview(desk: Desk, site: records.Site) -> None:
    name = sample_threads.name_of(site, f"{HOST}/blog/a")
    policy_changes.set_thread(
        name, ADA, now=account_holders.here(), state=records.ThreadState.CLOSED
    )
    form = {"way": "merge", "source": "/blog/a", "target": "/blog/b"}
    pages = [desk.settle("/moves", status=200, **form)]
    assert "Preview: 1 comment moves" in pages[0]
    assert "1 comment of the second page stays there." in _lines(pages[0])
    assert "The state of the first page is lost: Locked" in _lines(pages[0])
    assert 'name="planned" value="1"' in pages[0]
    assert _states() == []
    desk.settle("/moves", status=303, planned="1", **form)
    listed = sample_threads.listed(site_settings.get("demo"), f"{HOST}/blog/b")
    assert sorted(listed) == ["a", "b"]  # Posted at the same time
    pages.append(desk.page("/moves"))
    assert f"merge {HOST}/blog/a into {HOST}/blog/b" in pages[1]
    assert "1 comment moved" in pages[1]
    desk.settle("/moves/undo", id=move_journal.of_site("demo")[0].id)
    pages.append(desk.page("/moves"))
    assert "Undone: 1 comment moved back" in pages[2]
    assert sample_threads.listed(site_settings.get("demo"), f"{HOST}/blog/b") == ["b"]
    assert html_validator.complaints(pages) == [[]] * len(pages)


def test_a_discussion_moves_from_the_page_of_its_comment(desk: Desk, site: records.Site) -> None:
    first = sample_threads.post(site, "d", thread=f"{HOST}/blog/a")
    sample_threads.post(site, "e", first.id, thread=f"{HOST}/blog/a")
    assert f"/moves?comment={first.id}" in desk.page(f"/comments/{first.id}")
    pages = [desk.page(f"/moves?comment={first.id}")]
    assert f'type="hidden" name="comment" value="{first.id}"' in pages[0]
    assert re.search(rf'{first.id}"><bdi>author of d</bdi></a> · .*<span dir="auto">d<', pages[0])
    form = {"way": "split", "comment": first.id, "target": "/new"}
    pages.append(desk.settle("/moves", status=200, planned="1", **form))
    assert "has changed since the last preview" in pages[1]
    assert "Preview: 2 comments move" in pages[1]
    assert pages[1].count("author of d") == 2  # In the preview and in the form
    assert _states() == []
    desk.settle("/moves", status=303, planned="2", **form)
    assert sample_threads.listed(site_settings.get("demo"), f"{HOST}/new") == ["d", "e"]
    page = desk.page("/moves")
    assert "2 comments have moved." in page.partition('id="moved"')[2].partition("</div>")[0]
    assert "2 comments moved" in page
    assert f"split the discussion of author of d (“d”) from {HOST}/blog/a into {HOST}/new" in page
    assert first.id not in page
    assert html_validator.complaints(pages) == [[]] * len(pages)


def test_a_refused_merge_stores_nothing_and_large_pages_need_the_command(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    form = {"way": "merge", "source": "/blog/a", "target": "/blog/b", "planned": "1"}

    def collide(*_: object, **__: object) -> None:
        raise errors.ThreadMoved(f"{HOST}/blog/b", "elsewhere")

    with monkeypatch.context() as patched:
        patched.setattr(thread_joins, "begin", collide)
        assert "has moved in the meantime" in desk.settle("/moves", status=409, **form)
    monkeypatch.setattr(move_page, "MOST_COMMENTS", 1)
    assert "Use the command flatthread thread merge" in desk.settle("/moves", status=409, **form)
    assert _states() == []


def test_doubled_pages_are_found_and_merged_one_by_one_or_all(
    desk: Desk, site: records.Site
) -> None:
    for page in ("a", "b", "c"):
        for text in (page, f"only {page}"):
            sample_threads.post(site, text, thread=f"{HOST}/{page}")
    assert "Look for doubled pages" in desk.page("/moves")
    assert "No page has comments of another one." not in desk.page("/moves")
    desk.settle("/moves/doubles", act="look")
    page = desk.page("/moves")
    assert html_validator.complaints([page]) == [[]]
    assert "3 doubled comments found" in page
    assert re.search(f"{HOST}/blog/a</bdi></code> → <code><bdi>{HOST}/a</bdi>", page)
    form: Any = {"way": "merge", "source": f"{HOST}/blog/a", "target": f"{HOST}/a"}
    assert "1 comment is on the other page too." in desk.settle("/moves", status=200, **form)
    desk.settle("/moves", planned="1", **form)
    assert "2 doubled comments found" in desk.page("/moves")
    preview = desk.settle("/moves/doubles", status=200, act="merge")
    assert html_validator.complaints([preview]) == [[]]
    assert min(_lines(preview)).startswith(f"{HOST}/blog/b → {HOST}/b")
    assert "has changed" in desk.settle("/moves/doubles", status=200, act="merge", planned="3")
    assert _states() == [("done", 1, 0)]
    desk.settle("/moves/doubles", act="merge", planned="2")
    assert "No page has comments of another one." in desk.page("/moves")
    assert _states() == [("done", 1, 0)] * 3
    for name in ("a", "b", "c"):
        assert sample_threads.listed(site, f"{HOST}/{name}") == [name, f"only {name}"]
    for page in ("x", "y"):
        for text in ("equal", *(f"{page}{number}" for number in range(2))):
            sample_threads.post(site, text, thread=f"{HOST}/{page}")
    desk.settle("/moves/doubles", act="look")
    page = desk.page("/moves")
    assert "may be different pages" in page
    assert 'name="act" value="merge"' not in page
    assert 'name="planned"' not in desk.settle("/moves/doubles", status=200, act="merge")
    assert len(_states()) == 3
    desk.settle("/moves/doubles", status=400, act="both")


def test_a_long_search_continues_in_the_background(
    desk: Desk, site: records.Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample_threads.post(site, "a", thread=f"{HOST}/a")
    monkeypatch.setattr(doubled_threads, "AT_ONCE", 1)
    monkeypatch.setattr(move_page, "_STEPS", 1)
    nudges: list[None] = []
    monkeypatch.setattr(worker_threads, "nudge_jobs", lambda: nudges.append(None))
    desk.settle("/moves/doubles", act="look")
    assert len(nudges) == 1
    page = desk.page("/moves")
    assert "Looking for doubled pages. 4 comments compared so far." in page
    assert 'value="look"' not in page
    while doubled_threads.finish(1):
        pass
    assert "1 doubled comment found" in desk.page("/moves")
    desk.settle("/moves/doubles", act="merge", planned="1")
    assert "Merging pages: 1 of 1." in desk.page("/moves")
    assert doubled_threads.finish(1) == 1
    assert "No page has comments of another one." in desk.page("/moves")
    assert len(_states()) == 1
