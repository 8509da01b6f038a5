"""The cost of moderation pages does not depend on the site's size.

The engine's meter counts reads on two sites with 1,000 and 2,500 comments and the same newest
comments. A program that coverage does not measure makes both sites. To test a larger site and print
each page's figures on standard output, run:

    DESK_COMMENTS=100000 pytest -s tests/comments/web/admin/test_site_pages_costs.py
"""

import dataclasses
import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from benchmarks.threads import loading
from comments import app as apps
from comments import config
from comments.moderation import review_queue
from comments.moderation.policy import rulebook
from comments.sites import site_settings
from comments.store import connection
from comments.threads import thread_cache
from datastore_emulator import inprocess, testing
from datastore_emulator.execution import lazy_indexes
from tests.conftest import ROOT
from tests.support.people import account_holders
from tests.support.people.account_holders import OWNER, SECRET
from tests.support.people.console_browser import Desk
from tests.support.threads import large_site

pytestmark = [pytest.mark.slow, pytest.mark.embedded]

SIZES = (1_000, int(os.environ.get("DESK_COMMENTS", "1600")))
ROWS = 25  # Per page.
# Each row needs its thread, the author's counters, reports and verdicts. The request needs the
# session, account and site.
PAGE = 5 * ROWS + 10
SEARCHED = 100  # Instead of 2,000, which the smaller site does not have
SEARCH = SEARCHED + 50


@dataclasses.dataclass(frozen=True)
class LargeSite:
    """A site with a given number of comments and a moderator's browser in its console."""

    engine: inprocess.Engine
    store: connection.Store
    desk: Desk
    newest: str

    def cost(self, path: str, **form: str) -> testing.Reading:
        """Return the billed reads for a page or a form in a process that has just started."""
        for each in (thread_cache.COPIES, site_settings.COPIES, rulebook.COPIES):
            each.forget(self.store)
        with testing.meter(self.engine) as cost:
            if form:
                self.desk.settle(f"/{path}", desk="/admin/sites/bench", status=200, **form)
            else:
                response = self.desk.client.get(_address(path))
                assert response.status_code == 200, response.text
        # Home notes the visit of the account.
        assert (cost.writes, cost.deletes) == (int(path == "home"), 0)
        return cost

    def behind(self, path: str, pages: int) -> str:
        """Follow the link to the next page `pages` times; return the path of the last page."""
        for _ in range(pages):
            page = self.desk.client.get(_address(path)).text
            found = re.search(r'href="\?([^"]*)" rel="next"', page)
            assert found, page
            path = f"{path.partition('?')[0]}?{found[1].replace('&amp;', '&')}"
        return path


def _address(path: str) -> str:
    if path == "home":
        return "/admin"
    is_of_service = path.startswith(("health", "mail", "people", "providers", "service"))
    return f"/admin/{path}" if is_of_service else f"/admin/sites/bench/{path}"


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[LargeSite]]:
    made = [_world(tmp_path_factory, size) for size in SIZES]
    yield made
    for each in made:
        each.engine.close()


def _world(tmp_path_factory: pytest.TempPathFactory, size: int) -> LargeSite:
    path = tmp_path_factory.mktemp("desk") / "data"
    large_site.make(path, size)
    engine = inprocess.open_engine(path, indexes=ROOT / "index.yaml", durability="fast")
    store = connection.Store(inprocess.Channel(engine), project=loading.PROJECT)
    with store.context():
        account_holders.account("ann", OWNER)
        app = apps.create_app(config.Settings(secret=SECRET), store)
        return LargeSite(engine, store, Desk(app, "ann"), large_site.comment(1, size))


