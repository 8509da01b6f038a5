"""Read the counters that readers get: numbers by name.

This module owns the addition of shards. Reading many threads takes one lookup, with one entity for
each thread that is not spread over shards.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from comments.domain import records
from comments.domain.counters import counting
from comments.store import reads, transactions
from comments.store.memory import commit_counts
from comments.store.models import comment_rows, counter_rows
from comments.tree.counters import thread_counts

FEW = 2  # Up to this many threads are read from their own counters, which takes no more reads.


def of_threads(names: Sequence[records.ThreadName]) -> list[counter_rows.Numbers]:
    """Return threads' numbers.

    One lookup reads one entity for each thread. Threads that are spread over shards are read again.
    """
    firsts = [
        counter_rows.thread_counter_name(comment_rows.thread_key_name(name), 0) for name in names
    ]
    rows = {
        message.key.path[-1].name: message.properties
        for message in reads.lookup("Counter", list(dict.fromkeys(firsts)))
    }
    numbers = {key: counter_rows.decode(row["numbers"].string_value) for key, row in rows.items()}
    busy = [
        name
        for name, key in dict(zip(names, firsts, strict=True)).items()
        if key in rows and rows[key]["shards"].integer_value > 1
    ]
    if busy:
        # Use one snapshot, because shards that are merged between two reads would otherwise count
        # twice or not at all.
        numbers |= transactions.at_one_moment(lambda: _spread_numbers(busy))
    return [numbers.get(key, {}) for key in firsts]


def _spread_numbers(names: Sequence[records.ThreadName]) -> dict[str, counter_rows.Numbers]:
    firsts = reads.get_multi([counter_rows.thread_counter_key(name, 0) for name in names])
    keys = [
        [counter_rows.thread_counter_key(name, shard) for shard in range(1, first.shards)]
        for name, first in zip(names, firsts, strict=True)
    ]
    rows = iter(reads.get_multi([key for some in keys for key in some]))
    return {
        first.key.id(): sum_shards([first, *(next(rows) for _ in some)])
        for first, some in zip(firsts, keys, strict=True)
    }


def listed_counts(site: str, thread_ids: Sequence[str]) -> list[int]:
    """Return the number of comments that readers see in each thread.

    The numbers come from a few rows for many threads (`thread_counts`), which deliveries update
    soon after a change. Threads that this process has just changed are read from their own
    counters, so that authors see their own comments counted. If there are only a few threads, all
    of them are read from their own counters.
    """
    names = [records.ThreadName(site, thread_id) for thread_id in thread_ids]
    keys = [comment_rows.thread_key_name(name) for name in names]
    known = thread_counts.of_threads(site, keys) if len(set(keys)) > FEW else None
    if known is None:
        return [thread_numbers.get(counting.LISTED, 0) for thread_numbers in of_threads(names)]
    recent = [
        place
        for place, key in enumerate(keys)
        if commit_counts.is_recent(key, within=thread_counts.BEHIND)
    ]
    numbers = of_threads([names[place] for place in recent]) if recent else []
    counts = [known[key] for key in keys]
    for place, exact in zip(recent, numbers, strict=True):
        counts[place] = exact.get(counting.LISTED, 0)
    return counts


class ThreadTotals(NamedTuple):
    """The numbers of several threads: their listed comments and their followers."""

    listed: list[int]
    followers: list[int]


def with_followers(site: str, thread_ids: Sequence[str]) -> ThreadTotals:
    """Return each thread's numbers of listed comments and of followers, from its own counters."""
    numbers = of_threads([records.ThreadName(site, thread_id) for thread_id in thread_ids])
    return ThreadTotals(
        [thread_numbers.get(counting.LISTED, 0) for thread_numbers in numbers],
        [thread_numbers.get(counting.FOLLOWERS, 0) for thread_numbers in numbers],
    )


def of_site(site: str) -> counter_rows.Numbers:
    """Return the numbers of a website, including all delivered events."""
    return counter_rows.numbers_of(reads.get(counter_rows.site_counter_key(site)))


class AuthorTotals(NamedTuple):
    """An author on a website. `comment` is one of their comments or ""; `alias` replaces the id."""

    author: str
    alias: str
    comment: str
    score: int
    numbers: counter_rows.Numbers


def best_authors(
    site: str, limit: int, *, after: tuple[int, str] | None = None
) -> list[AuthorTotals]:
    """Return a website's authors with the highest scores, using one query (two with `after`).

    `after` contains the score and the alias of the last known author. Authors without an approved
    comment are left out.
    """
    here = (("site", "=", site), ("takes_part", "=", True))
    if after is None:
        return _standings(here, limit)
    score, alias = after
    ties = _standings((*here, ("score", "=", score), ("alias", ">", alias)), limit)
    if len(ties) == limit:
        return ties
    return [*ties, *_standings((*here, ("score", "<", score)), limit - len(ties))]


def _standings(where: Sequence[tuple[str, str, object]], limit: int) -> list[AuthorTotals]:
    query = reads.Query("Standing", where=where, order=("-score", "alias"), limit=limit)
    return [
        AuthorTotals(
            message.key.path[-1].name.partition("/")[2],
            message.properties["alias"].string_value,
            message.properties["comment"].string_value,
            message.properties["score"].integer_value,
            counter_rows.decode(message.properties["numbers"].string_value),
        )
        for message in reads.fetch(query)
    ]


def stored_numbers(name: records.ThreadName) -> tuple[int, counter_rows.Numbers, tuple[int, int]]:
    """Read a thread's numbers for a recount.

    Return the number of corrections, the sums over the shards that writers use, and the shard
    counts stored in the first shard and in the thread's row.
    """
    thread = reads.get(comment_rows.thread_key(name))
    count = 1 if thread is None else thread.shards or 1
    rows = reads.get_multi([counter_rows.thread_counter_key(name, shard) for shard in range(count)])
    mended, shards = (0, 1) if rows[0] is None else (rows[0].mended, rows[0].shards)
    return mended, sum_shards(rows), (shards, count)


def sum_shards(rows: Iterable[counter_rows.CounterRow | None]) -> counter_rows.Numbers:
    """Add up the numbers of a scope's shards."""
    numbers: counter_rows.Numbers = {}
    for row in rows:
        numbers = counting.sums(numbers, counter_rows.numbers_of(row))
    return numbers
