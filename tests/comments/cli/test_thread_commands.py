"""Test what `thread list` and `thread show` print, against the threads that they show."""

import json
from collections.abc import Callable
from datetime import timedelta

import click.testing
import flask
import pytest

from comments.domain import records
from comments.domain.ids import sorthash
from comments.moderation import decisions
from comments.reading.compaction import compactor
from comments.store import connection, ownership, reads, transactions
from comments.store.models import comment_rows
from tests.support import programs
from tests.support.threads import compaction, sample_threads

Run = Callable[..., click.testing.Result]


@pytest.fixture
def run(app: flask.Flask, site: records.Site) -> Run:
    """Return a function that runs `flatthread ...`."""
    runner = app.test_cli_runner()
    return lambda *arguments: runner.invoke(args=arguments)


@pytest.fixture
def rows(
    open_store: connection.Store, site: records.Site, monkeypatch: pytest.MonkeyPatch
) -> dict[str, records.Comment]:
    """Post the thread that the documentation shows; return its comments by author."""

    def post(name: str, above: str | None = None) -> None:
        parent = None if above is None else posted[above].id
        author = records.Author(name, id=f"g:{name}")
        now = sample_threads.START + timedelta(minutes=len(posted))
        posted[name] = sample_threads.post(site, name, parent, author=author, now=now)

    posted: dict[str, records.Comment] = {}
    compaction.small_buckets(monkeypatch)
    with open_store.context():
        post("Ann")
        post("Bob", "Ann")
        post("Cleo", "Bob")
        post("Eve")
        compaction.whole(sample_threads.name_of(site))
        post("Dan", "Ann")
    return posted


def test_the_table_is_the_one_in_the_documentation(
    run: Run, rows: dict[str, records.Comment]
) -> None:
    documented = (programs.ROOT / "docs" / "command-line.md").read_text()
    _, _, example = documented.partition("flatthread thread show blog THREAD\n")
    shown = run("thread", "show", "demo", "page")
    assert shown.exit_code == 0
    assert shown.stdout == example.partition("5 comments")[0]
    assert shown.stderr.splitlines()[-1] == example.splitlines()[6]


def test_the_raw_table_and_json_are_what_is_stored(
    run: Run, rows: dict[str, records.Comment], open_store: connection.Store
) -> None:
    lines = json.loads(run("thread", "show", "demo", "page", "--json").stdout)
    assert [line["author"] for line in lines] == ["Ann", "Bob", "Cleo", "Dan", "Eve"]
    for line in lines:
        with open_store.context():
            row = reads.get(comment_rows.comment_key(line["id"]))
        stored = (row.sort_hash, row.slug, row.level, row.number, row.child_count, row.parent)
        names = ("stored", "slug", "level", "number", "children", "parent")
        assert tuple(line[name] for name in names) == stored
        assert (line["reply_to"], line["status"]) == (row.reply_to, row.status)
        assert line["waiting"] == (line["author"] == "Dan")
    assert [bool(line["bucket"]) for line in lines] == [True, True, True, False, True]
    raw = run("thread", "show", "demo", "page", "--raw").stdout.splitlines()
    assert raw[0].split() == list(lines[0])
    assert rows["Bob"].id in raw[3].split()


def test_hashes_sort_in_reading_order_padded_and_as_stored(
    run: Run, rows: dict[str, records.Comment]
) -> None:
    shown = run("thread", "show", "demo", "page", "--hashes").stdout.splitlines()
    assert shown[0].split() == ["padded", "stored", "slug"]
    lines = [line.split() for line in shown[1:]]
    assert [slug for _, _, slug in lines] == ["1", "1-1", "1-1-1", "1-2", "2"]
    for column in (0, 1):
        assert [line[column] for line in lines] == sorted(line[column] for line in lines)
    assert {len(padded) for padded, _, _ in lines} == {2 * sorthash.Scheme().levels}


