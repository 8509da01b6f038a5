"""An import of our own export keeps ids, adds nothing twice, and trusts nothing."""

import json
from pathlib import Path
from typing import Any

import flask
import pytest
from hypothesis import given
from hypothesis import strategies as st

from comments import errors
from comments.domain import records
from comments.domain.ids import imported_ids, sorthash
from comments.sites import site_settings
from comments.store import connection
from comments.transfer.checking import checked_import
from comments.transfer.formats import flatthread
from comments.transfer.importing import import_journal, import_writer
from comments.tree import votes
from comments.tree.bulk import bulk_append
from comments.upkeep.integrity import repair
from tests.support.exporting import site_exports
from tests.support.histories import counter_oracle
from tests.support.importing.samples import flatthread as samples
from tests.support.threads import sample_exports, sample_threads, sample_votes
from tests.support.threads import undone_imports as undone
from tests.support.threads.sample_exports import NOW, SCHEME

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.text(max_size=5),
    st.sampled_from(["a:x", "g:ada", "approved", "2025-01-01T00:00:00Z", "1-1"]),
)
NESTED = st.one_of(
    VALUES, st.lists(VALUES, max_size=2), st.dictionaries(st.text(max_size=4), VALUES, max_size=2)
)


def saved(folder: Path, *lines: dict[str, Any]) -> Path:
    path = folder / "export.jsonl"
    path.write_bytes(samples.lines(samples.HEADER, *lines, {"kind": "end"}))
    return path


def plan_of(path: Path, site: records.Site) -> checked_import.CheckedImport:
    return checked_import.plan(
        flatthread.read, path, site=site, scheme=site.scheme, secret=sample_exports.SECRET
    )


def load(path: Path, site: records.Site) -> int:
    with plan_of(path, site) as plan:
        return import_writer.write(plan, scheme=site.scheme, now=NOW).added


def add_site(site_id: str, levels: int = sorthash.DEFAULT_LEVELS) -> records.Site:
    return site_settings.add(
        site_id, ["https://garden.example"], scheme=sorthash.Scheme(levels=levels), now=NOW
    )


def test_ids_that_another_site_uses_lead_to_the_comments_that_got_other_ids(
    app: flask.Flask, store: connection.Store, tmp_path: Path
) -> None:
    first, second = add_site("first"), add_site("second")
    grown = sample_threads.grow(first, sample_threads.TREE, thread="page")
    path = site_exports.save(tmp_path / "x.jsonl", "first")
    assert load(path, second) == len(grown)
    assert load(path, second) == 0
    client = app.test_client()
    for text, comment in grown.items():
        own = imported_ids.comment_id("second", "flatthread", comment.id)
        for site, expected in (("first", comment.id), ("second", own)):
            said = client.get(
                f"/api/v1/sites/{site}/comments",
                query_string={"thread": "page", "around": comment.id, "limit": 1},
            )
            assert said.status_code == 200, said.text
            (found,) = said.json["comments"]
            assert found["id"] == expected
            assert found["html"] == f"<p>{text}</p>\n"
        said = client.get(
            "/api/v1/sites/second/comments",
            query_string={"thread": "page", "parent": comment.id},
        )
        assert said.status_code == 200
        assert {each["id"] for each in said.json["comments"]} == {
            imported_ids.comment_id("second", "flatthread", each.id)
            for each in grown.values()
            if each.parent == comment.id
        }
    other = client.get(
        "/api/v1/sites/second/comments", query_string={"thread": "b", "around": grown["1"].id}
    )
    assert other.status_code == 400
    assert [repair.find_problems(SCHEME, records.ThreadName("second", "page"))] == [[]]
    verified = app.test_cli_runner().invoke(args=["verify", str(path), "--site", "second"])
    assert verified.exit_code == 0, verified.output


def test_comments_keep_the_values_of_the_file(store: connection.Store, tmp_path: Path) -> None:
    site = add_site("garden")
    path = tmp_path / "export.jsonl"
    path.write_bytes(samples.SANE.data)
    load(path, site)
    exported = site_exports.save(tmp_path / "x.jsonl", "garden")
    found = {each["id"]: each for each in site_exports.of_kind(exported, "comment")}
    given = site_exports.of_kind(path, "comment")
    assert len(found) == len(given)
    for each in given:
        read = found[each["id"]]
        names = ("number", "parent", "reply_to", "status", "up", "down", "votes", "pinned", "rule")
        assert {name: read.get(name) for name in names} == {name: each.get(name) for name in names}
        assert read["author"].get("id") == each["author"].get("id")
        assert read["author"].get("staff") == each["author"].get("staff")
    threads = site_exports.of_kind(exported, "thread")
    assert threads[0]["own"] == ["title"]
    assert threads[0]["named_by"] == samples.id_of("a")


