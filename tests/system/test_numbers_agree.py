"""All places that show a number of the same thing show the same number.

The site has a real import and a day of mixed work. Afterwards, each page, call and command that
shows numbers is read.
"""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import flask
import pytest

from comments.domain import records
from comments.domain.ids import imported_ids
from comments.sites import site_settings
from comments.threads import thread_aliases
from comments.transfer.moves import move_journal
from comments.tree.lists import ordered_query
from comments.upkeep import scheduler
from tests.support import optional_tools, shown_numbers
from tests.support.histories import mixed_day
from tests.support.people import account_holders, console_browser
from tests.support.threads import sample_exports, sample_threads

pytestmark = pytest.mark.slow

STEPS = mixed_day.STEPS_WITH_CLAIMS
COMPARED = {
    "visible",
    "comments",
    "commenters",
    "followers",
    "unread",
    "comments of a person",
    *shown_numbers.HELD,
    *shown_numbers.VOTES,
}
COUNTERS = [
    ["approved-by-category", "--where", "status = approved", "--by", "category"],
    ["pending", "--where", "status = pending"],
]
CATEGORIES = ("news", "sport/football", "sport/tennis", "travel")


def _export(name: str) -> Path:
    if name == "disqus.xml":
        return sample_exports.IMPORTS / name
    return optional_tools.real_export(f"disqus/{name}")


@pytest.mark.usefixtures("quick_passwords", "store", "site")
@pytest.mark.parametrize(("name", "steps"), [("disqus.xml", 150), ("evanlin-189.xml", 300)])
def test_numbers_of_the_same_thing_are_equal_everywhere(
    app: flask.Flask, name: str, steps: int
) -> None:
    run = app.test_cli_runner().invoke
    words = [f"--category={each}" for each in CATEGORIES]
    assert run(args=["site", "set", "demo", "--inbox", *words]).exit_code == 0
    said = run(args=["import", "disqus", str(_export(name)), "--site", "demo"])
    assert said.exit_code == 0, said.output
    listed = run(args=["thread", "list", "demo", "--json"])
    threads = [line["thread"] for line in json.loads(listed.stdout)]
    day = mixed_day.MixedDay(app, threads[:6], seed=steps, people=12, steps=STEPS)
    _import_under_addresses(threads[:6], day.people)
    day.pass_by(steps // 2)
    for words in COUNTERS:
        assert run(args=["counter", "add", "demo", *words]).exit_code == 0
    day.pass_by(steps // 2)
    assert len(day.done) == len(STEPS), day.done
    _settle()

    _move(app, threads)
    account_holders.account("owner", account_holders.OWNER)
    numbers = shown_numbers.ShownNumbers(app, threads)
    numbers.collect(console_browser.Desk(app, "owner"), day.people)
    assert numbers.differing() == {}
    assert {name[0] for name, places in numbers.places.items() if len(places) > 1} >= COMPARED
    assert "0 differences corrected" in run(args=["recount", "demo"]).output


def _move(app: flask.Flask, threads: list[str]) -> None:
    """Move, merge and split threads, undo some of it, and change the list to the ids shown then."""

    def run(*words: str) -> None:
        result = app.test_cli_runner().invoke(args=["thread", *words])
        assert result.exit_code == 0, result.output

    run("set", "demo", threads[0], "--category=news")
    run("set", "demo", threads[1], "--category=travel")
    run("move", "demo", threads[0], "moved.example/page")
    threads[0] = "moved.example/page"
    run("merge", "demo", threads.pop(1), threads[0], "--yes")
    first, second = _first_two("demo", threads[0])
    run("split", "demo", first, "split.example/page", "--yes")
    run("set", "demo", "split.example/page", "--title=A page of its own")
    threads.append("split.example/page")
    for words in (
        ["move", "demo", threads[-1], "undone.example/page"],
        ["merge", "demo", threads[-1], threads[0], "--yes"],
        ["split", "demo", second, "undone.example/page", "--yes"],
    ):
        run(*words)
        _settle()
        run("unmove", "demo", move_journal.of_site("demo")[0].id)
    _settle()


def _first_two(site: str, thread: str) -> list[str]:
    """Return the ids of the first two discussions of a thread."""
    stored = thread_aliases.stored_id(site_settings.get(site), thread)
    rows = ordered_query.thread(records.ThreadName(site, stored))
    return [row.id for row in rows if row.parent is None][:2]


def _import_under_addresses(threads: list[str], people: list[mixed_day.Person]) -> None:
    secret = sample_threads.SETTINGS.secret
    for person in people:
        (author,) = imported_ids.author_ids_of_address(secret, "demo", person.address)
        for thread in threads[:2]:
            node = sample_threads.node(f"Earlier, by {person.name} in {thread}", author=author)
            sample_threads.store_imported(records.ThreadName("demo", thread), node)
    _settle()


def _settle() -> None:
    """Deliver all events, count all votes and compact all threads."""
    process = scheduler.Scheduler()
    while process.sweep_fresh().delivered:
        pass
    later = datetime.now(UTC) + timedelta(
        hours=1
    )  # Votes and threads are due some time after a change.
    process.compact_and_clear(scheduler.find_due_work(later), lambda _: None)
    while process.sweep_fresh().delivered:
        pass