def test_an_answer_below_the_deepest_level_shows_both_links(
    run: Run, site: records.Site, open_store: connection.Store
) -> None:
    with open_store.context():
        parent = None
        for number in range(sorthash.Scheme().levels + 1):
            parent = sample_threads.post(site, f"c{number}", parent).id
    last = run("thread", "show", "demo", "page").stdout.splitlines()[-1].split()
    assert last[6:8] == ["1-1-1-1-1-1-1", "1-1-1-1-1-1-1-1"]


def test_held_comments_are_shown_without_a_bucket(
    run: Run, rows: dict[str, records.Comment], open_store: connection.Store
) -> None:
    with open_store.context():
        name = records.ThreadName("demo", "page")
        decisions.decide(
            "demo", rows["Cleo"].id, records.Verb.HOLD, records.Actor("cli", "cli"),
            now=sample_threads.START,
        )  # fmt: skip
        compaction.whole(name)
    lines = json.loads(run("thread", "show", "demo", "page", "--json").stdout)
    assert [bool(line["bucket"]) for line in lines] == [True, True, False, True, True]
    assert lines[2]["status"] == "pending"
    assert not any(line["waiting"] for line in lines)


def test_rows_in_the_tail_of_the_directory_are_marked(
    run: Run, rows: dict[str, records.Comment], open_store: connection.Store
) -> None:
    with open_store.context():
        compactor.compact(sorthash.Scheme(), records.ThreadName("demo", "page"))
    lines = json.loads(run("thread", "show", "demo", "page", "--json").stdout)
    # The row is still flagged, but the directory contains its change.
    assert not any(line["waiting"] for line in lines)
    assert {line["author"] for line in lines if line["bucket"] == "tail"} == {"Dan"}


def test_a_damaged_hash_is_shown_as_stored(
    run: Run, rows: dict[str, records.Comment], open_store: connection.Store
) -> None:
    def damage() -> None:
        row = reads.get(comment_rows.comment_key(rows["Eve"].id))
        row.sort_hash = "AB?"
        transactions.apply(ownership.Writes("tree", put=(row,)))

    with open_store.context():
        transactions.transaction(damage)
    last = json.loads(run("thread", "show", "demo", "page", "--json").stdout)[-1]
    assert (last["stored"], last["padded"]) == ("AB?", "")


def test_control_characters_do_not_reach_the_terminal(
    run: Run, site: records.Site, open_store: connection.Store
) -> None:
    with open_store.context():
        sample_threads.store_imported(
            sample_threads.name_of(site), sample_threads.node("a\x1b[2Jb")
        )
    assert "a?[2Jb" in run("thread", "show", "demo", "page").stdout


@pytest.mark.slow
def test_the_threads_of_a_site_are_listed_newest_first(
    run: Run, site: records.Site, open_store: connection.Store
) -> None:
    with open_store.context():
        for number in range(103):
            now = sample_threads.START + timedelta(minutes=number)
            thread = f"page {number:03}"
            sample_threads.post(site, "words", thread=thread, now=now, title=f"Title {number}")
        sample_threads.post(site, "more words", thread="page 102", now=now)
    lines = json.loads(run("thread", "list", "demo", "--json").stdout)
    assert [line["thread"] for line in lines] == [f"page {n:03}" for n in reversed(range(103))]
    assert [line["comments"] for line in lines[:2]] == [2, 1]
    assert (lines[0]["title"], lines[0]["state"]) == ("Title 102", "open")
    table = run("thread", "list", "demo").stdout.splitlines()
    assert table[0].split() == ["thread", "comments", "state", "created", "title", "url"]
    assert table[1].startswith("page 102  2         open")
    assert len(table) == 104


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("list", "nowhere"), "There is no site nowhere. The sites are: demo."),
        (("show", "nowhere", "page"), "There is no site nowhere. The sites are: demo."),
        (("show", "demo", "nothing"), "There is no thread nothing."),
        (("show", "demo", "page", "--raw", "--hashes"), "--hashes and --raw cannot be combined."),
    ],
)
def test_an_invalid_request_is_one_line_and_exit_code_1(
    run: Run, arguments: tuple[str, ...], told: str
) -> None:
    shown = run("thread", *arguments)
    assert (shown.exit_code, shown.stderr.splitlines()[-1]) == (1, f"Error: {told}")
