"""For each call in docs/costs.md, the billed operations match the engine's meter."""

import dataclasses
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest
from werkzeug.test import TestResponse

from comments.domain import records
from comments.moderation.policy import rulebook
from comments.posting import cast_vote
from comments.sites import mail_server, site_settings
from comments.store import connection
from comments.transfer.moves import move_plan, thread_moves
from comments.tree.lists import ordered_query
from comments.upkeep import scheduler
from datastore_emulator import inprocess, testing
from tests.support import datastores, prepared_stores, programs
from tests.support.histories import counter_oracle
from tests.support.people import account_holders, api_requests, moderators
from tests.support.threads import cache_twins, compaction, sample_threads, sample_votes
from tests.support.threads.cache_twins import PAGE, SITE

DOCS = programs.ROOT / "docs" / "costs.md"
COMMENTS = 150  # Comments in the thread, which has three buckets
Call = Callable[[cache_twins.Process], TestResponse]


class Reads(NamedTuple):
    """The billed reads under the lenient and the strict interpretation of the price."""

    lenient: int
    strict: int

    def __str__(self) -> str:
        return f"{self.lenient} / {self.strict}"


@dataclasses.dataclass(frozen=True)
class PricedThread:
    """A store with the ids and cursors that the calls need."""

    engine: inprocess.Engine
    ids: list[str]
    tag: str
    cursor: str

    def process(self) -> cache_twins.Process:
        """Start a process with only the site, its rules and the mail server in its caches."""
        made = cache_twins.Process(datastores.Embedded(self.engine), sample_threads.SETTINGS)
        with made.store.context():
            site_settings.get("demo")
            rulebook.current("demo")
            mail_server.sends_mail(sample_threads.SETTINGS)
        return made

    def reads(self, process: cache_twins.Process, call: Call) -> Reads:
        with testing.meter(self.engine) as cost:
            assert call(process).status_code in {200, 304}
        assert (cost.writes, cost.deletes) == (0, 0)
        return Reads(cost.reads, cost.reads + cost.empty)


def get(path: str, **headers: str) -> Callable[[PricedThread], Call]:
    return lambda _: lambda process: process.client.get(path, headers=headers)


def _counts(priced: PricedThread) -> Call:
    asked = {"threads": [f"of {number}" for number in range(49)] + ["page"]}
    return lambda process: process.client.post("/api/v1/sites/demo/counts", json=asked)


def _followers(priced: PricedThread) -> Call:
    asked = {"threads": [f"of {number}" for number in range(49)] + ["page"], "followers": True}
    return lambda process: process.client.post("/api/v1/sites/demo/counts", json=asked)


def _unchanged(path: str) -> Callable[[PricedThread], Call]:
    return lambda priced: get(path, **{"If-None-Match": _tag(priced, path)})(priced)


MIDDLE = COMMENTS // 2
READS: dict[str, Callable[[PricedThread], Call]] = {
    "first page": get(PAGE),
    "first page, answered 304": lambda priced: get(PAGE, **{"If-None-Match": priced.tag})(priced),
    "first page with a different limit": get(f"{PAGE}&limit=51"),
    "first page, 5 comments not compacted": get(f"{SITE}?thread=changed"),
    "next page": lambda priced: get(f"{PAGE}&cursor={priced.cursor}")(priced),
    "first page, `order=recent`": get(f"{PAGE}&order=recent"),
    "first page, `order=best`, without votes": get(f"{PAGE}&order=best"),
    "first page, `order=best`, with votes": get(f"{SITE}?thread=voted&order=best"),
    "first page of 50, `order=newest`": get(f"{PAGE}&order=newest"),
    **{
        f"first page, `order={order}`, answered 304": _unchanged(f"{PAGE}&order={order}")
        for order in ("recent", "best", "oldest", "newest")
    },
    "page around a comment": lambda priced: get(f"{PAGE}&around={priced.ids[MIDDLE]}")(priced),
    "page around a comment, by its slug": get(f"{PAGE}&around={MIDDLE}"),
    "page 3 by number": get(f"{PAGE}&page=3"),
    "page 3 by number, `order=recent`": get(f"{PAGE}&order=recent&page=3"),
    "page 2 by number, `order=best`, with votes": get(f"{SITE}?thread=voted&order=best&page=2"),
    "page 3 by number, `order=best`, with votes": get(f"{SITE}?thread=voted&order=best&page=3"),
    "page 3 of 50 by number, `order=newest`": get(f"{PAGE}&order=newest&page=3"),
    "next page of 50, `order=newest`": lambda priced: get(
        f"{PAGE}&order=newest&cursor={_cursor(priced)}"
    )(priced),
    "replies below a comment": lambda priced: get(f"{api_requests.ONE}{priced.ids[0]}/replies")(
        priced
    ),
    "one comment": lambda priced: get(f"{api_requests.ONE}{priced.ids[0]}")(priced),
    "one comment, by its slug": get(f"{SITE.removesuffix('s')}?thread=page&slug={MIDDLE}"),
    "whole thread (150 comments)": get(f"{PAGE}&limit=all"),
    "whole thread, answered 304": _unchanged(f"{PAGE}&limit=all"),
    "page without JavaScript": get("/embed/demo?thread=page"),
    "thread of 10 comments, never compacted": get(f"{SITE}?thread=new"),
    "thread without comments": get(f"{SITE}?thread=none"),
    "counts of 50 threads": _counts,
    "counts of 50 threads, with followers": _followers,
    "feed of a thread (30 of 150 comments)": get("/feeds/demo/thread?thread=page"),
    "feed of a site (30 comments of 2 threads)": get("/feeds/demo"),
    "25 threads of a category": get("/api/v1/sites/demo/threads?category=news"),
    "25 comments of a category, in 25 threads": get("/api/v1/sites/demo/comments?category=news"),
    "feed of a category (30 comments of 30 threads)": get("/feeds/demo?category=news"),
}

