"""Read the numbers of declared counters for reports, and estimate what a counter will cost.

Each page is one scan of a counter's numbers in the order of their keys: category, day, thread,
author. Each category precedes its subcategories. A page reads at most as many numbers as it may
have lines. A page has fewer lines if the counter also counts by category and some days are left
out, because the days are ordered within each category.
"""

from collections.abc import Iterator
from datetime import date, timedelta

import msgspec

from comments import errors
from comments.domain import categories, records
from comments.domain.counters import declared_counters
from comments.domain.counters.declared_counters import CounterKey, Declaration, DeclaredCounter
from comments.store import reads
from comments.store.models import comment_rows
from comments.tree.counters import statistics, totals

_LAST = "\U0010ffff"


class CountLine(msgspec.Struct, frozen=True):
    """One number of a declared counter. Keys by which the counter does not count are empty."""

    category: str
    day: date | None
    thread: str
    author: str
    number: int


class CounterCost(msgspec.Struct, frozen=True):
    """The costs of a declared counter.

    `writes` is the largest number of additional reads and writes when a change to a comment changes
    the counter. This number doubles if the change moves the comment to other categories. `rows` is
    an upper bound for the stored numbers of the existing comments. `backfill` is the number of
    reads for counting these comments, in addition to the reads and writes of the numbers.
    """

    writes: int
    rows: int
    backfill: int


class CountFilter(msgspec.Struct, frozen=True):
    """The part of a counter's numbers to read: a category with its subcategories, and days."""

    under: str = ""
    since: date | None = None
    until: date | None = None

    def check(self, declaration: Declaration) -> "CountFilter":
        """Return the filter with the canonical name of the category.

        Raises:
            errors.BadInput: the filter is not valid, or the counter does not count by the filter's
            keys.
        """
        if self.under and CounterKey.CATEGORY not in declaration.by:
            raise errors.BadInput("under", "not-counted-by", value="category")
        for name in ("since", "until"):
            if getattr(self, name) and CounterKey.DAY not in declaration.by:
                raise errors.BadInput(name, "not-counted-by", value="day")
        if self.since and self.until and self.since > self.until:
            raise errors.BadInput("since", "since-after-until")
        try:
            under = categories.canonical(self.under) if self.under else ""
        except errors.BadInput as error:
            raise error.about("under") from error
        return msgspec.structs.replace(self, under=under)

    def has(self, day: date | None) -> bool:
        """Return whether a day is in the filter's range."""
        if day is None:
            return True
        return (self.since or day) <= day <= (self.until or day)


EVERYTHING = CountFilter()


def lines(
    site: str,
    counter: DeclaredCounter,
    wanted: CountFilter = EVERYTHING,
    *,
    after: str = "",
    limit: int = statistics.MOST,
) -> statistics.ReportPage[CountLine]:
    """List a counter's numbers in the order of their keys.

    Raises:
        errors.BadInput: the filter or the limit is not valid.
    """
    if not 1 <= limit <= statistics.MOST:
        raise errors.BadInput("limit", "out-of-range", minimum=1, maximum=statistics.MOST)
    wanted = wanted.check(counter.declaration)
    numbers = _next_numbers(site, counter, wanted, after, limit)
    shown = [line for line in _lines(site, numbers) if wanted.has(line.day)]
    return statistics.ReportPage(tuple(shown), numbers[-1][0] if len(numbers) == limit else None)


def _next_numbers(
    site: str, counter: DeclaredCounter, wanted: CountFilter, after: str, limit: int
) -> list[tuple[str, int]]:
    """Return the next numbers, and their names without the generation."""
    before = f"{site}/{counter.generation}/"
    low, high = _range(counter, wanted)
    start = (">", after) if after >= low else (">=", low)
    where = (("__key__", start[0], before + start[1]), ("__key__", "<", before + high))
    query = reads.Query("DeclaredCount", where=where, order=("__key__",), limit=limit)
    return [
        (message.key.path[-1].name[len(before) :], message.properties["amount"].integer_value)
        for message in reads.fetch(query)
    ]


def _range(counter: DeclaredCounter, wanted: CountFilter) -> tuple[str, str]:
    """Return the range of names of the wanted numbers; the second bound is excluded."""
    if wanted.under:
        return declared_counters.subtree(wanted.under)
    if CounterKey.CATEGORY in counter.declaration.by:
        return "", _LAST
    low = declared_counters.first_day(wanted.since) if wanted.since else ""
    if wanted.until is None or wanted.until == date.max:
        return low, _LAST
    return low, declared_counters.first_day(wanted.until + timedelta(days=1))


def _lines(site: str, numbers: list[tuple[str, int]]) -> Iterator[CountLine]:
    places = [declared_counters.place_of(f"/{name}") for name, _ in numbers]
    threads = _threads(site, {place.thread for place in places})
    for place, (_, number) in zip(places, numbers, strict=True):
        day = date.fromisoformat(place.day) if place.day else None
        thread = threads.get(place.thread, place.thread[1:])
        yield CountLine(place.category, day, thread, place.author, number)


def _threads(site: str, names: set[str]) -> dict[str, str]:
    """Return the current ids of threads whose key names do not tell them.

    These are all threads of a site whose threads have moved, and otherwise the threads whose key
    names contain a digest of the id.
    """
    wanted = sorted(names - {""})
    about = reads.get(comment_rows.site_key(site)) if wanted else None
    if about is None or not about.moves:
        wanted = [name for name in wanted if name.startswith("#")]
    rows = reads.get_multi([comment_rows.thread_key_of(f"{site}{name}") for name in wanted])
    return {
        name: row.alias or row.thread
        for name, row in zip(wanted, rows, strict=True)
        if row is not None
    }


def cost(site: str, declaration: Declaration) -> CounterCost:
    """Estimate a counter's cost on a website from other counters, without a scan."""
    numbers = totals.of_site(site)
    comments = sum(numbers.get(status, 0) for status in records.Status)
    per_comment = declared_counters.rows_per_comment(declaration)
    rows = 1
    for key in declaration.by:
        rows *= reads.count(_of_key(site, key))
    return CounterCost(per_comment, min(rows, comments * per_comment), comments)


def _of_key(site: str, key: CounterKey) -> reads.Query:
    """Return the query for a website's rows that exist once for each value of a key."""
    if key is CounterKey.THREAD:
        return reads.Query("Thread", where=(("site", "=", site),))
    if key is CounterKey.AUTHOR:
        return reads.Query("Standing", where=(("site", "=", site),))
    low = f"{site}//" if key is CounterKey.DAY else f"{site}/"
    kind = "Day" if key is CounterKey.DAY else "Category"
    return reads.Query(kind, where=(("__key__", ">=", low), ("__key__", "<", f"{low[:-1]}0")))