@pytest.fixture(autouse=True)
def slow_kinds(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[None]:
    """Check that no page needs a built-in index of comments.

    The embedded Datastore makes such an index for the first query that needs it, which takes
    minutes for a million comments. Only the list of authors needs one, for authors without a
    comment in their counters, whom earlier releases counted.
    """
    kinds: set[str] = set()
    check = lazy_indexes.check

    def note(plan: Any, definitions: Any) -> None:
        indexes = [scan.index for branch in plan.branches for scan in branch.scans]
        kinds.update(
            index.kind for index in indexes if index and index.is_builtin and index.properties
        )
        check(plan, definitions)

    monkeypatch.setattr(lazy_indexes, "check", note)
    yield
    assert "Comment" not in kinds or "[authors-" in request.node.name


TRY = {
    "act": "try",
    "action": "hold",
    "words": "casino",
    "approved_under": "3",
    "younger_than": "3",
}


@pytest.mark.parametrize(
    ("path", "behind", "most"),
    [
        ("home", 0, 40),
        ("queue", 0, PAGE),
        ("queue", 2, PAGE),
        ("queue?status=any", 0, PAGE + 10),
        ("queue?status=any", 4, PAGE + 20),
        ("queue?status=approved", 0, PAGE),
        ("queue?status=spam", 0, PAGE),
        ("queue?q=author", 0, PAGE),
        ("queue?status=any&q=nobody+wrote+this", 0, SEARCH),
        ("queue?status=any&q=nobody+wrote+this", 2, SEARCH),
        ("queue?author=g%3Aprolific", 0, 450),
        ("queue?status=approved&author=g%3Aprolific&q=nobody", 0, SEARCH),
        ("queue?why=rule", 0, PAGE),
        ("queue?address=page", 0, PAGE + 2 * ROWS),
        ("queue?status=any&why=reports", 0, SEARCH),
        ("queue?since={year}&until={today}", 0, PAGE),
        ("queue/news?since={year}T00:00:00%2B00:00", 0, 5),
        ("queue?since={year}&until={today}&why=rule&address=page&q=author", 0, PAGE + 2 * ROWS),
        ("author?id=g%3Aprolific", 0, PAGE),
        ("author?id=g%3Aprolific", 3, PAGE),
        ("comments/{newest}", 0, PAGE),
        ("reported", 0, PAGE),
        ("threads", 0, PAGE),
        ("threads", 2, PAGE),
        ("threads?order=comments", 0, 700),
        ("threads?order=comments&category=category+1", 0, 700),
        ("thread?thread=page", 0, PAGE),
        ("thread?thread=page", 3, PAGE),
        ("moves?comment={newest}", 0, 10),
        ("thread/stored?thread=page", 0, 130),
        ("thread/followers?thread=page", 0, 12),
        ("thread/stored?thread=page", 3, 130),
        ("authors", 0, PAGE + 60),
        ("authors", 1, PAGE + 60),
        ("rules", 0, 10),
        ("rules?rule=words1", 0, 10),
        ("statistics", 0, 100),
        ("statistics?since={year}&category=category+1", 0, 800),
        ("settings", 0, 10),
        ("advisers", 0, 10),
        ("connections", 0, 10),
        ("notifications", 0, 12),
        ("limits", 0, 10),
        ("imports", 0, 10),
        ("log", 0, 60),
        ("log", 2, 60),
        ("log?subject={newest}", 0, 10),
        ("people", 0, 10),
        ("mail", 0, 10),
        ("people/data", 0, 10),
        ("service", 0, 10),
        ("providers", 0, 10),
        ("sign-in", 0, 12),
        ("counters", 0, 12),
        ("audiences", 0, 12),
        ("health", 0, 70),
        ("health", 2, 70),
    ],
)
def test_the_cost_of_a_page_does_not_depend_on_the_size_of_the_site(
    sites: list[LargeSite], monkeypatch: pytest.MonkeyPatch, path: str, behind: int, most: int
) -> None:
    if "DESK_COMMENTS" not in os.environ:
        monkeypatch.setattr(review_queue, "LOOKED_THROUGH", SEARCHED)
    costs = []
    today = datetime.now(UTC).date()
    year = today - timedelta(days=364)
    for site in sites:
        here = path.format(newest=site.newest, year=year, today=today)
        costs.append(site.cost(site.behind(here, behind) if behind else here))
    # A thread begins with its oldest comments, and these have different authors on the two sites. A
    # text search scans each status.
    slack = 5 if path.startswith("thread?") else 6 if "any&" in path else 2
    _assert_bounded(f"{path}, page {behind + 1}", costs, most, slack)


def test_a_dry_run_reads_only_the_comments_it_checks(sites: list[LargeSite]) -> None:
    for last in (100, 1_000):
        costs = [site.cost("rules", **TRY, last=str(last)) for site in sites]
        # In addition, each author's counters are read once.
        _assert_bounded(
            f"rules, a dry run over {last}", costs, 2 * last + 20, slack=6 * (1 + last // 300)
        )


def _assert_bounded(what: str, costs: list[testing.Reading], most: int, slack: int = 2) -> None:
    """Compare the costs on both sites with each other and with a limit.

    A scan of more than 300 entries needs several batches, and each batch bills a read. The first
    batch is read twice, the second time in the transaction that reads the remaining batches.
    """
    small, large = costs
    figures = f"{small.reads} reads, {small.small} small; {large.reads} reads, {large.small} small"
    print(f"{what}: {figures}")  # noqa: T201 - shown with -s
    assert abs(large.reads - small.reads) <= slack
    assert large.reads <= most
    assert large.small <= 6 * most  # Counts the searched comments of each status
