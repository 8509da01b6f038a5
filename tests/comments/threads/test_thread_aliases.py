"""A moved thread has its stored id and other ids, and every way to name a thread accepts each."""

import json
import re
from pathlib import Path
from typing import Any

import flask
import pytest
from flask.testing import FlaskClient

from comments.domain import records
from comments.reading import thread_pages
from comments.sites import site_settings
from comments.store import connection
from comments.threads import thread_aliases
from comments.transfer.moves import move_plan, thread_moves
from datastore_emulator import inprocess, testing
from tests.support.people.api_requests import answer, bearer
from tests.support.threads import compaction, moderated_site, sample_threads

NOW = sample_threads.START
ADA = sample_threads.ADA


def move(*pairs: tuple[str, str]) -> str:
    """Move threads of the site "demo", and return the id of the move."""
    site = site_settings.get("demo")
    begun = thread_moves.begin(site, move_plan.of_list(site, pairs), "a test", ADA, now=NOW)
    return thread_moves.run_to_end(begun).id


@pytest.mark.usefixtures("store")
def test_a_post_that_missed_a_move_lands_in_the_moved_thread(site: records.Site) -> None:
    sample_threads.post(site, "before")
    move(("page", "new"))
    assert site.moves == 0
    sample_threads.post(site, "missed", thread="new")
    sample_threads.post(site, "by the old id")
    assert sample_threads.listed(site) == ["before", "missed", "by the old id"]
    assert sample_threads.listed(site, "new") == []


@pytest.mark.usefixtures("store")
def test_ids_are_read_only_after_a_move_and_once(
    engine: inprocess.Engine, site: records.Site
) -> None:
    with testing.meter(engine) as cost:
        assert thread_aliases.stored_ids(site, ["a", "page"]) == ["a", "page"]
    assert cost.reads == 0
    sample_threads.post(site, "hello")
    move(("page", "new"))
    site = site_settings.get("demo")
    for expected in (3, 0):
        with testing.meter(engine) as cost:
            assert thread_aliases.stored_ids(site, ["a", "new", "page"]) == ["a", "page", "page"]
        assert cost.reads == expected


def test_every_call_takes_every_id_and_shows_the_canonical_one(
    app: flask.Flask, client: FlaskClient, site: records.Site, store: connection.Store
) -> None:
    old, new = "blog.example/old", "blog.example/new"
    sample_threads.post(site, "hello", thread=old, title="Roses", url=f"{site.origins[0]}/old")
    move((old, new))
    base = f"/api/v1/sites/{site.id}"
    by_old, by_new = (client.get(f"{base}/comments?thread={name}") for name in (old, new))
    assert by_old.status_code == by_new.status_code == 200
    assert by_old.data == by_new.data
    counts = client.post(f"{base}/counts", json={"threads": [old, new, "other"]})
    assert counts.json is not None
    assert counts.json["counts"] == [1, 1, 0]
    for name in (old, new):
        assert "hello" in client.get(f"/embed/demo?thread={name}").text
        assert "hello" in client.get(f"/feeds/demo/thread?thread={name}").text
    run = app.test_cli_runner().invoke
    (line,) = json.loads(run(args=["thread", "list", "demo", "--json"]).stdout)
    assert line["thread"] == new
    assert "hello" in run(args=["thread", "show", "demo", new, "--json"]).output
    for name in (old, new):
        said = run(args=["stats", "commenters", "demo", name])
        assert "g:hello" in said.output, said.output


@pytest.mark.parametrize("is_compacted", [False, True])
@pytest.mark.parametrize("order", list(thread_pages.ListingOrder))
def test_a_cursor_from_before_a_move_continues_at_both_addresses(
    client: FlaskClient,
    site: records.Site,
    open_store: connection.Store,
    order: thread_pages.ListingOrder,
    is_compacted: bool,
) -> None:
    name = sample_threads.name_of(site, "old")
    with open_store.context():
        sample_threads.grow(site, sample_threads.TREE, thread="old")
        if is_compacted:
            compaction.whole(name)

    def ids(thread: str, cursor: str | None = None) -> tuple[list[str], str | None]:
        query = {"thread": thread, "order": order, "limit": 2} | (
            {"cursor": cursor} if cursor else {}
        )
        page = answer(client.get("/api/v1/sites/demo/comments", query_string=query))
        return [comment["id"] for comment in page["comments"]], page["cursor"]

    def rest(thread: str, cursor: str | None) -> list[str]:
        found: list[str] = []
        while cursor is not None:
            more, cursor = ids(thread, cursor)
            found += more
        return found

    _, cursor = ids("old")
    before = rest("old", cursor)
    assert before
    with open_store.context():
        move(("old", "new"))
    assert rest("new", cursor) == rest("old", cursor) == before


