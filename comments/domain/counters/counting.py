"""Counters that do not drift: what a change adds to each counter (pure).

This module owns the only formula for counting and the registry of counters. Each entry of the
registry says what a state counts: amounts by key. A change removes one state and adds another:

    increments = amounts(new) - amounts(old), sums of zero dropped

A creation has no old state, and a purge has no new state. Approvals, retractions, moves and changes
of author or votes all use the same sum.

A scope is a thread, a website, one of the website's categories, a day on a website or in a
category, or an author within any of these. Another scope of a website contains the number of listed
comments of each of its threads (`listings_scope`), and a group of pages in a month contains the
number of approved comments by day for each page, author and hour (`month_scope`). The names of
scopes and counters are stored, so they must never change. A comment counts once in each category of
its thread, once in each category above these, and on the day (UTC) of its creation.

The number of participants is derived from counters (`presence`). An author participates in a scope
while the author has an approved comment there. The number of participants therefore changes when an
author's number of approved comments leaves 0 or returns to 0.

Invariant: `increments` depends only on the two states, so every sequence of changes to a state
gives the same counters (test_counting.py::test_increments_telescope_over_any_sequence_of_changes).
"""

import base64
import functools
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, TypeVar

from comments.domain import categories
from comments.domain.records import Status

S = TypeVar("S")

PARTICIPANTS = "participants"
FOLLOWERS = "followers"
LISTED = "listed"
LISTINGS = "listings"
APPROVED = Status.APPROVED.value
MONTH = "month"
GROUPS = 64  # Stored in key names, so it must never change.
# The first character of the name of a month's number; two digits for the day follow, and then the
# page, the person or the hour.
PAGE = "t"
PERSON = "a"
HOUR = "h"


class Scope(NamedTuple):
    """The place where something is counted. `place` is a site id or a thread's key name.

    `day` has the form "2026-01-31"; without a `category`, it is a day of the whole site. For a
    group of pages in a month, `day` has the form "2026-01", and `category` is the group.
    """

    kind: str
    place: str
    author: str = ""
    category: str = ""
    day: str = ""


class Key(NamedTuple):
    """One counter: its scope and its name within the scope."""

    scope: Scope
    name: str


# What a state counts: amounts by counter. An amount may be 0.
Amounts = Sequence[tuple[Key, int]]
Registry = Sequence[Callable[[S], Amounts]]


class CountedState(NamedTuple):
    """The fields of a comment that counters need. `thread` is a key name; `author` may be empty.

    `reply` tells whether the comment answers a comment. `hour` is the hour of the day (UTC) of its
    creation, as two digits. Events from earlier releases have no `day`, no `reply` and no `hour`.
    """

    site: str
    thread: str
    author: str
    status: str
    listed: bool
    up: int = 0
    down: int = 0
    categories: tuple[str, ...] = ()
    day: str = ""
    reply: bool = False
    hour: str = ""


class Following(NamedTuple):
    """The fields of a thread's follower that counters need."""

    thread: str


class CountedChange(NamedTuple):
    """The old and new state of a comment, each None if the comment does not exist."""

    old: CountedState | None
    new: CountedState | None


def thread_scope(thread: str) -> Scope:
    return Scope("thread", thread)


def site_scope(site: str) -> Scope:
    return Scope("site", site)


def author_scope(site: str, author: str) -> Scope:
    return Scope("author", site, author)


def participation_scope(thread: str, author: str) -> Scope:
    return Scope("participation", thread, author)


def category_scope(site: str, category: str, author: str = "") -> Scope:
    """Return the scope of a website's category, or of an author in that category."""
    return Scope("category", site, author, category)


def listings_scope(site: str) -> Scope:
    """Return the scope with the number of listed comments of each thread of a website."""
    return Scope(LISTINGS, site)


def thread_digest(thread: str) -> str:
    """Return the name of a thread's counter among the website's threads, given its key name.

    Two threads of a website with the same digest (72 bits) would share a counter, which would then
    contain the sum of their numbers.
    """
    return base64.urlsafe_b64encode(hashlib.sha256(thread.encode()).digest()[:9]).decode()


