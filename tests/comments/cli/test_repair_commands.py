"""`repair` and `recount` show a line for each kind of difference, each difference, or JSON."""

import json
from collections.abc import Callable

import click.testing
import flask
import pytest

from comments.domain import records
from comments.store import connection, ownership, reads, transactions
from comments.store.models import comment_rows, counter_rows, schema
from tests.support.threads import compaction, raw_changes, sample_threads

Run = Callable[..., click.testing.Result]


@pytest.fixture
def run(app: flask.Flask) -> Run:
    """Run a command as `flatthread ...` does."""
    runner = app.test_cli_runner()
    return lambda *arguments: runner.invoke(args=list(arguments))


@pytest.fixture
def rows(tree_rows: dict[str, records.Comment], site: records.Site) -> dict[str, records.Comment]:
    """The rows of a compacted thread."""
    compaction.whole(sample_threads.name_of(site))
    return tree_rows


def test_repair_reports_repairs_and_then_finds_nothing(
    run: Run, site: records.Site, store: connection.Store
) -> None:
    row = sample_threads.post(site, "1")
    raw_changes.comment(row.id, sort_hash="ZZ")
    found = run("repair")
    line = f"demo page {row.id}: sort_hash is 'ZZ', should be 'AA'\n"
    assert found.exit_code == 1
    assert found.output == f"sort_hash: 1, for example {line}1 problem found.\n"
    assert run("repair", "--verbose").output == f"{line}1 problem found.\n"
    mended = run("repair", "--site", "demo", "--fix")
    assert (mended.exit_code, mended.output.splitlines()[-1]) == (0, "1 problem repaired.")
    assert run("repair").output == "0 problems found.\n"


def test_repair_shows_one_line_for_each_kind_with_its_number_and_an_example(
    run: Run, rows: dict[str, records.Comment]
) -> None:
    for text in ("1", "1.1", "2"):
        raw_changes.comment(rows[text].id, score=7)
    shown = run("repair", "--site", "demo", "--thread", "page").output.splitlines()
    assert [line.partition(",")[0] for line in shown] == [
        "score: 3",
        "page score: 3",
        "6 problems found.",
    ]
    assert "for example demo page " in shown[0]
    assert shown[0].endswith(": score is 7, should be 0")
    assert len(run("repair", "--verbose").output.splitlines()) == 7


def test_repair_prints_json_for_machines(run: Run, rows: dict[str, records.Comment]) -> None:
    raw_changes.comment(rows["2"].id, html="<p>other</p>")
    example = {
        "kind": "html",
        "site": "demo",
        "thread": "page",
        "comment": rows["2"].id,
        "stored": "<p>other</p>",
        "expected": "<p>2</p>\n",
    }
    found = json.loads(run("repair", "--json").output)
    assert (found["found"], found["left"]) == (2, 0)
    assert found["kinds"][0] == {"kind": "html", "count": 1, "example": example}
    everything = json.loads(run("repair", "--json", "--verbose").output)
    assert [each["kind"] for each in everything["all"]] == ["html", "page html"]
    mended = run("repair", "--fix", "--json")
    assert json.loads(mended.stdout)["repaired"] == 2
    assert json.loads(run("repair", "--json").output) == {"found": 0, "left": 0, "kinds": []}


def test_repair_says_the_same_number_before_and_after(
    run: Run, rows: dict[str, records.Comment], site: records.Site
) -> None:
    raw_changes.comment(rows["1"].id, status="pending")
    # An upgrade, which is the first part of a repair, corrects the thread.
    thread = comment_rows.thread_key(sample_threads.name_of(site))
    raw_changes.change(thread, named_by=None, named_at=None, title="wrong")
    found = run("repair").output.splitlines()
    repaired = run("repair", "--fix").stdout.splitlines()
    assert len(found) > 3
    assert repaired == [*found[:-1], found[-1].replace("found", "repaired")]
    assert run("repair").output == "0 problems found.\n"