def test_followers_inboxes_votes_and_feeds_move_with_a_thread(
    client: FlaskClient, site: records.Site, open_store: connection.Store
) -> None:
    with open_store.context():
        site_settings.change("demo", options={"inbox": True})
    api = "/api/v1/sites/demo"
    first = answer(client.post(f"{api}/comments?thread=old", json={"name": "Ann", "body": "1"}))
    sent = {"name": "Bob", "body": "2", "parent": first["comment"]["id"]}
    reply = answer(client.post(f"{api}/comments?thread=old", json=sent))
    ann, bob = bearer(first), bearer(reply)
    assert client.put(f"{api}/following?thread=old", headers=ann).status_code == 200
    vote = client.put(
        f"/api/v1/comments/{reply['comment']['id']}/vote", json={"value": 1}, headers=ann
    )
    assert vote.status_code == 200, vote.text
    entries = re.findall("<id>(.*?)</id>", client.get("/feeds/demo/thread?thread=old").text)[1:]
    with open_store.context():
        moderated_site.settle()
        move(("old", "new"))

    def of_both(path: str, who: dict[str, str]) -> dict[str, Any]:
        old, new = (
            client.get(f"{api}/{path}?thread={name}", headers=who) for name in ("old", "new")
        )
        assert old.data == new.data
        return answer(new)

    assert of_both("following", ann) == {"following": True, "followers": 1}
    assert of_both("following", bob) == {"following": False, "followers": 1}
    assert list(of_both("votes", ann)["votes"]) == [reply["comment"]["id"]]
    (followed,) = answer(client.get(f"{api}/followed", headers=ann))["threads"]
    (unread,) = answer(client.get(f"{api}/inbox", headers=ann))["replies"]
    assert followed["thread"] == unread["thread"] == "new"
    for name in ("old", "new"):
        feed = client.get(f"/feeds/demo/thread?thread={name}").text
        assert re.findall("<id>(.*?)</id>", feed)[1:] == entries
    assert client.delete(f"{api}/following?thread=new", headers=ann).status_code == 200
    assert of_both("following", ann) == {"following": False, "followers": 0}


def test_an_export_keeps_all_ids_of_a_thread(
    app: flask.Flask, site: records.Site, store: connection.Store, tmp_path: Path
) -> None:
    sample_threads.post(site, "hello")
    move(("page", "new"))
    move(("new", "newest"))
    run, file = app.test_cli_runner().invoke, tmp_path / "site.jsonl"
    assert run(args=["export", "demo", str(file)]).exit_code == 0
    assert run(args=["site", "add", "copy", "--origin", *site.origins]).exit_code == 0
    said = run(args=["import", "flatthread", str(file), "--site", "copy"])
    assert said.exit_code == 0, said.output
    copy = site_settings.current("copy")
    names = ["page", "new", "newest", "other"]
    assert thread_aliases.stored_ids(copy, names) == ["newest", "newest", "newest", "other"]


def test_an_import_that_names_a_new_address_finds_the_thread(
    app: flask.Flask, site: records.Site, store: connection.Store, tmp_path: Path
) -> None:
    sample_threads.post(site, "hello", thread="localhost:8080/old")
    move(("/old", "/new"))
    file = tmp_path / "more.csv"
    file.write_text("id,page,name,time,text\n1,/new,Bob,2020-01-02T03:04:05Z,imported\n")
    said = app.test_cli_runner().invoke(args=["import", "generic", str(file), "--site", "demo"])
    assert said.exit_code == 0, said.output
    assert sorted(sample_threads.listed(site, "localhost:8080/old")) == ["hello", "imported"]
