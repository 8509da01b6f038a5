"""Threads move by lists, hosts, paths and patterns, and back; nothing of them is lost."""

import json
from datetime import timedelta
from pathlib import Path

import flask
import pytest

from comments import errors
from comments.domain import records
from comments.events import audit_log
from comments.sites import site_settings
from comments.store import connection
from comments.threads import thread_aliases, thread_info
from comments.transfer.checking import page_mapping
from comments.transfer.moves import move_journal, move_plan, thread_moves
from tests.support.threads import sample_threads

NOW = sample_threads.START
ADA = sample_threads.ADA
OLD, NEW = "http://localhost:8080/blog/", "http://localhost:8080/posts/"


def post(site: records.Site, *pages: str) -> None:
    for page in pages:
        sample_threads.post(site, page, thread=f"localhost:8080/{page}", url=f"{OLD[:-5]}{page}")


def move(plan: move_plan.Plan) -> move_journal.Move:
    begun = thread_moves.begin(site_settings.get("demo"), plan, "a test", ADA, now=NOW)
    return thread_moves.run_to_end(begun)


def undo(move: move_journal.Move) -> move_journal.Move:
    return thread_moves.run_to_end(thread_moves.undo("demo", move.id, ADA, now=NOW))


def by_map(*texts: str) -> move_plan.Plan:
    site = site_settings.get("demo")
    return move_plan.of_mapping(site, page_mapping.PageMapping(texts, site.origins))


def by_list(*pairs: tuple[str, str]) -> move_plan.Plan:
    return move_plan.of_list(site_settings.get("demo"), pairs)


def shown(*stored: str) -> list[tuple[str, str]]:
    """Return the ids and addresses that threads show."""
    names = [records.ThreadName("demo", f"localhost:8080/{page}") for page in stored]
    return [(row.shown_id, row.url) for row in map(thread_info.fresh, names) if row is not None]


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize(
    ("rule", "new"),
    [
        ("localhost:8080=http://localhost:8080/old", None),
        ("/blog=/posts", "posts/a.html"),
        ("/blog/*.html=/posts/*/", "posts/a"),
        ("localhost:8080/blog/*=localhost:8080/p-*", "p-a.html"),
        ("/blog/a.html=/posts/*", None),
        ("/other=/posts", ""),
    ],
)
def test_a_mapping_moves_the_pages_that_it_matches(
    site: records.Site, rule: str, new: str | None
) -> None:
    post(site, "blog/a.html")
    if new is None:
        with pytest.raises(errors.ImportRefused):
            by_map("/blog/a.html=/posts/*")
        return
    plan = by_map(rule)
    assert [entry.new for entry in plan.moves] == ([f"localhost:8080/{new}"] if new else [])
    assert plan.left == (0 if new else 1)


@pytest.mark.usefixtures("store")
def test_a_moved_thread_leads_to_its_new_page_and_back(site: records.Site) -> None:
    post(site, "blog/a.html", "blog/b.html")
    before = shown("blog/a.html", "blog/b.html")
    done = move(by_map("/blog/*.html=/posts/*/"))
    assert (done.state, done.moved) == (move_journal.MoveState.DONE, 2)
    assert shown("blog/a.html", "blog/b.html") == [
        ("localhost:8080/posts/a", f"{NEW}a/"),
        ("localhost:8080/posts/b", f"{NEW}b/"),
    ]
    undone = undo(done)
    assert (undone.state, undone.restored) == (move_journal.MoveState.UNDONE, 2)
    assert shown("blog/a.html", "blog/b.html") == before
    now = site_settings.get("demo")
    assert thread_aliases.stored_id(now, "localhost:8080/posts/a") == "localhost:8080/posts/a"
    assert {entry.verb for entry in audit_log.log("demo")} == {"undo-move", "move-threads"}