# Calls on a site with a thread that has moved from "page" to "moved".
MOVED = {
    "first page of a thread that has moved": get(f"{SITE}?thread=moved"),
    "first page of another thread of the same site": get(f"{SITE}?thread=voted"),
}

# The moderators' calls that change nothing.
LISTS = {
    "list of no pending comments": "comments?thread=page",
    "statistics: 10 authors of a thread": "statistics/thread-commenters?thread=page&limit=10",
    "statistics: no listed follower of a thread": "statistics/thread-followers?thread=page",
    "statistics: 3 threads of an author": "statistics/author-threads?author=g:c3",
}


def _cursor(priced: PricedThread) -> str:
    return str(api_requests.answer(priced.process().client.get(f"{PAGE}&order=newest"))["cursor"])


def _tag(priced: PricedThread, path: str) -> str:
    return str(priced.process().client.get(path).headers["ETag"])


def _file(site: records.Site) -> None:
    """Post older comments to 40 threads of a category."""
    site_settings.change(site.id, filed=("news",))
    filed = sample_threads.filing(site, "news")
    for number in range(40):
        now = sample_threads.START - timedelta(days=1, minutes=number)
        sample_threads.post(
            filed, f"n{number}", thread=f"filed{number}", now=now, categories=("news",)
        )


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> prepared_stores.Beginning:
    def grow(site: Any) -> None:
        def post(number: int, thread: str) -> records.Comment:
            # All times are different, so the newest comments do not depend on ids.
            now = sample_threads.START + timedelta(minutes=number)
            return sample_threads.post(site, f"c{number}", thread=thread, now=now)

        for number in range(10):
            post(number, "new")
            post(number, "changed")
        for number in range(COMMENTS):
            post(number, "page")
        _file(site)
        voted = [post(number - COMMENTS, "voted") for number in range(COMMENTS)]
        for place in (140, 3, 70):
            sample_votes.vote(voted[place], "ann")
        sample_votes.count_waiting()
        for thread in ("page", "changed", "voted"):
            compaction.whole(sample_threads.name_of(site, thread))
        for number in range(5):
            post(COMMENTS + number, "changed")
        scheduler.Scheduler().deliver(counter_oracle.events())

    with pytest.MonkeyPatch.context() as patch:
        compaction.small_buckets(patch, 60)
        return prepared_stores.grown(tmp_path_factory, grow)


@pytest.fixture
def priced(open_store: connection.Store, engine: inprocess.Engine, site: Any) -> PricedThread:
    with open_store.context():
        ids = [row.id for row in ordered_query.thread(sample_threads.name_of(site))]
    made = PricedThread(engine, ids, "", "")
    first = made.process().client.get(PAGE)
    return dataclasses.replace(
        made, tag=first.headers["ETag"], cursor=api_requests.answer(first)["cursor"]
    )


def _measured(priced: PricedThread) -> Iterator[str]:
    yield from _measured_calls(priced, READS)
    with priced.process().store.context():
        site = site_settings.change("demo", freshness=0)
        plan = move_plan.of_list(site, [("page", "moved")])
        move = thread_moves.begin(site, plan, "a test", sample_threads.ADA, now=datetime.now(UTC))
        assert thread_moves.run_to_end(move).moved == 1
    yield from _measured_calls(priced, MOVED)