def test_addresses_are_stored_encrypted_and_exported_on_request(
    store: connection.Store, tmp_path: Path
) -> None:
    site = add_site("garden")
    author = {"id": "g:ada", "name": "Ada", "email": "ada@private.example"}
    path = saved(tmp_path, samples.thread(), samples.comment("a", 0, author=author))
    load(path, site)
    (row,) = sample_exports.rows()
    assert row.author.email
    assert "@" not in row.author.email
    again = site_exports.save(tmp_path / "x.jsonl", "garden", site_exports.ALL)
    assert site_exports.of_kind(again, "comment")[0]["author"] == author


def test_an_unknown_id_stays_unknown(app: flask.Flask, site: records.Site) -> None:
    said = app.test_client().get(
        "/api/v1/sites/demo/comments", query_string={"thread": "page", "around": "a" * 26}
    )
    assert said.status_code == 404


def test_an_import_into_its_own_site_restores_only_what_is_missing(
    site: records.Site, store: connection.Store, tmp_path: Path
) -> None:
    grown = sample_threads.grow(site, sample_threads.TREE)
    path = site_exports.save(tmp_path / "x.jsonl", "demo")
    later = sample_threads.post(site, "later", grown["1"].id)
    before = sample_exports.rows()
    assert load(path, site) == 0
    assert sample_exports.rows() == before
    assert later in before


def test_a_thread_with_other_comments_gets_the_imported_ones_behind_them(
    store: connection.Store, tmp_path: Path
) -> None:
    first, second = add_site("first"), add_site("second")
    sample_threads.grow(first, sample_threads.TREE, thread="page")
    path = site_exports.save(tmp_path / "x.jsonl", "first")
    sample_threads.post(second, "own", thread="page")
    assert load(path, second) == len(sample_threads.ORDER)
    assert sample_threads.listed(second) == ["own", *sample_threads.ORDER]
    assert repair.find_problems(SCHEME, records.ThreadName("second", "page")) == []


@pytest.mark.parametrize("levels", [1, 2, 3, 12])
def test_a_site_with_other_levels_keeps_order_answers_and_former_slugs(
    store: connection.Store, tmp_path: Path, levels: int
) -> None:
    first, second = add_site("first"), add_site("second", levels=levels)
    sample_threads.grow(first, sample_threads.TREE, thread="page")
    path = site_exports.save(tmp_path / "x.jsonl", "first")
    assert load(path, second) == len(sample_threads.ORDER)
    assert sample_threads.listed(second) == sample_threads.ORDER
    problems = repair.find_problems(second.scheme, records.ThreadName("second", "page"))
    assert problems == []
    found = site_exports.save(tmp_path / "y.jsonl", "second")
    slugs = {each["text"]: each["slug"] for each in site_exports.of_kind(path, "comment")}
    for each in site_exports.of_kind(found, "comment"):
        assert slugs[each["text"]] in {each["slug"], *each.get("former_slugs", [])}


def test_a_comment_with_more_votes_than_a_transaction_keeps_them(
    store: connection.Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_append, "VOTES_AT_ONCE", 3)
    site = add_site("garden")
    cast = {f"g:{n:02}": 1 if n % 3 else -1 for n in range(11)}
    path = saved(
        tmp_path,
        samples.thread(),
        samples.comment("a", 0, up=9, down=4, votes=cast),
        samples.comment("b", 1, "a"),
    )
    assert load(path, site) == 2
    assert sample_votes.cast() == {samples.id_of("a"): cast}
    assert sample_votes.stored(samples.id_of("a")) == (9, 4, 5)
    counter_oracle.assert_counted()
    # A later vote is not overwritten by a repeated import.
    comment = sample_votes.comment(samples.id_of("a"))
    sample_votes.vote(comment, "05", votes.DOWN)
    sample_votes.vote(comment, "06", votes.NONE)
    assert load(path, site) == 0
    sample_votes.count_waiting()
    assert sample_votes.stored(comment.id) == (8, 4, 4)
    again = site_exports.save(tmp_path / "y.jsonl", "garden")
    (first, _) = site_exports.of_kind(again, "comment")
    del cast["g:06"]
    assert first["votes"] == {**cast, "g:05": -1}