@pytest.mark.usefixtures("store")
def test_a_plan_names_what_cannot_move(site: records.Site) -> None:
    post(site, "a", "b", "c")
    first = move(by_list(("/a", "/a2")))
    plan = by_list(("/a", "/a2"), ("/b", "/c"), ("/c", "/a"), ("/d", "/e"))
    assert (plan.moves, plan.same, plan.missing) == ((), 1, ("/d",))
    owners = [collision.owner.partition("/")[2] for collision in plan.collisions]
    assert owners == ["c", "a"]
    twice = by_list(("/b", "/x"), ("/c", "/x"))
    assert [(len(twice.moves), len(twice.collisions))] == [(1, 1)]
    with pytest.raises(errors.MoveRefused, match="same thread"):
        by_list(("/a", "/x"), ("/a2", "/y"))
    with pytest.raises(errors.MoveRefused, match="No thread moves"):
        move(plan)
    undo(first)
    with pytest.raises(errors.MoveRefused, match="is undone"):
        undo(first)
    second = move(by_list(("/b", "/b2")))
    with pytest.raises(errors.MoveRefused, match="30 days"):
        thread_moves.undo("demo", second.id, ADA, now=NOW + timedelta(days=31))
    with pytest.raises(errors.MoveRefused, match="no move"):
        thread_moves.undo("demo", "nothing", ADA, now=NOW)
    move_journal.expire(NOW + timedelta(days=31))
    assert move_journal.of_site("demo") == []
    assert shown("b") == [("localhost:8080/b2", "http://localhost:8080/b2")]


@pytest.mark.usefixtures("store")
def test_a_new_thread_at_the_new_address_keeps_it(site: records.Site) -> None:
    post(site, "a")
    begun = thread_moves.begin(site, by_list(("/a", "/b")), "a test", ADA, now=NOW)
    with pytest.raises(errors.MoveRefused, match="not finished"):
        thread_moves.begin(site, by_list(("/a", "/c")), "a test", ADA, now=NOW)
    post(site, "b")
    thread_moves.finish(100)
    assert move_journal.of_site("demo")[0].moved == 0
    assert thread_moves.run_to_end(begun).moved == 0
    assert [name for name, _ in shown("a", "b")] == ["localhost:8080/a", "localhost:8080/b"]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("old\n", "Line 1"),
        ("old,new\n/a,/b,/c\n", "Line 2"),
        ('/a,/b\n"', "Line 2"),
        ("/a,\n", "Line 1"),
    ],
)
def test_a_list_with_a_wrong_line_is_refused(text: str, error: str) -> None:
    with pytest.raises(errors.MoveRefused, match=error):
        move_plan.read_list(text)
    assert move_plan.read_list("\ufeffOld,New\n\n/a, /b\n") == [("/a", "/b")]


def test_the_commands_show_move_list_and_undo(
    app: flask.Flask, site: records.Site, store: connection.Store, tmp_path: Path
) -> None:
    post(site, "blog/a.html", "blog/b.html")
    run = app.test_cli_runner().invoke
    pages = tmp_path / "pages.csv"
    pages.write_text("old,new\n/blog/a.html,/posts/a\n/nothing,/x\n")
    seen = run(args=["thread", "move", "demo", "--list", str(pages), "--dry-run"])
    assert "none\t/nothing" in seen.output
    assert "Nothing was stored." in seen.output
    done = run(args=["thread", "move", "demo", "--list", str(pages)])
    assert "Moved 1 thread." in done.output, done.output
    assert run(args=["thread", "move", "demo", "/blog/b.html", "/posts/b"]).exit_code == 0
    listed = json.loads(run(args=["thread", "moves", "demo", "--json"]).stdout)
    assert [line["moved"] for line in listed] == [1, 1]
    back = run(args=["thread", "unmove", "demo", listed[-1]["move"]])
    assert "1 of 1 thread" in back.output
    assert {entry.after for entry in audit_log.log("demo")} == {"1 thread"}
    for words in (["a"], ["a", "b", "--map", "/a=/b"], []):
        assert "Enter either" in run(args=["thread", "move", "demo", *words]).output
    assert run(args=["thread", "move", "demo", "--map", "/a"]).exit_code == 1
    pages.write_bytes(b"\xff,b")
    assert "UTF-8" in run(args=["thread", "move", "demo", "--list", str(pages)]).output