def day_scope(site: str, day: str, category: str = "", author: str = "") -> Scope:
    """Return the scope of a day on a website or in a category, or of an author on that day."""
    return Scope("day", site, author, category, day)


def month_scope(site: str, thread: str, day: str) -> Scope:
    """Return the scope of a group of a website's pages in the month of a day.

    All comments of a thread are in one group. The groups divide a month's numbers among several
    rows, because a row has a maximum size.
    """
    group = hashlib.sha256(thread.encode()).digest()[0] % GROUPS
    return Scope(MONTH, site, category=f"{group:02}", day=day[:7])


def above(scope: Scope) -> Scope:
    """Return the scope in which this scope's author is a participant."""
    if scope.kind == "participation":
        return thread_scope(scope.place)
    return site_scope(scope.place) if scope.kind == "author" else scope._replace(author="")


def _of_comment(where: Scope, state: CountedState) -> Amounts:
    """Count a comment by status in one scope, and the votes on an approved comment."""
    if state.status != APPROVED or not (state.up or state.down):
        return ((Key(where, state.status), 1),)
    return (
        (Key(where, state.status), 1),
        (Key(where, "up"), state.up),
        (Key(where, "down"), state.down),
        (Key(where, "score"), state.up - state.down),
    )


def _of_statistics(where: Scope, state: CountedState) -> Amounts:
    """Count a comment by status in a statistics scope, and an approved comment by author."""
    if state.status != APPROVED or not state.author:
        return ((Key(where, state.status), 1),)
    author = Scope(where.kind, where.place, state.author, where.category, where.day)
    return ((Key(where, APPROVED), 1), (Key(author, APPROVED), 1))


def _of_thread(state: CountedState) -> Amounts:
    where = thread_scope(state.thread)
    return (*_of_comment(where, state), (Key(where, LISTED), int(state.listed)))


def _of_participation(state: CountedState) -> Amounts:
    if not state.author:
        return ()
    return _of_comment(participation_scope(state.thread, state.author), state)


def _of_site(state: CountedState) -> Amounts:
    return _of_comment(site_scope(state.site), state)


def _of_author(state: CountedState) -> Amounts:
    return _of_comment(author_scope(state.site, state.author), state) if state.author else ()


def _of_day(state: CountedState) -> Amounts:
    return _of_statistics(day_scope(state.site, state.day), state) if state.day else ()


def _of_votes(state: CountedState) -> Amounts:
    """Count the votes on an approved comment for the whole site, on the comment's day."""
    if state.status != APPROVED or not state.day:
        return ()
    where = day_scope(state.site, state.day)
    return ((Key(where, "up"), state.up), (Key(where, "down"), state.down))


def _of_month(state: CountedState) -> Amounts:
    """Count an approved comment for its page, its author and its hour, by the day of the month."""
    if state.status != APPROVED or not state.day:
        return ()
    names = [f"{PAGE}{state.day[8:]}{state.thread.removeprefix(state.site)}"]
    if state.author:
        names.append(f"{PERSON}{state.day[8:]}{state.author}")
    if state.hour:
        names.append(f"{HOUR}{state.day[8:]}{state.hour}")
    where = month_scope(state.site, state.thread, state.day)
    return [(Key(where, name), 1) for name in names]


def _of_categories(state: CountedState) -> Amounts:
    amounts: list[tuple[Key, int]] = []
    for category in categories.with_ancestors(state.categories[: categories.MOST]):
        amounts += _of_statistics(category_scope(state.site, category), state)
        if state.day:
            amounts += _of_statistics(day_scope(state.site, state.day, category), state)
    return amounts


def _of_listings(state: CountedState) -> Amounts:
    key = Key(listings_scope(state.site), thread_digest(state.thread))
    return ((key, int(state.listed)),)


