"""Store the comment counts of many threads in few rows, for pages that list threads.

A thread's own counter is exact at any moment, but reading the counters of fifty threads takes fifty
reads. These rows contain the same numbers for all threads of a website, by the digest of the
thread:

    Counter "site/{site}#0"       group 0, together with the website's own numbers
    Counter "threads/{site}#n"    groups 1 to 7
            `listings`: {"groups": 4, "is_complete": true, "numbers": {digest: listed comments}}

The digest determines the thread's group. A website begins with one group. When a row has more than
`MOST` threads, the number of groups doubles. A website with more than `MOST_GROUPS` full groups has
no such rows, and `groups` is 0.

Group 0 is in a row that each delivery reads and writes anyway. For up to `MOST` threads, a delivery
therefore needs no additional read or write for the counts, and a reader needs one read.

The numbers are changed only by deliveries of events, in the transaction that marks the events as
done, and by recounts, which add differences (`counter_repair`). The numbers therefore equal the
threads' own counters minus the changes in undelivered events. Once the rows are complete, threads
without a number have no listed comments. Until then, the rows contain only changes, and readers do
not use them.

All groups of a website store the same number of groups, because one commit writes all rows when
this number changes. A reader that finds different numbers reads again. If a row is lost, for
example because an older release writes group 0 without `listings`, the rows become incomplete. The
next delivery completes them (`upkeep/migrations/thread_count_rows`).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from comments.domain import decoders
from comments.domain.counters import counting
from comments.store import ownership, reads
from comments.store.memory import caches, per_process
from comments.store.models import counter_rows

# Maximum number of threads in a row, which then has about 30 kB. Two rows are enough for 2,000
# threads, and eight for 10,000.
MOST = 1400
MOST_GROUPS = 8
BEHIND = 10.0  # Seconds for which changes by other processes may be missing in normal operation.
_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
_TRIES = 3
# The number of groups of a website, or 0 if the website's rows cannot be used.
_GROUPS = per_process.PerProcess(lambda: caches.Cache[str, int](10_000, seconds=60.0))
# Websites whose rows a delivery found incomplete.
_INCOMPLETE = per_process.PerProcess(set[str])


class Listings(msgspec.Struct, omit_defaults=True):
    """The comment counts in one row."""

    groups: int = 1
    is_complete: bool = False
    numbers: dict[str, int] = {}


def decode(text: str) -> Listings:
    return decoders.json(Listings).decode(text) if text else Listings()


def group_of(digest: str, groups: int) -> int:
    """Return the group of a thread."""
    return _ALPHABET.index(digest[0]) % groups


def of_threads(site: str, threads: Sequence[str]) -> dict[str, int] | None:
    """Return the number of listed comments for each thread, given the threads' key names.

    Return None if the website's rows are not complete or if the website has too many threads.
    """
    known = _GROUPS.get()
    digests = {thread: counting.thread_digest(thread) for thread in threads}
    groups = known.get(site)
    if groups == 0:
        return None
    groups = groups or 1
    rows: dict[int, Listings] = {}
    for _ in range(_TRIES):
        wanted = {0, *(group_of(digest, groups) for digest in digests.values())}
        rows |= _read_rows(site, wanted - rows.keys())
        if 0 not in rows or not (rows[0].is_complete and rows[0].groups):
            known.keep(site, 0)
            return None
        if wanted <= rows.keys() and all(rows[group].groups == groups for group in wanted):
            known.keep(site, groups)
            return {
                thread: rows[group_of(digest, groups)].numbers.get(digest, 0)
                for thread, digest in digests.items()
            }
        groups = rows[0].groups
        rows = {group: row for group, row in rows.items() if row.groups == groups}
    return None


def _read_rows(site: str, groups: Iterable[int]) -> dict[int, Listings]:
    names = {counter_rows.listings_name(site, group): group for group in groups}
    return {
        names[message.key.path[-1].name]: decode(message.properties["listings"].string_value)
        for message in reads.lookup("Counter", list(names))
    }


def stored_numbers(site: str, first: counter_rows.CounterRow | None) -> counter_rows.Numbers:
    """Return all numbers in a website's rows for a recount, given the row of group 0."""
    groups = _of(first).groups
    rows = {0: first, **_others(site, range(1, groups))}
    return _union(_listings(rows, groups))


