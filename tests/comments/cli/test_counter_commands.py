"""Test what the commands of `counter` print, with the example of the documentation."""

import json
import re
import shlex
from collections.abc import Callable
from datetime import timedelta

import click.testing
import flask
import pytest

from comments import errors
from comments.domain import records
from comments.domain.counters import declared_counters
from comments.events import dispatcher
from comments.posting import cast_vote
from comments.store import connection
from comments.tree.counters.declared import declared_backfill
from comments.upkeep import wiring
from tests.support import programs
from tests.support.histories import counter_oracle
from tests.support.threads import sample_threads, sample_votes

Run = Callable[..., click.testing.Result]
DOCUMENT = (programs.ROOT / "docs" / "counters.md").read_text()
EXAMPLES = re.findall(r"```\n(.*?)```", DOCUMENT, re.DOTALL)
NOW = sample_threads.START + timedelta(days=2)


@pytest.fixture
def run(app: flask.Flask, site: records.Site) -> Run:
    """Return a function that runs `flatthread ...`."""
    runner = app.test_cli_runner()
    return lambda *arguments: runner.invoke(args=arguments)


def _documented(example: str, site: str = "demo") -> tuple[list[str], str]:
    """Return the arguments of a documented command for a site, and its documented output."""
    command, _, output = example.replace("\\\n", "").partition("\n")
    arguments = shlex.split(command)
    assert arguments[0] == "flatthread"
    return [site if each == "blog" else each for each in arguments[1:]], output


def _vote(comment: records.Comment, up: int, down: int) -> None:
    voters = [*((f"fan {n}", 1) for n in range(up)), *((f"critic {n}", -1) for n in range(down))]
    for voter, value in voters:
        sample_votes.vote(comment, voter, value)
    cast_vote.count(comment.id, now=NOW)


def _deliver() -> None:
    dispatcher.deliver(counter_oracle.events(), now=NOW, handlers=wiring.HANDLERS)


def test_controversial_comments_by_category_and_day_are_counted_as_documented(
    run: Run, open_store: connection.Store, site: records.Site
) -> None:
    add, show = map(_documented, EXAMPLES[:2])
    with open_store.context():
        filed = sample_threads.filing(site, "news", "sport", "sport/football")
        later = sample_threads.START + timedelta(days=1)

        def post(text: str, thread: str, category: str, **more: object) -> records.Comment:
            given = {"thread": thread, "categories": (category,), **more}
            return sample_threads.post(filed, text, **given)  # type: ignore[arg-type]

        rows = [
            post("controversial", "a", "news"),
            post("liked", "a", "news"),
            post("hardly noticed", "b", "sport"),
            post("controversial too", "b", "sport"),
            post("controversial as well", "b", "sport"),
            post("as controversial", "c", "sport/football", now=later),
            post("no longer there", "c", "sport/football", now=later),
        ]
        votes = [(5, 5), (9, 5), (2, 2), (5, 7), (6, 5), (5, 5)]
        for row, cast in zip(rows[:3], votes, strict=False):
            _vote(row, *cast)
        _deliver()
    added = run(*add[0])
    assert added.exit_code == 0
    assert added.stdout.splitlines()[-1] == (
        "Added the counter controversial to demo: comments where status = approved and up >= 5 "
        "and down >= 5 and score >= -2 and score <= 2 by category, day."
    )
    with open_store.context():
        for row, cast in zip(rows[3:], [*votes[3:], (5, 5)], strict=True):
            _vote(row, *cast)
        sample_threads.retract(rows[-1])
        _deliver()
    shown = run(*show[0])
    assert shown.exit_code == 0
    assert shown.stdout == show[1]
    one = run("counter", "show", "demo", "controversial", "--under", "Sport/Football")
    assert one.stdout.splitlines() == [show[1].splitlines()[0], show[1].splitlines()[-1]]
    days = run(*show[0], "--until", "2026-01-02", "--format", "json")
    assert [line["number"] for line in json.loads(days.stdout)] == [1, 2]


