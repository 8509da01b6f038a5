"""Compare the stored counters with sums over the comments: the tests' oracle for counters."""

from collections.abc import Iterator

from comments.domain import records
from comments.domain.counters import counting
from comments.domain.counters.counting import Scope
from comments.store import reads
from comments.store.models import conversion, counter_rows
from comments.tree.counters import totals
from tests.support import stored_state
from tests.support.histories import ledger

_OF_SITES = [
    each
    for each in counting.FROM_EVENTS
    if each not in {*counting.STATISTICS, *counting.OF_LISTINGS}
]


def states() -> Iterator[counting.CountedState]:
    """Yield the counted state of every stored comment, with its thread's categories."""
    filed = {
        message.key.path[-1].name: conversion.texts(message.properties["categories"])
        for message in reads.fetch(reads.Query("Thread"))
    }
    for message in reads.fetch(reads.Query("Comment")):
        row = conversion.comment_from_message(message)
        thread = message.properties["thread"].string_value
        yield counting.CountedState(
            site=row.site,
            thread=thread,
            author=row.author.id,
            status=row.status.value,
            listed=row.listed,
            up=row.up,
            down=row.down,
            categories=filed[thread],
            day=row.created.strftime("%Y-%m-%d"),
            reply=row.reply_to is not None,
            hour=row.created.strftime("%H"),
        )


def expected() -> dict[Scope, dict[str, int]]:
    """Return the expected counters of threads and their authors, summed from the comments."""
    sums = counting.by_scope(
        counting.total(counting.increments(counting.IN_THREAD, None, state) for state in states())
    )
    for scope in list(sums):
        if scope.kind == "participation" and sums[scope].get("approved"):
            thread = sums[counting.thread_scope(scope.place)]
            thread["participants"] = thread.get("participants", 0) + 1
    return sums


def stored() -> dict[Scope, dict[str, int]]:
    """Return the stored counters of threads and their authors."""
    found: dict[Scope, dict[str, int]] = {}
    for message in reads.fetch(reads.Query("Counter")):
        kind, _, place = message.properties["scope"].string_value.partition("/")
        if kind == "thread":
            scope = Scope(kind, place)
            numbers = _numbers(message)
            numbers.pop(counting.FOLLOWERS, None)  # Counted from events; see `assert_followers`
            found[scope] = counting.sums(found.get(scope, {}), numbers)
    for message in reads.fetch(reads.Query("Participation")):
        thread, author = message.key.path[0].name, message.key.path[1].name
        found[counting.participation_scope(thread, author)] = _numbers(message)
    return {scope: numbers for scope, numbers in found.items() if numbers}


def assert_counted() -> None:
    """Check that all counters of threads and their authors equal the sums over the comments."""
    assert stored() == expected()


def assert_followers() -> None:
    """Check that follower counts equal the rows of followers, and that no event is pending."""
    following: dict[str, int] = {}
    for message in reads.fetch(reads.Query("Subscription")):
        kind, _, thread = message.properties["list"].string_value.partition(":")
        if kind:
            following[thread] = following.get(thread, 0) + 1
    for message in reads.fetch(reads.Query("Follow", keys_only=True)):
        thread = message.key.path[-1].name
        following[thread] = following.get(thread, 0) + 1
    found: dict[str, int] = {}
    for message in reads.fetch(reads.Query("Counter")):
        kind, _, thread = message.properties["scope"].string_value.partition("/")
        if kind == "thread":
            found[thread] = found.get(thread, 0) + _numbers(message).get(counting.FOLLOWERS, 0)
    assert {thread: number for thread, number in found.items() if number} == following


def expected_later() -> dict[Scope, dict[str, int]]:
    """Return the expected counters of sites and their authors, summed from the comments."""
    sums = counting.by_scope(
        counting.total(counting.increments(_OF_SITES, None, state) for state in states())
    )
    for scope in list(sums):
        if scope.kind == "author" and sums[scope].get("approved"):
            site = sums[counting.site_scope(scope.place)]
            site["participants"] = site.get("participants", 0) + 1
    return sums


