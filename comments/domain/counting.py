"""Counters that do not drift: what a change adds to each counter (pure).

This module owns the only formula for counting and the registry of counters. Each counter has a
`key`, which says where a state is counted, and a `value`, the amount that is counted there. A
change removes one state and adds another:

    increments = value(new) at key(new) - value(old) at key(old), sums of zero dropped

A creation has no old state, and a purge has no new state. Approvals, retractions, moves and changes
of author or votes all use the same sum.

A scope is a thread, a website, one of the website's categories, a day on a website or in a
category, or an author within any of these. The names of scopes and counters are stored, so they
must never change. A comment counts in each category of its thread: the registry contains one
counter for each possible position in the thread's list of categories. A comment counts on the day
of its creation, in UTC.

The number of participants is derived from counters (`PRESENCE`). An author participates in a scope
while the author has an approved comment there. The number of participants therefore changes when an
author's number of approved comments leaves 0 or returns to 0.

Invariants:

1. `increments` depends only on the two states, so every sequence of changes to a state gives the
   same counters.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

from comments.domain import categories
from comments.domain.records import Status

S = TypeVar("S")

PARTICIPANTS = "participants"
FOLLOWERS = "followers"
LISTED = "listed"
APPROVED = Status.APPROVED.value


class Scope(NamedTuple):
    """The place where something is counted. `place` is a site id or a thread's key name.

    `day` has the form "2026-01-31"; without a `category`, it is a day of the whole site.
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


class Counter(NamedTuple, Generic[S]):
    """A counter, defined by the key and the value of each state.

    A state with a `key` of None is not counted.
    """

    key: Callable[[S], Key | None]
    value: Callable[[S], int]


class CountedState(NamedTuple):
    """The fields of a comment that counters need. `thread` is a key name; `author` may be empty.

    Events from an earlier release have no `day`.
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


class Presence(NamedTuple):
    """The number of an author's approved comments in a scope."""

    scope: Scope
    comments: int


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


def day_scope(site: str, day: str, category: str = "", author: str = "") -> Scope:
    """Return the scope of a day on a website or in a category, or of an author on that day."""
    return Scope("day", site, author, category, day)


def above(scope: Scope) -> Scope:
    """Return the scope in which this scope's author is a participant."""
    if scope.kind == "participation":
        return thread_scope(scope.place)
    return site_scope(scope.place) if scope.kind == "author" else scope._replace(author="")


def _of_thread(state: CountedState) -> Scope | None:
    return thread_scope(state.thread)


def _of_site(state: CountedState) -> Scope | None:
    return site_scope(state.site)


def _of_author(state: CountedState) -> Scope | None:
    return author_scope(state.site, state.author) if state.author else None


def _of_participation(state: CountedState) -> Scope | None:
    return participation_scope(state.thread, state.author) if state.author else None


def _is_approved(state: CountedState) -> bool:
    return state.status == APPROVED


def _of_comments(scope: Callable[[CountedState], Scope | None]) -> Sequence[Counter[CountedState]]:
    """Return the counters of comments in one scope.

    These counters count comments by status, and votes on approved comments.
    """

    def named(name: Callable[[CountedState], str]) -> Callable[[CountedState], Key | None]:
        def key(state: CountedState) -> Key | None:
            where = scope(state)
            return None if where is None else Key(where, name(state))

        return key

    return (
        Counter(named(lambda state: state.status), lambda _: 1),
        Counter(named(lambda _: "up"), lambda state: state.up * _is_approved(state)),
        Counter(named(lambda _: "down"), lambda state: state.down * _is_approved(state)),
        Counter(
            named(lambda _: "score"), lambda state: (state.up - state.down) * _is_approved(state)
        ),
    )


def _of_statistics(
    scope: Callable[[CountedState], Scope | None],
) -> Sequence[Counter[CountedState]]:
    """Return the counters of a statistics scope.

    These counters count all comments by status, and approved comments by author.
    """

    def by_status(state: CountedState) -> Key | None:
        where = scope(state)
        return None if where is None else Key(where, state.status)

    def of_author(state: CountedState) -> Key | None:
        where = scope(state)
        if where is None or not state.author:
            return None
        return Key(where._replace(author=state.author), APPROVED)

    return (
        Counter(by_status, lambda _: 1),
        Counter(of_author, lambda state: int(_is_approved(state))),
    )


def _of_day(state: CountedState) -> Scope | None:
    return day_scope(state.site, state.day) if state.day else None


def _of_category(place: int) -> Sequence[Counter[CountedState]]:
    """Return the counters of the category at one position in a thread's list of categories."""

    def ever(state: CountedState) -> Scope | None:
        if place >= len(state.categories):
            return None
        return category_scope(state.site, state.categories[place])

    def on_its_day(state: CountedState) -> Scope | None:
        if place >= len(state.categories) or not state.day:
            return None
        return day_scope(state.site, state.day, state.categories[place])

    return (*_of_statistics(ever), *_of_statistics(on_its_day))


# Counters that are updated in the transaction of a change: those of the thread, and of the author's
# row in the thread.
IN_THREAD: Sequence[Counter[CountedState]] = (
    *_of_comments(_of_thread),
    *_of_comments(_of_participation),
    Counter(lambda state: Key(thread_scope(state.thread), LISTED), lambda state: int(state.listed)),
)
# Counters that are updated from the event of a change, because changes in many threads contend for
# their rows.
STATISTICS: Sequence[Counter[CountedState]] = (
    *_of_statistics(_of_day),
    *(each for place in range(categories.MOST) for each in _of_category(place)),
)
FROM_EVENTS: Sequence[Counter[CountedState]] = (
    *_of_comments(_of_site),
    *_of_comments(_of_author),
    *STATISTICS,
)
FOLLOWING: Sequence[Counter[Following]] = (
    Counter(lambda state: Key(thread_scope(state.thread), FOLLOWERS), lambda _: 1),
)
PRESENCE: Sequence[Counter[Presence]] = (
    Counter(lambda state: Key(state.scope, PARTICIPANTS), lambda state: int(state.comments > 0)),
)


def increments(registry: Iterable[Counter[S]], old: S | None, new: S | None) -> dict[Key, int]:
    """Return the nonzero amounts that a change of state adds to counters."""
    sums: dict[Key, int] = {}
    for counter in registry:
        for state, sign in ((old, -1), (new, 1)):
            key = None if state is None else counter.key(state)
            if state is not None and key is not None:
                sums[key] = sums.get(key, 0) + sign * counter.value(state)
    return _without_zeros(sums)


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


def added(numbers: Mapping[str, int], more: Mapping[str, int]) -> dict[str, int]:
    """Add an increment to a scope's numbers and drop zeros."""
    names = sorted({*numbers, *more})
    sums = {name: numbers.get(name, 0) + more.get(name, 0) for name in names}
    return {name: number for name, number in sums.items() if number}


def rows(changes: Iterable[CountedChange]) -> set[Scope]:
    """Return the scopes whose rows may be written when these changes are counted from events."""
    scopes = {key.scope for change in changes for key in increments(FROM_EVENTS, *change)}
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


def presence(scope: Scope, old: Mapping[str, int], new: Mapping[str, int]) -> dict[Key, int]:
    """Return the change in a scope's number of participants when one author's numbers change."""
    before, after = (Presence(scope, numbers.get(APPROVED, 0)) for numbers in (old, new))
    return increments(PRESENCE, before, after)


def _without_zeros(sums: Mapping[Key, int]) -> dict[Key, int]:
    return {key: number for key, number in sums.items() if number}
