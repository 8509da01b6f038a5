"""`stats audience` counts, lists and prices audiences, and refuses other sources."""

import json
from datetime import timedelta
from typing import Any

import flask
import pytest

from comments.domain import records
from comments.events import dispatcher
from comments.store import connection
from comments.upkeep import wiring
from tests.support.histories import counter_oracle
from tests.support.threads import sample_threads

FIRST = "2026-01-02"
SECOND = "2026-01-03"


@pytest.fixture
def run(app: flask.Flask, store: connection.Store, site: records.Site) -> Any:
    """Run `stats audience demo`. Ann wrote in derby and in cup, Bob in derby, and Cid in news."""
    filed = sample_threads.filing(site, "news", "sport/football")
    for day, name, thread, category in (
        (0, "ann", "derby", "sport/football"),
        (0, "bob", "derby", "sport/football"),
        (1, "ann", "cup@home", "sport/football"),
        (1, "cid", "paper", "news"),
    ):
        sample_threads.post(
            filed, f"{name} {day}", author=sample_threads.author(name), thread=thread,
            categories=(category,), now=sample_threads.START + timedelta(days=day),
        )  # fmt: skip
    dispatcher.deliver(counter_oracle.events(), now=sample_threads.START, handlers=wiring.HANDLERS)
    runner = app.test_cli_runner()
    return lambda *args, **more: runner.invoke(args=["stats", "audience", "demo", *args], **more)


@pytest.mark.parametrize(
    ("options", "authors"),
    [
        (["--every", "category:Sport"], ["ann", "bob"]),
        (["--every", "category:sport", "--every", "thread:cup@home"], ["ann"]),
        (["--any", "category:sport/football", "--any", "category:news"], ["ann", "bob", "cid"]),
        (["--every", "site", "--but", "thread:derby"], ["cid"]),
        (["--any", f"site@{SECOND}", "--but", f"site@{FIRST}"], ["cid"]),
        (["--every", f"category:sport@{SECOND}..2026-12-31"], ["ann"]),
        (["--every", "site", "--any", "thread:cup@home", "--any", "category:news"], ["ann", "cid"]),
    ],
)
def test_an_audience_is_counted_and_listed(
    run: Any, options: list[str], authors: list[str]
) -> None:
    counted = json.loads(run(*options, "--format", "json").output)
    assert counted == [{"audience": "audience", "commenters": len(authors)}]
    listed = run(*options, "--authors", "--format", "csv").output
    assert listed.split() == ["author", *(f"g:{name}" for name in authors)]


def test_the_audiences_of_a_file_are_counted_in_one_table(run: Any) -> None:
    fans = {"category": "sport"}
    named = {"fans": fans, "others": {"any": [{"site": True}], "but": [fans]}}
    shown = run("--file", "-", input=json.dumps(named))
    assert shown.output.splitlines() == ["audience  commenters", "fans      2", "others    1"]
    listed = run("--file", "-", "--authors", input=json.dumps(named))
    assert listed.exit_code == 1
    assert "audiences must have at most 1 items" in listed.output
    assert run("--file", "-", "--authors", input=json.dumps({"fans": fans})).output.count("g:") == 2


def test_the_cost_is_shown_without_a_scan(run: Any) -> None:
    shown = run("--every", "thread:derby", "--any", "category:sport", "--cost", "--format", "csv")
    assert shown.output == "rows,reads\n4,5\n"


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        ([], 1, "Enter either sources or --file."),
        (["--every", "site", "--file", "-"], 1, "Enter either sources or --file."),
        (["--but", "site"], 1, "--but needs --every or --any."),
        (["--every", "site", "--cost", "--authors"], 1, "--authors and --cost cannot be combined."),
        (["--every", "sites"], 2, "'sites' is not category:NAME, thread:ID or site."),
        (["--every", "site:x"], 2, "'site:x' is not"),
        (["--every", "category:"], 2, "'category:' is not"),
        (["--any", "thread:"], 2, "'thread:' is not"),
        (["--every", "category:a/b/c/d"], 1, "must have at most 3 parts"),
        (["--every", "site@2026-13-01"], 1, "audiences.audience.all[0].since is not an audience"),
        (["--any", "site@2024-01-01..2026-01-01"], 1, "audiences.audience.any[0] must have"),
        (["--any", "site@2026-01-02..2026-01-01"], 1, "since must not be after until."),
        (["--file", "/nowhere"], 2, "No such file"),
    ],
)  # fmt: skip
def test_a_wrong_audience_is_refused(run: Any, options: list[str], code: int, message: str) -> None:
    refused = run(*options)
    assert (refused.exit_code, message in refused.output) == (code, True), refused.output


@pytest.mark.parametrize("text", ["", "[]", '{"x": 1}', '{"x": {"sites": true}}', '{"x": {}}'])
def test_a_wrong_file_is_refused(run: Any, text: str) -> None:
    refused = run("--file", "-", input=text)
    assert refused.exit_code == 1
    assert "Error: audiences" in refused.output
