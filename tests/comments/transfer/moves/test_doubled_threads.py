"""Threads with the same comments are found, whichever addresses and systems they came from."""

import json
import re
from datetime import timedelta
from pathlib import Path

import flask
import msgspec
import pytest

from comments.domain import records
from comments.sites import site_settings
from comments.store import connection
from comments.threads import thread_aliases
from comments.transfer.moves import doubled_threads, move_journal, thread_joins, thread_moves
from comments.tree.lists import ordered_query
from comments.upkeep import scheduler
from datastore_emulator import inprocess, testing
from tests.support import optional_tools
from tests.support.histories import counter_oracle
from tests.support.threads import sample_threads

ANN = records.Author("Ann", id="g:ann")
BOB = records.Author("Bob", id="g:bob")


def run(app: flask.Flask, *words: str | Path) -> str:
    said = app.test_cli_runner().invoke(args=[str(word) for word in words])
    assert said.exit_code == 0, said.output
    return said.stdout


@pytest.mark.usefixtures("store")
def test_comments_are_equal_by_author_time_and_text(app: flask.Flask, site: records.Site) -> None:
    for thread in ("large", "small"):
        sample_threads.post(site, "equal", thread=thread, author=ANN)
    for other in ("another", "a third"):
        sample_threads.post(site, other, thread="large", author=ANN)
    sample_threads.post(site, "another", thread="small", author=BOB)
    sample_threads.post(site, "unlike", thread="large", author=BOB)
    for minute, thread in enumerate(("large", "small"), 1):
        now = sample_threads.START + timedelta(minutes=minute)
        sample_threads.post(site, "at another time", thread=thread, author=ANN, now=now)
    removed = [sample_threads.post(site, "gone", thread=name) for name in ("large", "other")]
    for comment in removed:
        sample_threads.retract(comment)
    assert run(app, "thread", "move", "demo", "small", "moved")
    (line,) = json.loads(run(app, "thread", "doubles", "demo", "--json"))
    assert line == {"thread": "large", "double": "moved", "doubled": 1, "comments": 3}


def test_an_export_that_was_imported_under_two_hosts_is_found_whole(
    app: flask.Flask, site: records.Site, open_store: connection.Store, tmp_path: Path
) -> None:
    export, copy = optional_tools.real_export("disqus/benbalter-1145.xml"), tmp_path / "copy.xml"
    run(app, "import", "disqus", export, "--site", "demo")
    run(app, "export", "demo", copy, "--format", "wxr")
    run(app, "import", "wordpress", copy, "--site", "demo", "--map", "ben.balter.com=new.example")
    lines = json.loads(run(app, "thread", "doubles", "demo", "--json"))
    listed = json.loads(run(app, "thread", "list", "demo", "--json"))
    second = {line["thread"]: line["comments"] for line in listed if line["thread"].startswith("n")}
    assert len(lines) == len(second)
    # Held comments count too, and two of the threads show the place of a deleted comment.
    assert sum(line["comments"] - line["doubled"] > 0 for line in lines) == 2
    assert all(line["comments"] - line["doubled"] <= 1 for line in lines)
    for line in lines:
        hosts, paths = zip(
            *(line[each].split("/", 1) for each in ("thread", "double")), strict=True
        )
        assert set(hosts) == {"ben.balter.com", "new.example"}
        assert len(set(paths)) == 1
    assert sum(line["doubled"] for line in lines) >= sum(second.values()) - 2 > 1_000


def double(site: records.Site, *texts: str) -> None:
    """Post each text in its own thread at an old and at a new address."""
    for minute, text in enumerate(texts):
        now = sample_threads.START + timedelta(minutes=minute)
        for thread in (f"blog/{text}.html", text):
            sample_threads.post(site, text, thread=thread, author=ANN, now=now)
        sample_threads.post(site, f"only {text}", thread=text, now=now + timedelta(hours=1))