def addition_writes(
    site: str, first: counter_rows.CounterRow, more: Mapping[str, int]
) -> ownership.Writes:
    """Add to the numbers of a website's threads, in the current transaction.

    Set the new numbers of group 0 in `first`, which the caller writes, and return the writes of the
    other rows.
    """
    groups = _of(first).groups
    if not groups:
        return ownership.Writes(counter_rows.OWNER)
    touched = {group_of(digest, groups) for digest in more} - {0}
    rows = {0: first, **_others(site, sorted(touched))}
    listings = _listings(rows, groups)
    for digest, number in more.items():
        numbers = listings[group_of(digest, groups)].numbers
        numbers |= counting.sums({digest: numbers.pop(digest, 0)}, {digest: number})
    gone: list[Any] = []
    if any(len(listing.numbers) > MOST for listing in listings.values()):
        others = [group for group in range(1, groups) if group not in rows]
        rows |= _others(site, others)
        listings = _divide(_listings(rows, groups) | listings, groups)
        gone = [counter_rows.listings_key(site, group) for group in rows if group not in listings]
    # If a row was lost, a recount has to add the missing numbers.
    is_whole = _is_whole(rows, groups)
    listings[0].is_complete = is_whole and _of(first).is_complete
    if not listings[0].is_complete:
        _INCOMPLETE.get().add(site)
    for group, listing in listings.items():
        row = rows.get(group) or counter_rows.listings_row(site, group)
        row.listings = msgspec.json.encode(listing, order="deterministic").decode()
        rows[group] = row
    put = tuple(rows[group] for group in listings if group)
    return ownership.Writes(counter_rows.OWNER, put=put, delete=tuple(gone))


def _listings(rows: Mapping[int, Any], groups: int) -> dict[int, Listings]:
    """Decode rows. A lost row has no numbers, nor does a row from before group 0 was lost."""
    known = {group: _of(row) for group, row in rows.items()}
    return {
        group: listing if listing.groups == groups else Listings(groups)
        for group, listing in known.items()
    }


def _is_whole(rows: Mapping[int, Any], groups: int) -> bool:
    others = [row for group, row in rows.items() if 0 < group < groups]
    return all(row is not None and _of(row).groups == groups for row in others)


def _divide(known: Mapping[int, Listings], groups: int) -> dict[int, Listings]:
    """Distribute the numbers of all groups among more groups, or close the rows."""
    numbers = _union(known)
    while (groups := 2 * groups) <= MOST_GROUPS:
        made = {group: Listings(groups) for group in range(groups)}
        for digest, number in numbers.items():
            made[group_of(digest, groups)].numbers[digest] = number
        if all(len(listing.numbers) <= MOST for listing in made.values()):
            return made
    return {0: Listings(0)}


def _union(listings: Mapping[int, Listings]) -> counter_rows.Numbers:
    return {
        digest: number
        for listing in listings.values()
        for digest, number in listing.numbers.items()
    }


def mark_complete(first: counter_rows.CounterRow) -> None:
    """Record in the row of group 0 that the rows contain all threads of a website."""
    held = _of(first)
    held.is_complete = True
    first.listings = msgspec.json.encode(held, order="deterministic").decode()


def close(first: counter_rows.CounterRow) -> None:
    """Record in the row of group 0 that a website has too many threads for these rows."""
    first.listings = msgspec.json.encode(Listings(0, is_complete=True)).decode()


def is_open(first: counter_rows.CounterRow | None) -> bool:
    """Return whether readers use the rows of a website, given the row of group 0."""
    held = _of(first)
    return held.is_complete and held.groups > 0


def is_complete(first: counter_rows.CounterRow | None) -> bool:
    """Return whether the rows of a website are complete, or closed."""
    return _of(first).is_complete


def take_incomplete() -> list[str]:
    """Return the websites whose rows a delivery found incomplete, and forget them."""
    noted = _INCOMPLETE.get()
    return [noted.pop() for _ in range(len(noted))]


def _of(row: counter_rows.CounterRow | None) -> Listings:
    return Listings() if row is None else decode(row.listings)


def _others(site: str, groups: Iterable[int]) -> dict[int, Any]:
    keys = {group: counter_rows.listings_key(site, group) for group in groups}
    return dict(zip(keys, reads.get_multi(list(keys.values())), strict=True)) if keys else {}
