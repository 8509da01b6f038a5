"""The bill in docs/app-engine.md follows from its prices and from the costs in other documents."""

import re
from pathlib import Path

from comments.reading.compaction import compactor
from tests.support import programs

DOCS = programs.ROOT / "docs"
PATH = DOCS / "app-engine.md"
PAGE = PATH.read_text()
DAYS = 30
VIEW_BYTES = 40_000
UPKEEP_CALLS, DELIVER_CALLS = 24 * 60 // 5, 24 * 60
REQUEST = 0.1  # Seconds, to which Cloud Run rounds up.


def cells(path: Path, first: str) -> list[str]:
    """Return the other cells of the row of a document that begins with this cell."""
    (row,) = re.findall(rf"^\| {re.escape(first)} \|(.*)\|$", path.read_text(), re.MULTILINE)
    return [cell.strip() for cell in row.split("|")]


def strict(cell: str) -> float:
    return float(cell.rpartition("/")[2])


def metered(name: str) -> tuple[float, float, float]:
    """Return the reads, writes and deletes of work in docs/scaling.md."""
    reads, writes, deletes = cells(DOCS / "scaling.md", name)
    return strict(reads), float(writes), float(deletes)


def operations(views: int) -> tuple[float, float, float]:
    """Return the reads, writes and deletes of a day, as the page assumes them."""
    opened = strict(cells(DOCS / "costs.md", "first page")[0])
    checked = strict(cells(DOCS / "costs.md", "first page, answered 304")[1])
    comments, votes = views / 200, views / 50
    background = "background work for one comment, its share of edits, and one vote"
    reads, writes, deletes = ((opened + checked) * views, 0.0, 0.0)
    for times, name in (
        (DELIVER_CALLS, "both cron calls with nothing to do"),
        (comments, "one comment, until its answer"),
        (comments, background),
        (votes, "one vote"),
    ):
        each = metered(name)
        reads, writes, deletes = (
            reads + times * each[0],
            writes + times * each[1],
            deletes + times * each[2],
        )
    return reads, writes, deletes


def price(name: str, used: float, *, days: int = DAYS) -> float:
    """Return the price of a month, given what is used in a day."""
    amount, unit, free = cells(PATH, name)
    per = float(re.sub(r"[^\d.]", "", unit.partition(" ")[0]))
    given = float(re.sub(r"[^\d.]", "", free.partition(" a ")[0]))
    is_daily = free.endswith("a day")
    billed = max(0.0, used - given) * days if is_daily else max(0.0, used * days - given)
    return billed / per * float(amount)


def store(views: int) -> float:
    reads, writes, deletes = operations(views)
    return price("reads\\*", reads) + price("writes\\*", writes) + price("deletes\\*", deletes)


def app_engine(views: int) -> float:
    hours = 24 if views < 100_000 else 24 + 12
    data = views * VIEW_BYTES / 2**30
    return price("App Engine: an F1 instance\\*", hours) + price(
        "App Engine: data to readers\\*", data
    )


def cloud_run(views: int) -> float:
    compacting = min(UPKEEP_CALLS, views / 200 + views / 50)
    idle = UPKEEP_CALLS - compacting + DELIVER_CALLS
    seconds = (2 * views + idle) * REQUEST + compacting * (compactor.GRACE + 1)
    return (
        price("Cloud Run: processor", seconds)
        + price("Cloud Run: memory", seconds * 0.5)
        + price("Cloud Run: requests", 2 * views + UPKEEP_CALLS + DELIVER_CALLS)
        + price("Cloud Run: data to readers\\*", views * VIEW_BYTES / 2**30)
    )


def row(views: int) -> str:
    counts = " | ".join(f"{round(each):,}" for each in operations(views))
    bill = store(views), app_engine(views), cloud_run(views)
    totals = bill[0] + bill[1], bill[0] + bill[2]
    money = " | ".join(f"${each:.2f}" for each in (*bill, *totals))
    return f"| {views:,} | {counts} | {money} |"


def test_the_bill_follows_from_the_prices_and_the_costs_of_calls() -> None:
    expected = [row(views) for views in (1_000, 100_000)]
    assert re.findall(r"^\| 1[0,]+ \|.*$", PAGE, re.MULTILINE) == expected


def test_the_assumptions_are_those_of_the_page() -> None:
    flat = " ".join(PAGE.split())
    for said in (
        "A page view sends 40 kB",
        f"{DELIVER_CALLS:,} idle cron calls a day",
        f"makes `/tasks/upkeep` take {compactor.GRACE + 1:.0f} seconds",
        "a page view makes two requests of 0.1 seconds",
        "A comment comes with 200 page views and a vote with 50",
        "--schedule='*/5 * * * *'",
    ):
        assert said in flat
