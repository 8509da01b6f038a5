"""After a change of the renderer, readers get new HTML, and nobody else notices anything."""

import json
import signal
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import flask.testing
import pytest

from comments.domain import records
from comments.domain.records import Policy
from comments.domain.text import rendering, sanitizing
from comments.events import backlog
from comments.posting import own_comment
from comments.reading.materialized import directories
from comments.sites import site_settings
from comments.store import connection, ownership, reads, transactions
from comments.store.models import comment_rows, conversion
from comments.tree.lists import ordered_query
from comments.upkeep import scheduler
from comments.upkeep.migrations import rerendering, upgrades
from datastore_emulator import inprocess
from tests.support import dying_programs
from tests.support.histories import counter_oracle
from tests.support.people import api_requests
from tests.support.threads import compaction, moderated_site, sample_threads, sample_votes

NAME = records.ThreadName("demo", "page")
OLD = "<p>from an older release</p>"
LINK = "see https://x.example/a"
LINKED = (
    '<p>see <a href="https://x.example/a" rel="nofollow ugc noopener">https://x.example/a</a></p>\n'
)
LATER = sample_threads.START + timedelta(minutes=5)


def age(*ids: str, renderer: str = "markdown-2", html: str = OLD) -> None:
    """Give comments the HTML and the renderer of an older release, as that release stored them."""

    def body() -> None:
        rows = reads.get_multi([comment_rows.comment_key(each) for each in ids])
        for row in rows:
            row.html, row.renderer = html, renderer
        transactions.apply(ownership.Writes("tree", put=tuple(rows)))

    transactions.transaction(body)


def row(comment: records.Comment) -> Any:
    return reads.get(comment_rows.comment_key(comment.id))


def record(comment: records.Comment) -> records.Comment:
    return conversion.comment_record(row(comment))


def stored(kind: str) -> int:
    return len(list(reads.fetch(reads.Query(kind, keys_only=True))))


def messages() -> list[Any]:
    return list(reads.fetch(reads.Query("Comment")))


def upgrade() -> int:
    """Run the scans like a process that has just started; return the number of rows read."""
    upgrades._FINISHED.get().clear()
    upgrades.begin()
    return upgrades.go_on(steps=None)


def shown(client: flask.testing.FlaskClient, query: str = "") -> list[str]:
    found = client.get(f"/api/v1/sites/demo/comments?thread=page{query}")
    return [each["html"] for each in json.loads(found.text)["comments"]]


def test_only_html_that_changes_is_written(store: connection.Store, site: records.Site) -> None:
    grown = sample_threads.grow(site, {LINK: {}, "plain": {}, "new https://x.example": {}})
    linked, plain, _ = grown.values()
    age(linked.id)
    age(plain.id, html="<p>plain</p>\n")
    before = {each.id: row(each).revision for each in grown.values()}
    assert upgrade() == 7  # Comments, their site, and their thread in three scans
    assert (row(linked).html, row(linked).renderer) == (LINKED, rendering.RENDERER)
    after = {each.id: row(each).revision for each in grown.values()}
    assert after == before | {linked.id: before[linked.id] + 1}
    assert row(plain).renderer == "markdown-2"
    assert upgrade() == 0


def test_an_import_is_sanitized_again_from_its_source(
    store: connection.Store, site: records.Site
) -> None:
    source = "<pre>code</pre><a href=mailto:a@b.example>write</a>"
    node = sample_threads.node("old", renderer="html-3", html=OLD)
    sample_threads.store_imported(NAME, records.ImportedComment(**_fields(node) | {"body": source}))
    upgrade()
    (found,) = ordered_query.thread(NAME)
    assert (found.html, found.body) == ('<pre tabindex="0">code</pre>write', source)
    assert row(found).renderer == sanitizing.SANITISER


def _fields(node: records.ImportedComment) -> dict[str, Any]:
    return {name: getattr(node, name) for name in node.__struct_fields__}


def test_no_one_is_told_and_the_comment_is_not_edited(
    store: connection.Store, site: records.Site
) -> None:
    comment = sample_threads.post(site, LINK)
    sample_votes.vote(comment, "v:1")
    sample_votes.count_waiting()
    scheduler.continue_jobs(LATER, steps=20)
    age(comment.id)
    before, events, mails = record(comment), stored("Event"), stored("Message")
    upgrade()
    after = record(comment)
    assert (after.edited, after.changed, after.created) == (None, before.changed, before.created)
    assert after.text_revision == before.text_revision
    assert (stored("Event"), stored("Message")) == (events, mails)
    counter_oracle.assert_counted()


def test_a_form_opened_before_can_still_be_sent(
    client: flask.testing.FlaskClient, store: connection.Store
) -> None:
    made = api_requests.post(client, body=LINK)
    one = f"{api_requests.ONE}{made['comment']['id']}"
    tag = client.get(one).headers["ETag"]
    age(made["comment"]["id"])
    upgrade()
    headers = api_requests.bearer(made) | {"If-Match": tag}
    assert client.patch(one, json={"body": "edited"}, headers=headers).status_code == 200


def test_sending_an_old_text_unchanged_is_no_edit(
    client: flask.testing.FlaskClient, store: connection.Store
) -> None:
    made = api_requests.post(client, body=LINK)
    age(made["comment"]["id"])
    one = f"{api_requests.ONE}{made['comment']['id']}"
    sent = client.patch(one, json={"body": LINK}, headers=api_requests.bearer(made))
    assert api_requests.answer(sent)["comment"]["edited"] is None


