"""What a month costs in Datastore, computed from metered calls (pure, except for the documents).

    python -m benchmarks.scaling costs [--prices READ,WRITE,DELETE] [--write]

Reads of a page view come from the tables in docs/costs.md, which a test compares with the meter.
Posts, votes, edits and their background work come from the recording of the product
(`recorded_writes`), whose operations the meter counted.

The model of a month:

1. Each page view makes two calls for its thread: the page, and one later check for new comments.
2. Discussions are viewed by Zipf's law: the n-th gets a share in proportion to 1/n.
3. In a process, the first call for a thread in each minute reads the directory, and the first call
   in each minute reads the site and its rules.
4. Every call sends a probe, which is free or costs one read.
5. On App Engine, cron calls look for background work every minute.
"""

import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from benchmarks import plots
from benchmarks.scaling import recorded_writes

MINUTES = 30 * 24 * 60
CALLS_PER_VIEW = 2
_SITE_READS = 2  # The site and its rules, once a minute in each process.
_VIEWS_PER_THREAD = 1_000
_UNITS = 100_000  # Prices are for this many operations.
_READS_ROW = re.compile(r"^\| (?P<call>[^|]*) \| (\d+) / (\d+) \| (\d+) / (\d+) \|", re.MULTILINE)


class Prices(msgspec.Struct, frozen=True):
    """US dollars for 100,000 operations, and the operations of a day that are free."""

    read: float = 0.06
    write: float = 0.18
    delete: float = 0.02
    free_reads: int = 50_000
    free_writes: int = 20_000
    free_deletes: int = 20_000


