"""Counters that do not drift: what a change adds to every counter (pure).

Owns the only formula for counting and the registry of counters. A counter has a `key`, the place
where a state is counted, and a `value`, the amount it counts there. A change removes a state and
adds another:

    increments = value(new) at key(new) - value(old) at key(old), sums of zero dropped

A creation has no old state, and a purge has no new one; approval, retraction, a move and a change
of author or votes all use the same sum.

Counting happens in scopes: a thread, a website, one of its categories, a day on it or in a
category; and an author in each of them. The names of scopes and numbers are stored, so they must
never change. A comment counts in each category of its thread: the registry holds one counter for
each position that a category may have among them. Its day is the day of its creation, in UTC.

The number of participants is derived from counters: an author takes part in a scope while they have
an approved comment there, so that number changes when the author's number of approved comments
leaves or returns to 0 (`PRESENCE`).

Invariants:

1. `increments` depends only on the two states, so every path to a state gives the same counters.
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
    """Where something is counted. `place` is a site's id, or the key name of a thread.

    A `day` is "2026-01-31"; without a `category` it is a day of the whole site.
    """

    kind: str
    place: str
    author: str = ""
    category: str = ""
    day: str = ""


class Key(NamedTuple):
    """One counter: its scope and its name there."""

    scope: Scope
    name: str


class Counter(NamedTuple, Generic[S]):
    """A counter, defined by what it counts. States with a `key` of None are not counted."""

    key: Callable[[S], Key | None]
    value: Callable[[S], int]


class CountedState(NamedTuple):
    """The part of a comment that counters need. `thread` is a key name; `author` may be empty.

    Events of an earlier version have no `day`.
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
    """The part of a thread's follower that counters need."""

    thread: str


class CountedChange(NamedTuple):
    """A comment before and after; None where there was or is no comment."""

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
    """Return the scope of a category of a website, or of an author in it."""
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
    """Return the counters of comments in one scope: by status, and the votes on approved ones."""

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
    """Return the counters of a statistics scope: comments by status, and approved by author."""

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
    """Return the counters of the category at a position among those of a thread."""

    def ever(state: CountedState) -> Scope | None:
        if place >= len(state.categories):
            return None
        return category_scope(state.site, state.categories[place])

    def on_its_day(state: CountedState) -> Scope | None:
        if place >= len(state.categories) or not state.day:
            return None
        return day_scope(state.site, state.day, state.categories[place])

    return (*_of_statistics(ever), *_of_statistics(on_its_day))


# Counted in the transaction of the change: the thread, and the author's row in it.
IN_THREAD: Sequence[Counter[CountedState]] = (
    *_of_comments(_of_thread),
    *_of_comments(_of_participation),
    Counter(lambda state: Key(thread_scope(state.thread), LISTED), lambda state: int(state.listed)),
)
# Counted from the event of the change: rows for which changes of many threads contend.
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
    """Return the amounts that a change of state adds to each counter, without zeros."""
    sums: dict[Key, int] = {}
    for counter in registry:
        for state, sign in ((old, -1), (new, 1)):
            key = None if state is None else counter.key(state)
            if state is not None and key is not None:
                sums[key] = sums.get(key, 0) + sign * counter.value(state)
    return _without_zeros(sums)


def total(parts: Iterable[Mapping[Key, int]]) -> dict[Key, int]:
    """Sum several increments, without zeros."""
    sums: dict[Key, int] = {}
    for part in parts:
        for key, number in part.items():
            sums[key] = sums.get(key, 0) + number
    return _without_zeros(sums)


def by_scope(sums: Mapping[Key, int]) -> dict[Scope, dict[str, int]]:
    """Group increments, or counters, by scope: names to numbers for each."""
    scopes: dict[Scope, dict[str, int]] = {}
    for key, number in sums.items():
        scopes.setdefault(key.scope, {})[key.name] = number
    return scopes


def added(numbers: Mapping[str, int], more: Mapping[str, int]) -> dict[str, int]:
    """Add an increment to the numbers of a scope, and drop zeros."""
    names = sorted({*numbers, *more})
    sums = {name: numbers.get(name, 0) + more.get(name, 0) for name in names}
    return {name: number for name, number in sums.items() if number}


def rows(changes: Iterable[CountedChange]) -> set[Scope]:
    """Return the scopes whose rows may be written when these changes are counted from events."""
    scopes = {key.scope for change in changes for key in increments(FROM_EVENTS, *change)}
    return scopes | {above(scope) for scope in scopes if scope.author}


def parts(changes: Sequence[CountedChange], most: int) -> Iterator[slice]:
    """Yield slices of changes, so that counting each slice writes at most `most` rows.

    A change that writes more rows is a slice of its own. A slice begins with a change that is
    counted.
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
    """Return the change in a scope's number of participants when an author's numbers change."""
    before, after = (Presence(scope, numbers.get(APPROVED, 0)) for numbers in (old, new))
    return increments(PRESENCE, before, after)


def _without_zeros(sums: Mapping[Key, int]) -> dict[Key, int]:
    return {key: number for key, number in sums.items() if number}