def search(site: records.Site) -> doubled_threads.Search:
    found = doubled_threads.get(site.id)
    assert found is not None
    return found


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize("at_once", [1, 2, 3, 300])
def test_a_search_in_steps_of_any_size_finds_the_same_pairs(
    site: records.Site, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(doubled_threads, "AT_ONCE", at_once)
    double(site, "a", "b", "c")
    for thread in ("x", "y", "z"):
        for text in ("same", "moment"):
            sample_threads.post(site, text, thread=thread, author=BOB)
    doubled_threads.begin(site.id, now=sample_threads.START)
    while doubled_threads.finish(1):
        pass
    assert search(site).read == 15
    found = {(pair.one, pair.other): pair.doubled for pair in search(site).found}
    assert found == {
        ("a", "blog/a.html"): 1, ("b", "blog/b.html"): 1, ("blog/c.html", "c"): 1,
        ("x", "y"): 2, ("x", "z"): 2,
    }  # fmt: skip
    lines = doubled_threads.pairs(site, search(site))
    assert ("a", "blog/a.html", 1, 1) in [msgspec.structs.astuple(line) for line in lines]


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize("is_merged", [True, False])
def test_merges_of_all_pairs_continue_after_a_crash(
    site: records.Site, monkeypatch: pytest.MonkeyPatch, is_merged: bool
) -> None:
    double(site, "a", "b", "c")
    doubled_threads.begin(site.id, now=sample_threads.START)
    doubled_threads.finish(9)
    doubled_threads.merge_all(site.id, sample_threads.ADA)
    doubled_threads.finish(1)
    with monkeypatch.context() as patch:

        def die(*_given: object, **_named: object) -> None:
            raise KeyboardInterrupt

        patch.setattr(*((doubled_threads, "_store") if is_merged else (thread_joins, "begin")), die)
        with pytest.raises(KeyboardInterrupt):
            doubled_threads.finish(1)
    doubled_threads.finish(9)
    now = site_settings.get("demo")
    moves = move_journal.of_site(site.id)
    assert [(move.state, move.join and move.join.comments) for move in moves] == [("done", 1)] * 3
    assert doubled_threads.pairs(now, search(site)) == []
    for text in "abc":
        assert thread_aliases.stored_id(now, f"blog/{text}.html") == text
        assert sample_threads.listed(now, text) == [text, f"only {text}"]
    counter_oracle.assert_counted()
    thread_moves.run_to_end(
        thread_moves.undo(site.id, moves[0].id, sample_threads.ADA, now=moves[0].began)
    )
    (pair,) = doubled_threads.pairs(site_settings.get("demo"), search(site))
    assert pair.doubled == 1


@pytest.mark.usefixtures("store")
def test_a_search_keeps_a_limited_number_of_pairs(
    site: records.Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doubled_threads, "MOST_BYTES", 30)
    double(site, "a", "b", "c")
    doubled_threads.begin(site.id, now=sample_threads.START)
    doubled_threads.finish(9)
    assert (len(search(site).found), search(site).is_full) == (2, True)


@pytest.mark.embedded
def test_a_search_reads_each_comment_once(
    site: records.Site, store: connection.Store, engine: inprocess.Engine
) -> None:
    with store.context():
        double(site, "a", "b", "c")
        doubled_threads.begin(site.id, now=sample_threads.START)
        with testing.meter(engine) as meter:
            assert doubled_threads.finish(9) == 2
    # Each of the two steps also reads the site's search before it stores the next state.
    assert (meter.reads, meter.writes) == (9 + 1 + 2, 2)


def test_a_blog_that_was_imported_at_old_and_new_addresses_is_merged_whole(
    app: flask.Flask, site: records.Site, open_store: connection.Store, tmp_path: Path
) -> None:
    export, copy = optional_tools.real_export("disqus/laisky-209.xml"), tmp_path / "copy.xml"
    run(app, "import", "disqus", export, "--site", "demo", "--map", "/p/*=/blog/*.html")
    with open_store.context():
        before = _pages(site)
        assert sum(approved for _, (approved, *_) in before.values()) == 204
    run(app, "export", "demo", copy, "--format", "wxr")
    run(app, "import", "wordpress", copy, "--site", "demo", "--map", "/blog/*.html=/*/")
    with open_store.context():
        doubled_threads.begin(site.id, now=sample_threads.START)
        while doubled_threads.finish(20):
            pass
        lines = doubled_threads.pairs(site, search(site))
        addresses = {line.thread: line.double for line in lines}
        assert addresses == {new: new.replace("/", "/blog/", 1) + ".html" for new in addresses}
        assert (len(lines), sum(line.doubled for line in lines)) == (59, 204)
        doubled_threads.merge_all(site.id, sample_threads.ADA)
        while doubled_threads.finish(20):
            pass
        assert _pages(site) == {
            re.sub(r"/blog/(.+)\.html$", r"/\1", old): page for old, page in before.items()
        }
        counter_oracle.assert_counted()


def _pages(site: records.Site) -> dict[str, tuple[list[str], list[int]]]:
    """Return the comments and the numbers of each thread that shows any, as readers get them."""
    pages = {}
    for name in scheduler.threads(site.id):
        shown = ["-" if row.is_tombstone else row.html for row in ordered_query.thread(name)]
        if shown:
            counts = counter_oracle.of(name)
            numbers = [counts.get(each, 0) for each in ("approved", "listed", "participants")]
            pages[name.id] = (shown, numbers)
    return pages
