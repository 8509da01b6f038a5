"""Threads merge, and discussions split off, and back; nothing of them is lost."""

from datetime import timedelta
from pathlib import Path

import flask
import pytest
from flask.testing import FlaskClient

from comments.domain import records
from comments.notifications import reader_follows, thread_followers
from comments.reading.compaction import compactor
from comments.sites import site_settings
from comments.store import connection, reads
from comments.store.models import comment_rows, conversion, schema
from comments.threads import thread_aliases
from comments.transfer.moves import join_plan, move_journal, thread_joins, thread_moves
from comments.tree import votes
from comments.tree.lists import ordered_query, slugs
from tests.support.histories import category_oracle, counter_oracle
from tests.support.threads import sample_threads, sample_votes

NOW = sample_threads.START
ADA = sample_threads.ADA


def post(
    site: records.Site,
    thread: str,
    minute: int,
    parent: str | None = None,
    categories: tuple[str, ...] = (),
) -> records.Comment:
    now, text = NOW + timedelta(minutes=minute), f"{thread}{minute}"
    return sample_threads.post(site, text, parent, now=now, thread=thread, categories=categories)


def merge(source: str, target: str) -> move_journal.Move:
    site = site_settings.get("demo")
    plan = join_plan.of_merge(site, source, target)
    return thread_moves.run_to_end(thread_joins.begin(site, plan, ADA, now=NOW))


def undo(move: move_journal.Move) -> move_journal.Move:
    return thread_moves.run_to_end(thread_moves.undo("demo", move.id, ADA, now=NOW))


@pytest.mark.usefixtures("store")
def test_a_merged_thread_is_one_tree_in_the_order_of_times_and_back(site: records.Site) -> None:
    a1 = post(site, "a", 1)
    b2 = post(site, "b", 2)
    post(site, "b", 3, b2.id)
    post(site, "a", 4, a1.id)
    post(site, "a", 5)
    post(site, "b", 6)
    done = merge("b", "a")
    now = site_settings.get("demo")
    assert thread_aliases.stored_id(now, "b") == "a"
    assert sample_threads.listed(now, "a") == ["a1", "a4", "b2", "b3", "a5", "b6"]
    counter_oracle.assert_counted()
    undone = undo(done)
    assert undone.state is move_journal.MoveState.UNDONE
    assert sample_threads.listed(now, "a") == ["a1", "a4", "a5"]
    assert sample_threads.listed(now, "b") == ["b2", "b3", "b6"]
    counter_oracle.assert_counted()


@pytest.mark.usefixtures("store")
def test_a_merge_hides_what_both_threads_have_and_keeps_all_replies(site: records.Site) -> None:
    def double(minute: int, parents: dict[str, str], text: str) -> dict[str, str]:
        made = {
            thread: sample_threads.post(
                site, text, parents.get(thread), thread=thread, now=NOW + timedelta(minutes=minute)
            )
            for thread in ("a", "b")
        }
        return {thread: comment.id for thread, comment in made.items()}

    post(site, "b", 0)
    roots = double(1, {}, "root")
    replies = double(2, roots, "reply")
    post(site, "b", 3, replies["b"])
    post(site, "a", 4, replies["a"])
    post(site, "b", 5, roots["b"])
    post(site, "b", 6)
    sample_threads.post(site, "twice", thread="b", now=NOW + timedelta(minutes=7))
    for _ in range(2):
        sample_threads.post(site, "twice", thread="a", now=NOW + timedelta(minutes=7))
    before = {thread: tree(site, thread) for thread in ("a", "b")}
    slug = slugs.find(site.scheme, sample_threads.name_of(site, "b"), replies["b"], field="").slug
    plan = join_plan.of_merge(site, "b", "a")
    assert (plan.comments, plan.doubled) == (7, 3)
    done = merge("b", "a")
    now = site_settings.get("demo")
    assert tree(now, "a") == [
        ("b0", ""), ("root", ""), ("reply", "root"), ("b3", "reply"), ("a4", "reply"),
        ("b5", "root"), ("b6", ""), ("twice", ""), ("twice", ""),
    ]  # fmt: skip
    address = slugs.address_from(sample_threads.name_of(now, "b"), slug)
    found = slugs.find(now.scheme, sample_threads.name_of(now, "a"), address, field="slug")
    assert found.id == replies["a"]
    sample_votes.count_all()
    counter_oracle.assert_all_counted()
    reply = sample_threads.post(
        now, "later", replies["a"], thread="a", now=NOW + timedelta(hours=1)
    )
    undo(done)
    sample_threads.retract(reply)
    assert {thread: tree(site, thread) for thread in ("a", "b")} == before
    sample_votes.count_all()
    counter_oracle.assert_all_counted()


