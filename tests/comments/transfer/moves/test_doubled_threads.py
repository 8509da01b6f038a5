"""Threads with the same comments are found, whichever addresses and systems they came from."""

import json
from datetime import timedelta
from pathlib import Path

import flask
import pytest

from comments.domain import records
from comments.store import connection
from tests.support import optional_tools
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
    assert all(line["doubled"] == line["comments"] for line in lines)
    for line in lines:
        hosts, paths = zip(
            *(line[each].split("/", 1) for each in ("thread", "double")), strict=True
        )
        assert set(hosts) == {"ben.balter.com", "new.example"}
        assert len(set(paths)) == 1
    # Held comments have doubles too.
    assert sum(line["doubled"] for line in lines) >= sum(second.values()) > 1_000
