"""Reports of declared counters show all numbers in order, page by page, and their cost."""

from datetime import date, timedelta

import pytest

from comments import errors
from comments.domain import records
from comments.domain.counters import declared_counters
from comments.events import dispatcher
from comments.store import connection
from comments.tree.counters import statistics
from comments.tree.counters.declared import declarations, declared_backfill, declared_reports
from comments.tree.counters.declared.declared_reports import CountFilter
from comments.upkeep import wiring
from datastore_emulator import inprocess, testing
from tests.support import prepared_stores
from tests.support.histories import counter_oracle
from tests.support.threads import sample_threads

NOW = sample_threads.START + timedelta(days=9)
NAMES = ("sport", "sport/football", "sport clubs", "travel")
DAYS = [(sample_threads.START + timedelta(days=n)).date() for n in range(3)]
LONG = "x" * 501
DECLARED = {
    each.name: each
    for each in (
        declared_counters.declare("filed", [], ["category", "day"]),
        declared_counters.declare("daily", [], ["day", "author"]),
        declared_counters.declare("places", [], ["thread"]),
        declared_counters.declare("total"),
    )
}


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> prepared_stores.Beginning:
    def grow(site: records.Site) -> None:
        site = sample_threads.filing(site, *NAMES)
        for name in NAMES:
            for number, day in enumerate(DAYS):
                sample_threads.post(
                    site,
                    f"{name} {number}",
                    thread=LONG if name == "travel" else f"about/{name}",
                    author=sample_threads.author(name[:5]),
                    categories=(name,),
                    now=sample_threads.START + (day - DAYS[0]),
                )
        dispatcher.deliver(counter_oracle.events(), now=NOW, handlers=wiring.HANDLERS)
        for declared in DECLARED.values():
            declarations.add("demo", declared, now=NOW)
        declared_backfill.complete("demo")

    return prepared_stores.grown(tmp_path_factory, grow)


def _lines(
    name: str, wanted: CountFilter = declared_reports.EVERYTHING, limit: int = 1000
) -> list[tuple[object, ...]]:
    """Return the keys by which a counter counts and the numbers."""
    found = declarations.counter("demo", name)
    lines = statistics.whole(
        lambda after: declared_reports.lines("demo", found, wanted, after=after, limit=limit)
    )
    by = found.declaration.by
    return [(*(getattr(line, key) for key in by), line.number) for line in lines]


@pytest.mark.parametrize("limit", [1, 2, 5, 1000])
def test_a_category_precedes_its_subcategories_and_contains_their_numbers(
    store: connection.Store, begun: prepared_stores.Beginning, limit: int
) -> None:
    expected = [
        (name, day, 2 if name == "sport" else 1)
        for name in ("sport", "sport/football", "sport clubs", "travel")
        for day in DAYS
    ]
    assert _lines("filed", limit=limit) == expected
    assert _lines("filed", CountFilter("Sport"), limit) == expected[:6]
    assert _lines("filed", CountFilter("sport/football"), limit) == expected[3:6]
    assert _lines("filed", CountFilter("sport clubs"), limit) == expected[6:9]
    assert _lines("filed", CountFilter("football"), limit) == []
    wanted = CountFilter("sport", since=DAYS[1], until=DAYS[1])
    assert _lines("filed", wanted, limit) == [expected[1], expected[4]]


@pytest.mark.parametrize("limit", [1, 1000])
@pytest.mark.parametrize("since", [None, *DAYS, date.min, date.max])
@pytest.mark.parametrize("until", [None, *DAYS, date.max])
def test_days_are_a_range(
    store: connection.Store,
    begun: prepared_stores.Beginning,
    since: date | None,
    until: date | None,
    limit: int,
) -> None:
    wanted = CountFilter(since=since, until=until)
    if since and until and since > until:
        with pytest.raises(errors.BadInput, match="since-after-until"):
            _lines("daily", wanted)
        return
    expected = [
        (day, author, number) for day in DAYS for author, number in (("g:sport", 3), ("g:trave", 1))
    ]
    assert _lines("daily", wanted, limit) == [
        line for line in expected if (since or line[0]) <= line[0] <= (until or line[0])
    ]


def test_threads_are_shown_by_their_ids(
    store: connection.Store, begun: prepared_stores.Beginning
) -> None:
    assert sorted(_lines("places")) == sorted(
        [(LONG, 3), *((f"about/{name}", 3) for name in NAMES[:3])]
    )
    assert _lines("total") == [(12,)]


@pytest.mark.parametrize(
    ("name", "wanted", "limit", "field"),
    [
        ("daily", CountFilter("sport"), 1, "under"),
        ("total", CountFilter(since=DAYS[0]), 1, "since"),
        ("places", CountFilter(until=DAYS[0]), 1, "until"),
        ("filed", CountFilter("?"), 1, "under"),
        ("filed", CountFilter(), 0, "limit"),
        ("filed", CountFilter(), 1001, "limit"),
    ],
)
def test_a_report_that_a_counter_cannot_give_is_refused(
    store: connection.Store,
    begun: prepared_stores.Beginning,
    name: str,
    wanted: CountFilter,
    limit: int,
    field: str,
) -> None:
    with pytest.raises(errors.BadInput) as caught:
        declared_reports.lines("demo", declarations.counter("demo", name), wanted, limit=limit)
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("name", "rows"), [("filed", 12), ("daily", 6), ("places", 4), ("total", 1)]
)
def test_the_cost_that_is_stated_beforehand_is_billed(
    store: connection.Store,
    begun: prepared_stores.Beginning,
    engine: inprocess.Engine,
    name: str,
    rows: int,
) -> None:
    again = declared_counters.declare("again", [], DECLARED[name].by)
    with testing.meter(engine) as asked:
        cost = declared_reports.cost("demo", again)
    assert asked.reads <= 1 + len(again.by)
    assert cost.rows >= rows
    assert cost.rows <= 3 * rows  # It is an upper bound: the product of days and authors, say.
    declarations.add("demo", again, now=NOW)
    with testing.meter(engine) as billed:
        declared_backfill.recount("demo", tell=print, fixes=True)
    stored = 12 + 6 + 4 + 1
    # The rows of other counters are compared too. Each step reads and writes the site's row, and
    # three queries find the events that are still to be delivered, and numbers that do not exist.
    assert cost.backfill == 12
    assert 0 <= billed.reads - (cost.backfill + stored + rows) <= 10
    assert billed.writes == rows + 1
    assert _lines("again") == _lines(name)
