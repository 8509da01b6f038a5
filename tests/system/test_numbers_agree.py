"""All places that show a number of the same thing show the same number.

The site has a real import and a day of mixed work. Afterwards, each page, call and command that
shows numbers is read.
"""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import flask
import pytest

from comments.upkeep import scheduler
from tests.support import optional_tools, shown_numbers
from tests.support.histories import mixed_day
from tests.support.people import account_holders, console_browser
from tests.support.threads import sample_exports

pytestmark = pytest.mark.slow

COMPARED = {
    "visible",
    "comments",
    "commenters",
    "followers",
    "unread",
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
    day = mixed_day.MixedDay(app, threads[:6], seed=steps, people=12)
    day.pass_by(steps // 2)
    for words in COUNTERS:
        assert run(args=["counter", "add", "demo", *words]).exit_code == 0
    day.pass_by(steps // 2)
    assert len(day.done) == len(mixed_day.STEPS), day.done
    _settle()

    # The first thread has moved, and each place shows its new id.
    assert run(args=["thread", "move", "demo", threads[0], "moved.example/page"]).exit_code == 0
    threads[0] = "moved.example/page"
    # The second thread was merged into the first one.
    assert run(args=["thread", "merge", "demo", threads[1], threads[0], "--yes"]).exit_code == 0
    del threads[1]
    _settle()
    account_holders.account("owner", account_holders.OWNER)
    numbers = shown_numbers.ShownNumbers(app, threads)
    numbers.collect(console_browser.Desk(app, "owner"), day.people)
    assert numbers.differing() == {}
    assert {name[0] for name, places in numbers.places.items() if len(places) > 1} >= COMPARED
    assert "0 differences corrected" in run(args=["recount", "demo"]).output


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