class Month(msgspec.Struct, frozen=True):
    """The traffic of a month. `per_comment` and `per_vote` are page views for one of each."""

    views: int
    processes: int = 1
    per_comment: int = 200
    per_vote: int = 50

    @property
    def threads(self) -> int:
        """The number of discussions that are viewed."""
        return max(1, self.views // _VIEWS_PER_THREAD)


MONTHS = (Month(10_000), Month(1_000_000), Month(100_000_000, processes=4))


class Operations(msgspec.Struct, frozen=True):
    """Operations of a month. Reads follow both interpretations of the price.

    `fresh` is the number of strict reads if the site's `freshness` is a minute, so that a process
    probes a thread at most once a minute.
    """

    lenient: float
    strict: float
    fresh: float
    writes: float
    deletes: float

    def dollars(self, prices: Prices, reads: float) -> float:
        """Return the price of the month with these reads, after each day's free operations."""
        return sum(
            max(0.0, count - free * 30) / _UNITS * price
            for count, free, price in (
                (reads, prices.free_reads, prices.read),
                (self.writes, prices.free_writes, prices.write),
                (self.deletes, prices.free_deletes, prices.delete),
            )
        )


class Read(msgspec.Struct, frozen=True):
    """The reads of a call: lenient and strict, in a new and in a warm process."""

    cold: tuple[int, int]
    warm: tuple[int, int]


def reads(document: Path, call: str) -> Read:
    """Return a row of the table of reads in docs/costs.md."""
    for found in _READS_ROW.finditer(document.read_text(encoding="utf-8")):
        if found["call"] == call:
            numbers = [int(number) for number in found.groups()[1:]]
            return Read((numbers[0], numbers[1]), (numbers[2], numbers[3]))
    raise SystemExit(f'{document} has no row "{call}"')


def first_calls(month: Month) -> float:
    """Return how many calls are the first for their thread in a minute of a process."""
    slots = MINUTES * month.processes
    total = math.fsum(1 / rank for rank in range(1, month.threads + 1))
    calls = month.views * CALLS_PER_VIEW
    return math.fsum(
        slots * -math.expm1(-calls / total / rank / slots) for rank in range(1, month.threads + 1)
    )


def busy_minutes(month: Month) -> float:
    """Return the number of minutes with a call, over all processes."""
    slots = MINUTES * month.processes
    return slots * -math.expm1(-month.views * CALLS_PER_VIEW / slots)


def operations(month: Month, page: Read, made: recorded_writes.Recording) -> Operations:
    """Return the operations of a month.

    The difference between a cold and a warm page is the directory, which is read once a minute.
    """
    calls = month.views * CALLS_PER_VIEW
    first = first_calls(month)
    shared = first * (page.cold[0] - page.warm[0]) + busy_minutes(month) * _SITE_READS
    changes = list(_changes(month, made))
    lenient = shared + calls * page.warm[0] + sum(bill.reads * n for bill, n in changes)
    probe, empty = page.warm[1] - page.warm[0], sum(bill.empty * n for bill, n in changes)
    return Operations(
        lenient=lenient,
        strict=lenient + empty + calls * probe,
        fresh=lenient + empty + first * probe,
        writes=sum(bill.writes * n for bill, n in changes),
        deletes=sum(bill.deletes * n for bill, n in changes),
    )


def _changes(
    month: Month, made: recorded_writes.Recording
) -> Iterator[tuple[recorded_writes.Bill, float]]:
    """Yield the bills of the recording, each with how many times a month contains it.

    The background work of the recording is for its posts, with its votes and edits.
    """
    posts = month.views / month.per_comment
    yield made.posting, posts / made.posts
    yield made.editing, posts / made.posts
    yield made.later, posts / made.posts
    yield made.voting, month.views / month.per_vote / made.votes
    yield made.idle, MINUTES


def ordered_query(month: Month, page: Read, made: recorded_writes.Recording) -> Operations:
    """Return the reads of a layout that reads each of the 50 comments of a page, every time."""
    ours = operations(month, page, made)
    reads = month.views * 50.0 + month.views  # The check for new comments finds nothing.
    return Operations(reads, reads, reads, ours.writes, ours.deletes)


def markdown(page: Read, made: recorded_writes.Recording, prices: Prices) -> str:
    """Return the tables of operations and prices."""
    lines = [
        (
            "| page views | discussions | processes | comments | votes | reads, lenient "
            "| reads, strict | writes | deletes | lenient | strict | strict, `freshness` 60 s "
            "| one ordered query per page |"
        ),
        "|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for month in MONTHS:
        found = operations(month, page, made)
        naive = ordered_query(month, page, made)
        lines.append(
            f"| {month.views:,} | {month.threads:,} | {month.processes} "
            f"| {month.views // month.per_comment:,} | {month.views // month.per_vote:,} "
            f"| {found.lenient:,.0f} | {found.strict:,.0f} | {found.writes:,.0f} "
            f"| {found.deletes:,.0f} | {_price(found, prices, found.lenient)} "
            f"| {_price(found, prices, found.strict)} | {_price(found, prices, found.fresh)} "
            f"| {_price(naive, prices, naive.strict)} |"
        )
    return "\n".join([*_measured(made), "", *lines])


def _measured(made: recorded_writes.Recording) -> list[str]:
    lines = [
        "| metered in the recording | reads, lenient / strict | writes | deletes |",
        "|---|---:|---:|---:|",
    ]
    rows: Sequence[tuple[str, recorded_writes.Bill, int]] = (
        ("one comment, until its answer", made.posting, made.posts),
        ("one edit", made.editing, max(1, made.edits)),
        ("one vote", made.voting, made.votes),
        (
            "background work for one comment, its share of edits, and one vote",
            made.later,
            made.posts,
        ),
        ("both cron calls with nothing to do", made.idle, 1),
    )
    lines += [
        f"| {name} | {bill.reads / n:.1f} / {(bill.reads + bill.empty) / n:.1f} "
        f"| {bill.writes / n:.1f} | {bill.deletes / n:.1f} |"
        for name, bill, n in rows
    ]
    return lines


def _price(found: Operations, prices: Prices, reads: float) -> str:
    return f"${found.dollars(prices, reads):,.2f}"


def drawn(page: Read, made: recorded_writes.Recording, prices: Prices) -> Iterator[tuple[str, str]]:
    """Yield the plot by file name."""
    months = [
        Month(int(10**power), processes=4 if power > 7 else 1)
        for power in (4, 4.5, 5, 5.5, 6, 6.5, 7, 7.5, 8)
    ]
    lines: dict[str, list[tuple[float, float]]] = {}
    for month in months:
        ours, naive = operations(month, page, made), ordered_query(month, page, made)
        for line, found, reads in (
            ("Flatthread, lenient", ours, ours.lenient),
            ("Flatthread, strict", ours, ours.strict),
            ("Flatthread, strict, freshness 60 s", ours, ours.fresh),
            ("one ordered query per page", naive, naive.strict),
        ):
            point = (float(month.views), found.dollars(prices, reads))
            lines.setdefault(line, []).append(point)
    panel = plots.Panel("US dollars a month", lines, across="page views a month")
    yield (
        "costs.svg",
        plots.draw("What a month costs in Datastore", "both axes logarithmic", [panel]),
    )