def test_an_undo_removes_an_import_with_its_votes(store: connection.Store, tmp_path: Path) -> None:
    undone.Clock.current()
    site = site_settings.add("garden", sample_exports.SITE.origins, scheme=undone.SCHEME, now=NOW)
    path = tmp_path / "export.jsonl"
    path.write_bytes(samples.SANE.data)
    before = undone.plain()
    assert load(path, site) == 7
    undone.deliver()
    undone.assert_sound()
    exported = site_exports.content(site_exports.save(tmp_path / "1.jsonl", "garden"))
    (journal,) = import_journal.recent_imports("garden")
    undone.settle()
    ended = undone.undo(journal, NOW)
    assert (ended.removed, ended.kept) == (7, 0)
    undone.settle()
    undone.assert_sound()
    assert undone.plain() == before
    assert sample_votes.cast() == {}
    assert load(path, site) == 7
    undone.deliver()
    undone.assert_sound()
    again = site_exports.content(site_exports.save(tmp_path / "2.jsonl", "garden"))
    assert again == exported


def test_a_comment_that_people_answered_gets_its_values_again_after_an_undo(
    store: connection.Store, tmp_path: Path
) -> None:
    undone.Clock.current()
    site = site_settings.add("garden", sample_exports.SITE.origins, scheme=undone.SCHEME, now=NOW)
    given = samples.comment(
        "a", 0, up=2, votes={"g:bob": 1}, rule="moderator", why="fine", pinned=True, source="isso:7"
    )
    path = saved(tmp_path, samples.thread(), given)
    assert load(path, site) == 1
    before = site_exports.of_kind(site_exports.save(tmp_path / "1.jsonl", "garden"), "comment")
    (journal,) = import_journal.recent_imports("garden")
    reply = sample_threads.post(site, "reply", samples.id_of("a"), thread=samples.ROSES)
    undone.settle()
    ended = undone.undo(journal, NOW)
    assert (ended.removed, ended.kept) == (0, 1)
    undone.settle()
    assert load(path, site) == 1
    undone.settle()
    undone.assert_sound()
    found = site_exports.of_kind(site_exports.save(tmp_path / "2.jsonl", "garden"), "comment")
    # The thread lost the address that the imported comment gave it, so the line has it now.
    assert found[0].pop("page") == {"url": f"https://{samples.ROSES}"}
    assert found[0] == before[0]
    assert found[1]["id"] == reply.id


@pytest.mark.parametrize("thread", [samples.ROSES, samples.TULIPS])
def test_two_comments_that_would_get_the_same_id_are_refused(
    store: connection.Store, tmp_path: Path, thread: str
) -> None:
    first, garden = add_site("first"), add_site("garden")
    theirs = sample_threads.post(first, "theirs")
    new = imported_ids.comment_id("garden", imported_ids.OWN, theirs.id)
    path = saved(
        tmp_path,
        samples.thread(),
        samples.thread(samples.TULIPS),
        samples.comment("a", 0, id=theirs.id),
        samples.comment("b", 1, id=new, thread=thread),
    )
    with pytest.raises(errors.BadImport, match=f":5: comment {new} has the id"):
        load(path, garden)
    assert [row.body for row in sample_exports.rows()] == ["theirs"]


def test_html_in_a_file_is_never_stored(store: connection.Store, tmp_path: Path) -> None:
    site = add_site("garden")
    hostile = "<script>alert(1)</script><b onclick=x>bold</b>"
    path = saved(
        tmp_path,
        samples.thread(title="<script>"),
        samples.comment("a", 0, text="plain", html=hostile),
        samples.comment("b", 1, text=hostile, markup="html"),
        samples.comment("c", 2, text=hostile, markup="markdown"),
    )
    load(path, site)
    assert [row.html for row in sample_exports.rows()] == [
        "<p>plain</p>\n",
        "<b>bold</b>",
        "<p>&lt;script&gt;alert(1)&lt;/script&gt;&lt;b onclick=x&gt;bold&lt;/b&gt;</p>\n",
    ]


CHANGES = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 20), NESTED), min_size=1, max_size=3)


@given(changes=CHANGES)
def test_changed_values_are_refused_or_stored_soundly(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[int, int, Any]]
) -> None:
    lines = [json.loads(each) for each in samples.SANE.data.splitlines()][1:-1]
    for line, field, value in changes:
        chosen = lines[line % len(lines)]
        names = [name for name in chosen if name != "kind"]
        chosen[names[field % len(names)]] = value
    path = saved(tmp_path_factory.mktemp("changed"), *lines)
    try:
        plan = plan_of(path, sample_exports.SITE)
    except errors.BadImport:
        return
    with plan:
        assert list(plan.report.lines())
        for batch in plan.batches():
            for thread in batch:
                assert len({node.id for node in thread.nodes}) == len(thread.nodes)