def _measured_calls(
    priced: PricedThread, calls: dict[str, Callable[[PricedThread], Call]]
) -> Iterator[str]:
    found: dict[str, list[Reads]] = {}
    for name, of in calls.items():
        process, call = priced.process(), of(priced)
        found[name] = [priced.reads(process, call) for _ in range(2)]
    with priced.process().store.context():
        site_settings.change("demo", freshness=60)
    for name, of in calls.items():
        process, call = priced.process(), of(priced)
        for _ in range(2):
            priced.reads(process, call)
        found[name].append(priced.reads(process, call))
    for name, costs in found.items():
        yield f"| {name} | {' | '.join(map(str, costs))} |"


def _written(priced: PricedThread) -> Iterator[str]:
    process = priced.process()
    process.client.get(PAGE)
    made: dict[str, Any] = {}

    def line(name: str, method: str, path: str, **sent: Any) -> str:
        with testing.meter(priced.engine) as cost:
            answer = process.client.open(path, method=method, **sent)
        made[name] = api_requests.answer(answer) if answer.data else None
        return _row(name, cost)

    text = {"name": "Ann", "body": "some words"}
    yield line("first comment of a thread", "POST", f"{SITE}?thread=fresh", json=text)
    yield line("comment", "POST", PAGE, json=text)
    yield line("reply", "POST", PAGE, json={**text, "parent": priced.ids[0]})
    one = api_requests.ONE + made["comment"]["comment"]["id"]
    mine = api_requests.bearer(made["comment"])
    yield line("edit", "PATCH", one, json={"body": "other words"}, headers=mine)
    yield line("retraction", "DELETE", one, headers=mine)
    vote = f"{api_requests.ONE}{priced.ids[0]}/vote"
    yield line("first vote of a reader", "PUT", vote, json={"value": 1})
    voter = api_requests.bearer(made["first vote of a reader"])
    yield line("other vote", "PUT", vote, json={"value": -1}, headers=voter)
    yield line("the same vote again", "PUT", vote, json={"value": -1}, headers=voter)
    yield line("vote withdrawn", "DELETE", vote, headers=voter)
    yield from _counted_votes(
        priced, process, lambda: process.client.put(vote, json={"value": 1}, headers=voter)
    )
    following = "/api/v1/sites/demo/following?thread=page"
    yield line("follow a thread", "PUT", following, headers=voter)
    shown = f"{following.replace('?', '/name?')}"
    yield line(
        "show staff that a reader follows", "PUT", shown, headers=voter, json={"name": "Ann"}
    )
    yield line("whether a reader follows", "GET", following, headers=voter)
    yield line("list of 1 followed thread", "GET", "/api/v1/sites/demo/followed", headers=voter)
    yield line("stop following", "DELETE", following, headers=voter)
    yield from _moderated(priced, process, line)


def _counted_votes(
    priced: PricedThread, process: cache_twins.Process, vote: Callable[[], TestResponse]
) -> Iterator[str]:
    with process.store.context():
        scheduler.Scheduler().deliver(counter_oracle.events())
        vote()
        with testing.meter(priced.engine) as cost:
            cast_vote.count(priced.ids[0], now=datetime.now(UTC))
        yield _row("count of the votes on a comment", cost)
        with testing.meter(priced.engine) as cost:
            scheduler.Scheduler().deliver(counter_oracle.events())
        yield _row("delivery of this count", cost)


def _row(name: str, cost: testing.Reading) -> str:
    reads = Reads(cost.reads, cost.reads + cost.empty)
    return f"| {name} | {reads} | {cost.writes + cost.deletes} |"


def _moderated(
    priced: PricedThread, process: cache_twins.Process, line: Callable[..., str]
) -> Iterator[str]:
    with process.store.context():
        token = moderators.token(account_holders.account("ann", account_holders.OWNER))
    moderator = {"Authorization": f"Bearer {token}"}
    deciding = f"{api_requests.ONE}{priced.ids[1]}/decision"
    for name, verb in (("decision in the thread", "hide"), ("undo of this decision", "restore")):
        yield line(name, "POST", deciding, json={"verb": verb}, headers=moderator)
    for name, path in LISTS.items():
        yield line(
            name, "GET", f"{SITE.removesuffix('comments')}moderation/{path}", headers=moderator
        )


def _listed(columns: int) -> str:
    numbers = r" \| \d+ / \d+" * columns
    pattern = rf"^\| [^|]*{numbers} \|(?: \d+ \|)?$"
    # `test_site_costs` compares the tables of moves and websites.
    text = DOCS.read_text().partition("### Threads that have moved")[0]
    found = re.findall(pattern, text, re.MULTILINE)
    return "\n".join(found)


@pytest.mark.slow
def test_the_table_of_reads_is_what_the_meter_measures(priced: PricedThread) -> None:
    assert _listed(3) == "\n".join(_measured(priced))


def test_the_table_of_writes_is_what_the_meter_measures(priced: PricedThread) -> None:
    assert _listed(1) == "\n".join(_written(priced))