def stored_later() -> dict[Scope, dict[str, int]]:
    """Return the stored counters of sites and their authors."""
    found: dict[Scope, dict[str, int]] = {}
    for message in reads.fetch(reads.Query("Counter")):
        kind, _, place = message.properties["scope"].string_value.partition("/")
        if kind == "site":
            found[Scope(kind, place)] = _numbers(message)
    for message in reads.fetch(reads.Query("Standing")):
        site, _, author = message.key.path[0].name.partition("/")
        numbers = found[counting.author_scope(site, author)] = _numbers(message)
        assert message.properties["score"].integer_value == numbers.get("score", 0)
        takes_part = message.properties["takes_part"].boolean_value
        assert takes_part == (numbers.get("approved", 0) > 0)
    return {scope: numbers for scope, numbers in found.items() if numbers}


def expected_statistics() -> dict[Scope, dict[str, int]]:
    """Return the expected counters of categories, days and their authors, without the registry."""
    numbers: dict[Scope, dict[str, int]] = {}
    people: dict[Scope, set[str]] = {}
    for state in states():
        filed = ledger.filed_under(state.categories)
        days = [counting.day_scope(state.site, state.day, each) for each in ("", *filed)]
        ever = [counting.category_scope(state.site, each) for each in filed]
        for scope in (*days, *ever):
            here = numbers.setdefault(scope, {})
            here[state.status] = here.get(state.status, 0) + 1
            if state.author and state.status == "approved":
                people.setdefault(scope, set()).add(state.author)
                by_author = numbers.setdefault(scope._replace(author=state.author), {})
                by_author["approved"] = by_author.get("approved", 0) + 1
        if state.status == "approved":
            here = numbers[counting.day_scope(state.site, state.day)]
            here |= counting.sums(here, {"up": state.up, "down": state.down})
            month = numbers.setdefault(
                counting.month_scope(state.site, state.thread, state.day), {}
            )
            day, page = state.day[-2:], state.thread[len(state.site) :]
            for name in (
                f"h{day}{state.hour}",
                f"t{day}{page}",
                *([f"a{day}{state.author}"] if state.author else []),
            ):
                month[name] = month.get(name, 0) + 1
    for scope, authors in people.items():
        numbers[scope]["participants"] = len(authors)
    return numbers


def stored_statistics() -> dict[Scope, dict[str, int]]:
    """Return the stored counters of categories, days and their authors."""
    found: dict[Scope, dict[str, int]] = {}
    for kind in ("Category", "Day", "Month", "Appearance"):
        for message in reads.fetch(reads.Query(kind)):
            scope = counter_rows.statistics_scope(kind, message.key.path[0].name)
            found[scope] = _numbers(message)
            properties = message.properties
            if kind == "Day":
                entry = properties["entry"].string_value
                category = scope.category.replace("/", "\x1f")
                assert entry == f"{scope.place}/{scope.day}/{category}"
            if kind == "Appearance":
                assert properties["author"].string_value == f"{scope.place}/{scope.author}"
                assert properties["day"].string_value == scope.day
    return found


def assert_all_counted() -> None:
    """Check that every counter equals the sum over the comments and that no event is pending."""
    assert_counted()
    assert_followers()
    assert events() == []
    assert stored_later() == expected_later()
    assert stored_statistics() == expected_statistics()
    stored_state.assert_listings()


def events() -> list[str]:
    """Return the ids of undelivered events in no particular order."""
    query = reads.Query("Event", keys_only=True)
    return [message.key.path[-1].name for message in reads.fetch(query)]


def of(name: records.ThreadName) -> dict[str, int]:
    """Return a thread's numbers as readers get them."""
    return totals.of_threads([name])[0]


def _numbers(message: object) -> dict[str, int]:
    text = message.properties["numbers"].string_value  # type: ignore[attr-defined]
    return counter_rows.decode(text)