def _of_follower(state: Following) -> Amounts:
    return ((Key(thread_scope(state.thread), FOLLOWERS), 1),)


# Counters that are updated in the transaction of a change: the counters of the thread, and those of
# the author's row in the thread.
IN_THREAD: Registry[CountedState] = (_of_thread, _of_participation)
# Counters that are updated from the event of a change, because changes in many threads contend for
# their rows.
OF_PERIODS: Registry[CountedState] = (_of_month, _of_votes)
STATISTICS: Registry[CountedState] = (_of_day, _of_categories, *OF_PERIODS)
OF_LISTINGS: Registry[CountedState] = (_of_listings,)
FROM_EVENTS: Registry[CountedState] = (_of_site, _of_author, *STATISTICS, *OF_LISTINGS)
FOLLOWING: Registry[Following] = (_of_follower,)


def increments(registry: Registry[S], old: S | None, new: S | None) -> dict[Key, int]:
    """Return the nonzero amounts that a change of state adds to counters."""
    sums: dict[Key, int] = {}
    for amounts in registry:
        if old is not None:
            for key, amount in amounts(old):
                sums[key] = sums.get(key, 0) - amount
        if new is not None:
            for key, amount in amounts(new):
                sums[key] = sums.get(key, 0) + amount
    return _without_zeros(sums)


@functools.lru_cache(256)  # A delivery uses each of its changes twice.
def of_event(change: CountedChange) -> Mapping[Key, int]:
    """Return the increments that are counted from the event of a change."""
    return MappingProxyType(increments(FROM_EVENTS, change.old, change.new))


def total(parts: Iterable[Mapping[Key, int]]) -> dict[Key, int]:
    """Sum several increments and drop zeros."""
    sums: dict[Key, int] = {}
    for part in parts:
        for key, number in part.items():
            sums[key] = sums.get(key, 0) + number
    return _without_zeros(sums)


def by_scope(sums: Mapping[Key, int]) -> dict[Scope, dict[str, int]]:
    """Group increments or counters by scope, each as a mapping from names to numbers."""
    scopes: dict[Scope, dict[str, int]] = {}
    for key, number in sums.items():
        scopes.setdefault(key.scope, {})[key.name] = number
    return scopes


def sums(numbers: Mapping[str, int], more: Mapping[str, int]) -> dict[str, int]:
    """Add an increment to a scope's numbers and drop zeros."""
    names = sorted({*numbers, *more})
    sums = {name: numbers.get(name, 0) + more.get(name, 0) for name in names}
    return {name: number for name, number in sums.items() if number}


def difference(numbers: Mapping[str, int], less: Mapping[str, int]) -> dict[str, int]:
    """Subtract an increment from a scope's numbers and drop zeros."""
    return sums(numbers, {name: -number for name, number in less.items()})


def rows(changes: Iterable[CountedChange]) -> set[Scope]:
    """Return the scopes whose rows may be written when these changes are counted from events."""
    scopes = {key.scope for change in changes for key in of_event(change)}
    return scopes | {above(scope) for scope in scopes if scope.author}


def parts(changes: Sequence[CountedChange], most: int) -> Iterator[slice]:
    """Yield slices of changes; counting one slice writes at most `most` rows.

    A change that writes more rows than that becomes a slice of its own. Every slice except the
    first begins with a change that writes rows.
    """
    start, seen = 0, set[Scope]()
    for place, change in enumerate(changes):
        more = rows([change])
        if seen and len(seen | more) > most:
            yield slice(start, place)
            start, seen = place, set()
        seen |= more
    yield slice(start, len(changes))


def presence(old: Mapping[str, int], new: Mapping[str, int]) -> dict[str, int]:
    """Return what a change of one author's numbers adds to the scope that contains the author."""
    return {PARTICIPANTS: (new.get(APPROVED, 0) > 0) - (old.get(APPROVED, 0) > 0)}


def _without_zeros(sums: Mapping[Key, int]) -> dict[Key, int]:
    return {key: number for key, number in sums.items() if number}