def tree(site: records.Site, thread: str) -> list[tuple[str, str]]:
    """Return the texts that readers see, in order, each with the text that it answers."""
    rows = ordered_query.thread(sample_threads.name_of(site, thread))
    texts = {row.id: row.body for row in rows}
    return [(row.body, texts.get(row.reply_to or "", "")) for row in rows]


def test_a_site_with_a_merge_and_a_split_is_exported_and_imported_again(
    app: flask.Flask, site: records.Site, open_store: connection.Store, tmp_path: Path
) -> None:
    with open_store.context():
        post(site, "a", 1)
        reply = post(site, "b", 3, post(site, "b", 2).id)
        merge("b", "a")
        now = site_settings.get("demo")
        plan = join_plan.of_split(now, reply.id, "c")
        thread_moves.run_to_end(thread_joins.begin(now, plan, ADA, now=NOW))
        site_settings.add("copy", [], scheme=site.scheme, now=NOW)
    run, path = app.test_cli_runner().invoke, tmp_path / "export.jsonl"
    for words in (["export", "demo", path], ["import", "flatthread", path, "--site", "copy"]):
        done = run(args=list(map(str, words)))
        assert done.exit_code == 0, done.output
    with open_store.context():
        copy = site_settings.get("copy")
        assert [sample_threads.listed(copy, name) for name in ("a", "c")] == [["a1", "b2"], ["b3"]]
        former: dict[str, list[tuple[str, ...]]] = {}
        for message in reads.fetch(reads.Query("Comment")):
            values = message.properties
            slugs_of = conversion.texts(values["former_slugs"])
            former.setdefault(values["body"].string_value, []).append(slugs_of)
        assert [len(set(each)) for each in former.values()] == [1, 1, 1]


@pytest.mark.usefixtures("store")
def test_followers_and_votes_follow_a_merge_and_its_undo(site: records.Site) -> None:
    post(site, "a", 1)
    b2 = post(site, "b", 2)
    names = [sample_threads.name_of(site, thread) for thread in ("a", "b")]
    for author, thread in (("g:ann", 0), ("g:ann", 1), ("g:bob", 1)):
        reader_follows.follow(names[thread], author, now=NOW)
    sample_votes.vote(b2, "ann")
    done = merge("b", "a")
    assert [count.all for count in map(thread_followers.count, names)] == [2, 0]
    assert votes.votes_of(names[0], "g:ann", after=None, limit=9).votes == {b2.id: 1}
    sample_votes.count_all()
    counter_oracle.assert_all_counted()
    undo(done)
    assert [count.all for count in map(thread_followers.count, names)] == [1, 2]
    assert votes.votes_of(names[1], "g:ann", after=None, limit=9).votes == {b2.id: 1}
    sample_votes.count_all()
    counter_oracle.assert_all_counted()


@pytest.mark.usefixtures("store")
def test_moved_comments_are_in_the_lists_of_their_new_threads_categories(
    site: records.Site,
) -> None:
    site = site_settings.change(site.id, filed=("news", "sport/football"))
    post(site, "a", 1, categories=("news",))
    root = post(site, "b", 2, categories=("sport/football",))
    post(site, "b", 3, root.id, categories=("sport/football",))
    done = merge("b", "a")
    category_oracle.assert_settled()
    category_oracle.assert_listed(site)
    undo(done)
    category_oracle.assert_settled()
    category_oracle.assert_listed(site)


@pytest.mark.usefixtures("store")
def test_old_cursors_and_numbers_of_a_merged_thread_lead_on(
    site: records.Site, client: FlaskClient
) -> None:
    page = "/api/v1/sites/demo/comments?limit=1&thread="
    first = [post(site, "a", 1), post(site, "b", 2)]
    later = [post(site, "a", 3), post(site, "b", 4)]
    cursors = [client.get(f"{page}{name}").get_json()["cursor"] for name in ("a", "b")]
    merge("b", "a")
    answers = [
        client.get(f"{page}{name}&cursor={cursor}")
        for name, cursor in zip(("a", "b"), cursors, strict=True)
    ]
    assert [answer.status_code for answer in answers] == [410, 410]
    assert answers[1].get_json()["params"] == {"thread": "a"}
    for number, comments in enumerate((first, later)):
        for name, comment in zip(("a", "b"), comments, strict=True):
            path = f"/api/v1/sites/demo/comment?thread={name}&slug={comment.slug}"
            assert client.get(path).get_json()["comment"]["id"] == comment.id, number