def test_readers_of_buckets_get_the_new_html_at_once_and_after_each_compaction(
    client: flask.testing.FlaskClient,
    store: connection.Store,
    site: records.Site,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compaction.small_buckets(monkeypatch)
    grown = sample_threads.grow(site, {LINK: {f"{LINK}/{n}": {} for n in range(9)}})
    age(*(each.id for each in grown.values()))
    compaction.whole(NAME)
    compaction.forget()
    first = client.get("/api/v1/sites/demo/comments?thread=page")
    assert shown(client) == [OLD] * 10
    upgrade()
    expected = [rendering.render_markdown(body) for body in grown]
    tag = {"If-None-Match": first.headers["ETag"]}
    assert client.get("/api/v1/sites/demo/comments?thread=page", headers=tag).status_code == 200
    for _ in range(2):
        for query in ("", "&limit=all", "&order=best"):
            assert shown(client, query) == expected, query
        assert OLD not in client.get("/embed/demo?thread=page").text
        assert OLD not in client.get("/feeds/demo/thread?thread=page").text
        compaction.whole(NAME)
        compaction.forget()
    directory = directories.load_directory(NAME)
    kept = directories.load_buckets(NAME, [line.key for line in directory.lines])
    assert all(OLD.encode() not in entry.json for each in kept if each for entry in each.entries)


def test_the_thread_is_compacted_in_time_not_at_once(
    store: connection.Store, site: records.Site
) -> None:
    comment = sample_threads.post(site, LINK)
    compaction.whole(NAME)
    age(comment.id)
    notes = backlog.BACKLOG.get()
    notes.open()
    upgrade()
    assert len(notes) == 1
    assert row(comment).fold_by > sample_threads.START + timedelta(seconds=backlog.FOLD_AFTER)
    assert not row(comment).rewrites


def test_a_comment_that_nobody_reads_is_not_compacted(
    store: connection.Store, site: records.Site
) -> None:
    moderated_site.policy(Policy.ALL)
    comment = sample_threads.post(site, LINK)
    age(comment.id)
    upgrade()
    assert (row(comment).html, row(comment).unfolded) == (LINKED, False)


def test_a_retracted_comment_stays_empty(store: connection.Store, site: records.Site) -> None:
    comment = sample_threads.post(site, LINK)
    sample_threads.post(site, "reply", comment.id)
    age(comment.id)
    before = messages()
    sample_threads.retract(comment)
    rerendering.rerender(before)  # The scan had read it before
    assert (row(comment).body, row(comment).html) == ("", "")


def test_an_edit_that_overtakes_the_scan_is_kept(
    store: connection.Store, site: records.Site
) -> None:
    comment = sample_threads.post(site, LINK)
    age(comment.id)
    before = messages()
    own_comment.edit(
        comment.id, body="edited", author_id=comment.author.id, revision=None,
        settings=sample_threads.SETTINGS, now=sample_threads.START,
    )  # fmt: skip
    rerendering.rerender(before)
    assert row(comment).html == "<p>edited</p>\n"


def test_a_refused_text_keeps_its_html_sanitized_again(
    store: connection.Store, site: records.Site
) -> None:
    comment = sample_threads.post(site, "plain")
    age(comment.id, html="<pre>old</pre><script>x</script>")

    def body() -> None:
        found = row(comment)
        found.body = "http://a.b " * 900
        transactions.apply(ownership.Writes("tree", put=(found,)))

    transactions.transaction(body)
    upgrade()
    assert row(comment).html == '<pre tabindex="0">old</pre>'
    assert upgrade() == 0


# --- Interruptions --------------------


def upgrade_in_small_steps() -> None:
    """Run the scans in a process of its own."""
    upgrades.AT_ONCE = 2
    upgrades.go_on(steps=None)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def shared(path: Path) -> Iterator[records.Site]:
    """A site in a file that other processes share."""
    scheme, now = sample_threads.SETTINGS.scheme, sample_threads.START
    with (
        inprocess.open_engine(path, indexes=dying_programs.INDEXES) as engine,
        connection.Store(inprocess.Channel(engine), project="test").context(),
    ):
        yield site_settings.add("demo", ["https://a.example"], scheme=scheme, now=now)


@pytest.mark.embedded
@pytest.mark.slow
def test_a_scan_killed_at_any_commit_is_finished_and_writes_each_comment_once(
    path: Path, shared: records.Site
) -> None:
    grown = sample_threads.grow(shared, {f"{LINK}/{n}": {} for n in range(5)})
    compaction.whole(NAME)
    age(*(each.id for each in grown.values()))
    before = {each.id: row(each).revision for each in grown.values()}
    upgrades.begin()
    kills = 0
    while True:
        # Each process survives two commits: one that stores, and one that the next kill repeats.
        when = "before" if kills % 2 else "after"
        rule = {"rpc": "Commit", "call": 2, "when": when, "kill": True}
        status, _ = dying_programs.run(path, [rule], upgrade_in_small_steps)
        if status == 0:
            break
        assert status == -signal.SIGKILL
        kills += 1
    assert kills > 3
    assert all(row(each).renderer == rendering.RENDERER for each in grown.values())
    assert {each.id: row(each).revision - 1 for each in grown.values()} == before
    compaction.whole(NAME)
    assert [each.html for each in ordered_query.thread(NAME)] == [
        rendering.render_markdown(body) for body in grown
    ]
