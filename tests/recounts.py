"""The oracle of counters: what is stored of numbers beside what the comments themselves say."""

from collections.abc import Iterator

from comments import counters, counts, datastore, models, records
from comments.counters import Scope


def states() -> Iterator[counters.State]:
    """Every stored comment as counters see it."""
    for message in datastore.fetch(datastore.Query("Comment")):
        row = models.comment_from_message(message)
        yield counters.State(
            site=row.site,
            thread=message.properties["thread"].string_value,
            author=row.author.id,
            status=row.status.value,
            listed=row.listed,
            up=row.up,
            down=row.down,
        )


def expected() -> dict[Scope, dict[str, int]]:
    """The counters of threads and of authors in them, from the comments."""
    sums = counters.by_scope(
        counters.total(counters.increments(counters.IN_THREAD, None, state) for state in states())
    )
    for scope in list(sums):
        if scope.kind == "participation" and sums[scope].get("approved"):
            thread = sums[counters.thread_scope(scope.place)]
            thread["participants"] = thread.get("participants", 0) + 1
    return sums


def stored() -> dict[Scope, dict[str, int]]:
    """The counters of threads and of authors in them, as they stand."""
    found: dict[Scope, dict[str, int]] = {}
    for message in datastore.fetch(datastore.Query("Counter")):
        kind, _, place = message.properties["scope"].string_value.partition("/")
        if kind == "thread":
            scope = Scope(kind, place)
            found[scope] = counters.added(found.get(scope, {}), _numbers(message))
    for message in datastore.fetch(datastore.Query("Participation")):
        thread, author = message.key.path[0].name, message.key.path[1].name
        found[counters.participation_scope(thread, author)] = _numbers(message)
    return {scope: numbers for scope, numbers in found.items() if numbers}


def check() -> None:
    """Every counter of threads and of authors in them equals its recount."""
    assert stored() == expected()


def expected_later() -> dict[Scope, dict[str, int]]:
    """The counters of sites and of authors on them, from the comments."""
    sums = counters.by_scope(
        counters.total(counters.increments(counters.FROM_EVENTS, None, state) for state in states())
    )
    for scope in list(sums):
        if scope.kind == "author" and sums[scope].get("approved"):
            site = sums[counters.site_scope(scope.place)]
            site["participants"] = site.get("participants", 0) + 1
    return sums


def stored_later() -> dict[Scope, dict[str, int]]:
    """The counters of sites and of authors on them, as they stand."""
    found: dict[Scope, dict[str, int]] = {}
    for message in datastore.fetch(datastore.Query("Counter")):
        kind, _, place = message.properties["scope"].string_value.partition("/")
        if kind == "site":
            found[Scope(kind, place)] = _numbers(message)
    for message in datastore.fetch(datastore.Query("Standing")):
        site, _, author = message.key.path[0].name.partition("/")
        numbers = found[counters.author_scope(site, author)] = _numbers(message)
        assert message.properties["score"].integer_value == numbers.get("score", 0)
        takes_part = message.properties["takes_part"].boolean_value
        assert takes_part == (numbers.get("approved", 0) > 0)
    return {scope: numbers for scope, numbers in found.items() if numbers}


def check_all() -> None:
    """Every counter equals its recount, and no event is left."""
    check()
    assert events() == []
    assert stored_later() == expected_later()


def events() -> list[str]:
    """The ids of the events that are not delivered, in no order."""
    query = datastore.Query("Event", keys_only=True)
    return [message.key.path[-1].name for message in datastore.fetch(query)]


def of(name: records.ThreadName) -> dict[str, int]:
    """The numbers of one thread, as readers get them."""
    return counts.of_threads([name])[0]


def _numbers(message: object) -> dict[str, int]:
    text = message.properties["numbers"].string_value  # type: ignore[attr-defined]
    return counts.decoded(text)
