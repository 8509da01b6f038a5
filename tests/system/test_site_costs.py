"""Operations on websites, and moves of threads, bill what docs/costs.md says, by the meter."""

import functools
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest

from comments.domain import records
from comments.sites import site_aliases, site_deletion, site_settings
from comments.store import connection
from comments.transfer.moves import join_plan, move_journal, move_plan, thread_joins, thread_moves
from comments.transfer.uploads import site_copy, upload_steps
from comments.tree.lists import ordered_query
from comments.upkeep import scheduler, site_erasure
from datastore_emulator import inprocess, testing
from tests.support import programs
from tests.support.histories import counter_oracle
from tests.support.threads import sample_threads
from tests.system import test_cost_table

DOCS = programs.ROOT / "docs" / "costs.md"
COMMENTS, AUTHORS = 100, 4
ADA = sample_threads.ADA
NEW = "demo-staging"


def _line(engine: inprocess.Engine, name: str, *steps: Callable[[], object]) -> str:
    with testing.meter(engine) as cost:
        for step in steps:
            step()
    reads = test_cost_table.Reads(cost.reads, cost.reads + cost.empty)
    return f"| {name} | {reads} | {cost.writes + cost.deletes} |"


def _measured(engine: inprocess.Engine) -> Iterator[str]:
    now = datetime.now(UTC)
    later = now + site_erasure.SETTLING
    line = functools.partial(_line, engine)

    def copy(new: str, *, with_comments: bool) -> None:
        origins = ["https://staging.example"]
        site_copy.copy("demo", new, origins, ADA, now=now, with_comments=with_comments)

    def copy_comments() -> None:
        assert upload_steps.do_next_step(NEW, sample_threads.SETTINGS.secret)

    yield line("rename", lambda: site_aliases.rename("demo", "garden", ADA, now=now))
    yield line("staging copy", lambda: copy("other", with_comments=False))
    copy(NEW, with_comments=True)
    yield line("copying of 100 comments by 4 people", copy_comments, copy_comments)
    yield line("deletion", lambda: site_deletion.delete("demo", ADA, now=now))
    yield line("taking back", lambda: site_deletion.restore("demo", ADA, now=now))
    site_deletion.delete("demo", ADA, now=now)
    yield line(
        "erasure of 100 comments by 4 people",
        lambda: site_erasure.begin("demo", now=now),
        lambda: site_erasure.go_on("demo", now=now),
        lambda: site_erasure.go_on("demo", now=later),
    )


def _moved(engine: inprocess.Engine) -> Iterator[str]:
    now, line = datetime.now(UTC), functools.partial(_line, engine)

    def move() -> None:
        plan = move_plan.of_list(site_settings.get("demo"), [("a", "c")])
        _end(thread_moves.begin(site_settings.get("demo"), plan, "a move", ADA, now=now))

    def merge() -> None:
        _join(join_plan.of_merge(site_settings.get("demo"), "b", "a"))

    def split(comment: str) -> None:
        _join(join_plan.of_split(site_settings.get("demo"), comment, "d"))

    def undo() -> None:
        _end(thread_moves.undo("demo", move_journal.of_site("demo")[0].id, ADA, now=now))

    yield line("move of a thread", move)
    yield line("undo of the move", undo)
    yield line("merge of 50 comments into a thread with 50 comments", merge)
    yield line("undo of the merge", undo)
    merge()
    half = ordered_query.thread(records.ThreadName("demo", "a"))[COMMENTS // 2]
    yield line("split of 50 comments from a thread with 100 comments", lambda: split(half.id))
    yield line("undo of the split", undo)


def _join(plan: join_plan.JoinPlan) -> None:
    site, now = site_settings.get("demo"), datetime.now(UTC)
    _end(thread_joins.begin(site, plan, ADA, now=now))


def _end(move: move_journal.Move) -> None:
    """Run a move to its end, deliver its events, and read the site as a later step does."""
    thread_moves.run_to_end(move)
    scheduler.Scheduler().deliver(counter_oracle.events())
    site_settings.get("demo")


def _listed(section: str) -> list[str]:
    text = DOCS.read_text().partition(f"### {section}")[2].partition("\n### ")[0]
    return re.findall(r"^\| .* / .* \| \d+ \|$", text, re.MULTILINE)


@pytest.mark.slow
def test_the_table_of_moves_is_what_the_meter_measures(
    store: connection.Store, engine: inprocess.Engine, site: records.Site
) -> None:
    first: dict[str, str] = {}
    for number in range(COMMENTS):
        thread = "ab"[number % 2]
        posted = sample_threads.post(
            site, f"c{number}", first.get(thread), thread=thread,
            author=sample_threads.author(f"reader {number // 2 % AUTHORS}"),
            now=sample_threads.START + timedelta(minutes=number),
        )  # fmt: skip
        first.setdefault(thread, posted.id)
    scheduler.Scheduler().deliver(counter_oracle.events())
    assert list(_moved(engine)) == _listed("Threads that have moved")


@pytest.mark.slow
def test_the_table_of_websites_is_what_the_meter_measures(
    store: connection.Store, engine: inprocess.Engine, site: records.Site
) -> None:
    for number in range(COMMENTS):
        author = sample_threads.author(f"reader {number % AUTHORS}")
        now = sample_threads.START + timedelta(minutes=number)
        sample_threads.post(site, f"c{number}", author=author, now=now)
    scheduler.Scheduler().deliver(counter_oracle.events())
    assert list(_measured(engine)) == _listed("Websites")