def test_a_long_text_is_cut_to_the_part_that_differs(
    run: Run, rows: dict[str, records.Comment]
) -> None:
    raw_changes.comment(rows["2"].id, body="word " * 50 + "end")
    raw_changes.comment(rows["2"].id, html="<p>" + "word " * 50 + "and</p>\n")
    line = run("repair").output.splitlines()[0]
    assert line.endswith(
        r"html is …'word word word and</p>\n', should be …'word word word end</p>\n'"
    )


def test_repair_corrects_the_threads_counters_and_names_the_command_for_the_others(
    run: Run, rows: dict[str, records.Comment]
) -> None:
    raw_changes.delete_comments(rows["3"].id)
    done = run("repair", "--fix").output
    assert "thread approved: 1, for example demo/page: thread approved is 8, should be 7" in done
    assert "Run `recount` to compare the counters of sites and authors too." in done
    assert run("repair").output == "0 problems found.\n"


def test_a_problem_that_needs_a_person_is_counted_separately(
    run: Run, rows: dict[str, records.Comment]
) -> None:
    raw_changes.comment(rows["1"].id, score=7)
    raw_changes.without(rows["1.2"].id, "created")
    done = run("repair", "--fix")
    assert done.exit_code == 1
    assert done.output.endswith("1 problem cannot be repaired.\n")
    assert run("repair").output.splitlines()[-1] == "1 problem cannot be repaired."


def test_a_thread_needs_its_site(run: Run, site: records.Site, store: connection.Store) -> None:
    refused = run("repair", "--thread", "page")
    assert (refused.exit_code, "--thread needs --site." in refused.output) == (2, True)
    for arguments in (("--site", "demo", "--thread", "never"), ("--site", "never")):
        refused = run("repair", *arguments)
        assert (refused.exit_code, refused.output.count("\n")) == (1, 1)


def test_recount_reports_repairs_and_then_finds_nothing(
    run: Run, site: records.Site, store: connection.Store
) -> None:
    sample_threads.post(site, "1")
    row = reads.get(counter_rows.thread_counter_key(sample_threads.name_of(site), 0))
    row.numbers = '{"approved":3,"listed":1,"participants":1}'
    transactions.transaction(lambda: transactions.apply(ownership.Writes("counters", put=(row,))))
    line = "demo/page: thread approved is 3, should be 1\n"
    summary = f"thread approved: 1, for example {line}"
    shown = run("recount", "demo", "page", "--no-fix")
    assert (shown.exit_code, shown.output) == (1, f"{summary}1 difference found.\n")
    shown = run("recount", "demo", "page", "--no-fix", "--verbose")
    assert shown.output == f"{line}1 difference found.\n"
    found = json.loads(run("recount", "--no-fix", "--json").output)
    assert found["kinds"][0]["example"] == {
        "kind": "thread approved",
        "place": "demo/page",
        "stored": 3,
        "expected": 1,
    }
    mended = run("recount")
    assert (mended.exit_code, mended.output) == (0, f"{summary}1 difference corrected.\n")
    assert run("recount", "demo").output == "0 differences corrected.\n"
    assert run("recount", "demo", "page").output == "0 differences corrected.\n"


def test_recount_shows_no_line_for_each_author(
    run: Run, site: records.Site, rows: dict[str, records.Comment]
) -> None:
    raw_changes.delete(*_participations(sample_threads.name_of(site)))
    shown = run("recount", "demo", "page", "--no-fix").output.splitlines()
    assert shown[0].startswith("participation approved: 8, for example demo/page ")
    assert shown[-1] == "8 differences found."


def _participations(name: records.ThreadName) -> list[schema.RowKey]:
    query = reads.Query("Participation", ancestor=comment_rows.thread_key(name), keys_only=True)
    names = [message.key.path[-1].name for message in reads.fetch(query)]
    return [
        schema.RowKey("Participation", each, parent=comment_rows.thread_key(name)) for each in names
    ]
