"""Claims about the cost of moderators' pages: bounded reads, whatever the site holds.

Counted by the engine's meter on a site of 1,000 comments and on one of 5,800. The rows are loaded
by the short way of the benchmarks; some wait, as imports leave them.
"""

import dataclasses
from collections.abc import Iterator

import msgspec
import pytest

from benchmarks import ours, shapes, talk
from comments import app as wiring
from comments import config, datastore, models, records, sites
from comments.records import Status
from emulator import inprocess, messages, meter, testing
from tests.comments import callers
from tests.comments.callers import OWNER, SECRET
from tests.comments.desks import Desk
from tests.conftest import ROOT

pytestmark = pytest.mark.slow

# Of both sizes the newest comments are of the same authors, and as many of them wait.
SIZES = (1_000, 5_800)
SMALL = 30  # threads beside the large one
PROLIFIC = "g:prolific"  # who wrote every third comment
ROWS = 25  # of a page
# Of each: its thread, its author's numbers, its reports. And who looks: session, account; the site.
PAGE = 4 * ROWS + 10


@dataclasses.dataclass(frozen=True)
class World:
    """A site of a size, and somebody at its desk."""

    engine: inprocess.Engine
    store: datastore.Store
    desk: Desk
    newest: str

    def cost(self, path: str) -> meter.Cost:
        """What a page bills to a process that has just started."""
        for name in ("threads", "sites", "rulebooks"):
            self.store._kept.pop(name, None)
        with testing.meter(self.engine) as cost:
            response = self.desk.client.get(f"/admin/sites/bench/{path}")
        assert response.status_code == 200, response.text
        assert (cost.writes, cost.deletes) == (0, 0)
        return cost


@pytest.fixture(scope="module")
def worlds() -> Iterator[list[World]]:
    made = [_world(size) for size in SIZES]
    yield made
    for each in made:
        each.engine.close()


def _world(size: int) -> World:
    thread = [
        msgspec.structs.replace(said, author_id=PROLIFIC) if place % 3 == 0 else said
        for place, said in enumerate(talk.thread(shapes.repeated(shapes.grown(100), size)))
    ]
    engine = inprocess.open_engine(None, indexes=ROOT / "index.yaml")
    store = datastore.Store(inprocess.Channel(engine), project=ours.PROJECT)
    with store.context():
        sites.add("bench", ["http://localhost"], scheme=ours.SCHEME, now=talk.START)
        for number in range(SMALL):
            name = records.ThreadName("bench", f"small {number}")
            ours.store_imported(talk.thread([None], first=size + number), name)
        ours.store_imported(thread[:1])
        key = models.thread_key_name(ours.NAME)
        (template,) = datastore.fetch(datastore.Query("Comment", where=(("thread", "=", key),)))
        engine.load(_some_wait(ours.rows(template, thread, lambda _place: 0)), ours.PROJECT)
        callers.account("ann", OWNER)
        app = wiring.create_app(config.Settings(secret=SECRET), store)
        return World(engine, store, Desk(app, "ann"), thread[-1].id)


def _some_wait(rows: Iterator[messages.Entity]) -> Iterator[messages.Entity]:
    """Have every tenth comment wait."""
    for place, row in enumerate(rows):
        if place % 10 == 0:
            row.properties["status"].string_value = Status.PENDING.value
            row.properties["listed"].boolean_value = False
        yield row


@pytest.mark.parametrize(
    ("path", "most"),
    [
        ("queue", PAGE),
        ("queue?status=any", PAGE + 10),
        ("queue?status=approved", PAGE),
        ("queue?status=any&q=nobody+wrote+this", 350),
        ("queue?author=g%3Aprolific", 450),
        ("author?id=g%3Aprolific", PAGE),
        ("comments/{newest}", PAGE),
        ("reported", 10),
        ("threads", PAGE),
        ("thread?thread=page", PAGE),
        ("authors", PAGE),
        ("rules", 10),
        ("statistics", 10),
        ("settings", 10),
        ("log", 10),
    ],
)
def test_a_page_costs_the_same_however_much_the_site_holds(
    worlds: list[World], path: str, most: int
) -> None:
    costs = [world.cost(path.format(newest=world.newest)) for world in worlds]
    small, large = (cost.reads for cost in costs)
    # A scan of more than 300 entries comes in two batches, and each of them bills a read.
    assert small <= large <= small + 1
    assert large <= most
    assert costs[1].small <= 2 * 6 * 301  # of each status, what is looked through


def test_a_page_far_behind_costs_what_the_first_one_does(worlds: list[World]) -> None:
    world = worlds[1]
    path, costs = "queue?status=approved", []
    for _ in range(5):
        costs.append(world.cost(path).reads)
        page = world.desk.client.get(f"/admin/sites/bench/{path}").text
        path = "queue?" + page.split('href="?')[-1].split('"')[0].replace("&amp;", "&")
    assert max(costs) <= PAGE
    assert max(costs[1:]) - min(costs[1:]) <= ROWS


def test_a_dry_run_reads_what_it_looks_at(worlds: list[World]) -> None:
    world = worlds[1]
    form = {"act": "try", "action": "hold", "words": "casino", "last": "100"}
    with testing.meter(world.engine) as cost:
        world.desk.settle("/rules", desk="/admin/sites/bench", status=200, **form)
    assert cost.reads <= 6 * 100 + 10
    assert cost.writes == 0