@pytest.mark.usefixtures("store")
def test_a_retry_after_a_merge_or_a_split_posts_nothing_again(
    site: records.Site, client: FlaskClient
) -> None:
    post(site, "a", 1)
    post(site, "b", 2)
    path, headers = "/api/v1/sites/demo/comments?thread=b", {"Idempotency-Key": "k" * 20}

    def send() -> str:
        answer = client.post(path, json={"name": "Ann", "body": "text"}, headers=headers)
        assert answer.status_code == 201
        posted: str = answer.get_json()["comment"]["id"]
        return posted

    first = send()
    done = merge("b", "a")
    assert send() == first
    now = site_settings.get("demo")
    split = thread_joins.begin(now, join_plan.of_split(now, first, "c"), ADA, now=NOW)
    assert send() == first
    undo(split)
    undo(done)
    assert send() == first
    listed = [sample_threads.listed(site_settings.get("demo"), thread) for thread in ("a", "b")]
    assert listed == [["a1"], ["b2", "text"]]


@pytest.mark.usefixtures("store")
def test_a_reply_from_an_old_page_joins_the_discussion_where_it_is_now(
    site: records.Site, client: FlaskClient
) -> None:
    parent = post(site, "a", 1).id
    post(site, "a", 2)

    def reply(thread: str, text: str) -> comment_rows.CommentRow:
        sent = {"name": "Ann", "body": text, "parent": parent, "title": f"Page {thread}"}
        path = f"/api/v1/sites/demo/comments?thread={thread}"
        answer = client.post(path, json=sent)
        assert answer.status_code == 201, answer.text
        row: comment_rows.CommentRow = reads.get(
            comment_rows.comment_key(answer.get_json()["comment"]["id"])
        )
        assert not row.brought, "the title of another page"
        return row

    done = thread_joins.begin(site, join_plan.of_split(site, parent, "c"), ADA, now=NOW)
    assert reply("a", "late").thread_id == "c"
    undo(done)
    assert reply("c", "later").thread_id == "a"
    now = site_settings.get("demo")
    assert sample_threads.listed(now, "a") == ["a1", "late", "later", "a2"]
    assert sample_threads.listed(now, "c") == []
    counter_oracle.assert_counted()


@pytest.mark.usefixtures("store")
def test_the_emptied_threads_buckets_are_deleted_after_two_minutes(site: records.Site) -> None:
    post(site, "a", 1)
    post(site, "b", 2)
    merge("b", "a")
    assert reads.names("BucketDirectory", ancestor=_key("b")) == ["current"]
    thread_joins.expire(NOW + timedelta(minutes=1))
    assert reads.names("BucketDirectory", ancestor=_key("b")) == ["current"]
    thread_joins.expire(NOW + timedelta(minutes=3))
    assert reads.names("BucketDirectory", ancestor=_key("b")) == []


@pytest.mark.usefixtures("store")
def test_the_undo_of_a_split_empties_the_new_page_at_once(
    site: records.Site, client: FlaskClient
) -> None:
    parent = post(site, "a", 1).id
    post(site, "a", 2)
    done = thread_joins.begin(site, join_plan.of_split(site, parent, "c"), ADA, now=NOW)
    compactor.compact(site.scheme, records.ThreadName("demo", "c"))
    paths = [f"/api/v1/sites/demo/comments?thread=c{more}" for more in ("", "&limit=all")]

    def shown() -> list[int]:
        return [len(client.get(path).get_json()["comments"]) for path in paths]

    assert shown() == [1, 1]
    undo(done)
    assert shown() == [0, 0]
    assert reads.names("BucketDirectory", ancestor=_key("c")) == []


def _key(thread: str) -> schema.RowKey:
    return comment_rows.thread_key(records.ThreadName("demo", thread))


@pytest.mark.usefixtures("store")
def test_commands_show_a_merge_or_a_split_first(site: records.Site, app: flask.Flask) -> None:
    run = app.test_cli_runner().invoke
    post(site, "a", 1)
    b2 = post(site, "b", 2)
    post(site, "b", 3)
    assert "Nothing was stored" in run(args=["thread", "merge", "demo", "b", "a"]).output
    shown = run(args=["thread", "split", "demo", b2.id, "c", "--yes"]).output
    assert shown.startswith("b -> c, a new thread\n1 comment to move, 1 that stay")
    assert sample_threads.listed(site, "c") == ["b2"]
    merged = run(args=["thread", "merge", "demo", "c", "a", "--yes"]).output
    assert sample_threads.listed(site_settings.get("demo"), "a") == ["a1", "b2"]
    undone = run(args=["thread", "unmove", "demo", merged.split()[-1]]).output
    assert undone == "Moved 1 comment back.\n"
    refused = run(args=["thread", "merge", "demo", "a", "a"])
    assert (refused.exit_code, "same thread" in refused.output) == (1, True)
    assert "no comment" in run(args=["thread", "split", "demo", "x", "a"]).output