def test_counters_are_listed_changed_and_removed(run: Run, site: records.Site) -> None:
    assert run("counter", "add", "demo", "replies", "--where", "reply = yes").exit_code == 0
    changed = run("counter", "change", "demo", "replies", "--by", "author", "--sum", "up")
    assert changed.stdout == "Changed the counter replies of demo: up by author.\n"
    listed = run("counter", "list", "demo", "--format", "json")
    assert json.loads(listed.stdout) == [
        {"name": "replies", "counts": "up by author", "complete": True}
    ]
    removed = run("counter", "remove", "demo", "replies")
    assert removed.stdout == "Removed the counter replies from demo.\n"
    assert run("counter", "list", "demo").stdout == "name  counts  complete\n"


def test_a_counter_that_was_added_is_reported_even_if_counting_must_wait(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(_: str) -> None:
        raise errors.Overloaded("the store did not answer in time")

    monkeypatch.setattr(declared_backfill, "complete", busy)
    added = run("counter", "add", "demo", "all")
    assert added.exit_code == 0
    assert "Added the counter all to demo: " in added.stdout
    assert "A running server completes them within 10 minutes" in added.stdout
    assert run("counter", "list", "demo", "--format", "csv").stdout.startswith("name,counts,")
    assert "\nall," in run("counter", "list", "demo", "--format", "csv").stdout.replace("\r", "")


def test_the_cost_of_a_counter_is_shown_before_it_is_added(
    run: Run, open_store: connection.Store, site: records.Site
) -> None:
    with open_store.context():
        sample_threads.grow(site, sample_threads.TREE)
        _deliver()
    shown = run("counter", "cost", "demo", "any", "--by", "author")
    assert shown.stdout.splitlines() == [
        "Each counted change of a comment reads and writes at most 1 row more.",
        "A change of the comment's categories reads and writes up to twice as many.",
        "The numbers of the existing comments take at most 8 rows.",
        "Counting the existing comments takes 8 reads, and",
        "a read and a write for each of these rows.",
    ]
    added = run("counter", "add", "demo", "any", "--by", "author")
    assert added.stdout.startswith(shown.stdout)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["add", "demo", "any", "--where", "down > many"], "whole number"),
        (["add", "demo", "any", "--where", "color = red"], "cannot ask for color"),
        (["add", "demo", "any", "--by", "hour"], "by must be one of: category, day, thread"),
        (["add", "demo", "any", "--sum", "tears"], "sum must be one of: comments, up, down"),
        (["add", "demo", "Any"], "name must be 1 to 40 characters"),
        (["add", "nowhere", "any"], "There is no site nowhere."),
        (["change", "demo", "any"], "This site has no counter any."),
        (["remove", "demo", "any"], "This site has no counter any."),
        (["show", "demo", "any"], "This site has no counter any."),
        (["add", "demo", "total"], "This site already has a counter total."),
        (["show", "demo", "total", "--under", "news"], "under cannot be used"),
        (["show", "demo", "total", "--since", "2026-01-01"], "since cannot be used"),
    ],
)
def test_bad_input_is_refused_in_one_line(
    run: Run, site: records.Site, arguments: list[str], said: str
) -> None:
    assert run("counter", "add", "demo", "total").exit_code == 0
    refused = run("counter", *arguments)
    assert refused.exit_code == 1
    assert said in refused.stderr
    listed = run("counter", "list", "demo", "--format", "csv")
    assert listed.stdout == "name,counts,complete\ntotal,comments,True\n"


def test_the_documented_fields_are_those_that_conditions_can_ask() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.*) \| (.*) \|$", DOCUMENT, re.MULTILINE)
    documented = {
        name: (tuple(re.findall(r"`([a-z]+)`", values)), tuple(re.findall(r"`(.*?)`", comparisons)))
        for name, values, comparisons in rows
    }
    assert documented == {
        name: (field.values, field.comparisons) for name, field in declared_counters.FIELDS.items()
    }
