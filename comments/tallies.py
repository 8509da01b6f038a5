"""Counters as stored: shards, rows of authors, and the transaction that keeps them exact.

Owns the kinds Counter, Participation, Standing, Category, Day and Appearance. What a change adds
is `counters.increments`; here it is read and written with the change:

    Counter        one shard of a thread's or a site's numbers; a number is the sum over shards
    Participation  an author in a thread: his comments by status, and the votes on them
    Standing       the same for an author on a website
    Category       the numbers of a category of a website
    Day            the numbers of a day on a website, or in a category of it
    Appearance     an author in a category or on a day: his approved comments

A thread's Counter and the Participation are read and written in the transaction that changes the
comment (`Entry`), so they are exact at any moment. A reply must not wait for replies elsewhere in
its thread: under contention the thread's numbers are `spread` over shards, and `gather`ed when it
is quiet again. How many there are stands in the thread's row, for writers, and in the first shard,
for readers; both are written by one commit. A shard that the thread's row does not know is never
written, so no reader misses one.

All else is written from events, exactly once (`from_events`): changes of all threads of a website
would meet there.

A row without numbers is deleted: who took back his last comment in a thread leaves no trace there.
"""

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

from google.cloud import ndb

from comments import counters, counts, datastore, errors, models, outbox, records, shards
from comments.counters import Change

FIRST = shards.First()
PACE = timedelta(minutes=10)
_OWNER = "tallies"
_PATIENCE = 5.0  # seconds for spreading, which may as well be left to the next one


class Entry:
    """The counters of a thread in one transaction: read with everything else, written with it."""

    def __init__(
        self,
        name: records.ThreadName,
        authors: Iterable[str] = (),
        turn: shards.Turn = FIRST,
    ) -> None:
        self._name = name
        self._turn = turn
        self._shard = turn.take()
        self._authors = [author for author in dict.fromkeys(authors) if author]
        self._row: models.Counter | None = None
        self._count = 1
        self._participations: dict[str, models.Participation | None] = {}
        # Once: NDB copies a key's parent again and again to make its child.
        self._kept = {author: models.participation_key(name, author) for author in self._authors}
        # What the transaction has to read for it.
        self.keys: list[ndb.Key] = [
            models.thread_counter_key(name, self._shard),
            *self._kept.values(),
        ]

    def fill(self, thread: models.Thread | None, rows: Sequence[Any]) -> None:
        """Take what stands at `keys`, and the thread's row."""
        self._row, *participations = rows
        self._participations = dict(zip(self._authors, participations, strict=True))
        count = self._count = 1 if thread is None else thread.shards or 1
        if self._shard >= count:
            # Gathered meanwhile: the first one is always there.
            self._shard = 0
            self._row = datastore.get(models.thread_counter_key(self._name, 0))
        self._turn.learn(count)

    def pace(self, most: int, now: datetime) -> None:
        """Note one more post, where at most so many may come within `PACE`; 0 for any number.

        A thread that is spread is posted to in several rows at once; each has its part of them.

        Raises:
            errors.TooMany: there were as many.
        """
        if not most:
            return
        if self._row is None:
            self._row = thread_counter(self._name, self._shard)
        row = self._row
        # A beginning in the future was written by a clock far ahead: it must not last for ever.
        began: datetime | None = row.began
        if began is None or abs(now - began) >= PACE:
            row.began = began = now
            row.lately = 0
        if row.lately >= max(1, most // self._count):
            wait = max(1, int((began + PACE - now).total_seconds()))
            raise errors.TooMany(
                "too much is written in this discussion just now",
                retry_after=wait,
                code="too-many-posts",
            )
        row.lately += 1

    def writes(self, changes: Iterable[Change]) -> datastore.Writes:
        """What the changes make of the counters that were read."""
        scopes = counters.by_scope(added(changes))
        here = counters.thread_scope(models.thread_key_name(self._name))
        numbers = scopes.pop(here, {})
        put: list[ndb.Model] = []
        gone: list[ndb.Key] = []
        for scope, more in scopes.items():
            old = counts.numbers_of(self._participations[scope.author])
            new = counters.added(old, more)
            numbers = counters.added(numbers, _names(counters.presence(here, old, new)))
            key = self._kept[scope.author]
            if new:
                put.append(participation(key, self._name.site, scope.author, new))
            else:
                gone.append(key)
        if numbers:
            put.append(self._counter(numbers))
        return datastore.Writes(_OWNER, put=tuple(put), delete=tuple(gone))

    def _counter(self, more: Mapping[str, int]) -> models.Counter:
        row = self._row or thread_counter(self._name, self._shard)
        return with_numbers(row, counters.added(counts.numbers_of(row), more))


def entered(name: records.ThreadName, changes: Sequence[Change]) -> datastore.Writes:
    """What changes that are known already make of a thread's counters; reads only what it needs."""
    if not added(changes):
        return datastore.Writes(_OWNER)
    states = [state for change in changes for state in change if state is not None]
    entry = Entry(name, (state.author for state in states))
    entry.fill(None, datastore.get_multi(entry.keys))
    return entry.writes(changes)


def added(changes: Iterable[Change]) -> dict[counters.Key, int]:
    """What changes add to the counters that stand in their own transaction."""
    return counters.total(
        counters.increments(counters.IN_THREAD, change.old, change.new) for change in changes
    )


def from_followings(events: Sequence[outbox.Event]) -> datastore.Writes:
    """What events make of the followers of threads, in the transaction that notes them as done.

    A batch of them writes one shard of a thread, the first, which is always there.
    """
    sums: dict[tuple[str, str], dict[str, int]] = {}
    for event in events:
        site, thread, change = outbox.following_of(event)
        increments = counters.increments(counters.FOLLOWING, change.old, change.new)
        sums[site, thread] = counters.added(sums.get((site, thread), {}), _names(increments))
    keys = [models.thread_counter_key_of(thread, 0) for _, thread in sums]
    put = []
    for ((site, thread), more), key, row in zip(
        sums.items(), keys, datastore.get_multi(keys), strict=True
    ):
        counted = row or models.Counter(key=key, scope=f"thread/{thread}", site=site)
        if more:
            put.append(with_numbers(counted, counters.added(counts.numbers_of(counted), more)))
    return datastore.Writes(_OWNER, put=tuple(put))


def from_events(events: Sequence[outbox.Event]) -> datastore.Writes:
    """What events make of the counters of websites, categories and days, and of authors there.

    In the transaction that notes the events as done. A website has one row, which batches of
    events meet at rather than posts.
    """
    sums = counters.by_scope(
        counters.total(
            counters.increments(counters.FROM_EVENTS, change.old, change.new)
            for event in events
            for change in event.changes
        )
    )
    return _later(sums, dict(filter(None, map(_spoken, events))))


def _spoken(event: outbox.Event) -> tuple[counters.Scope, str] | None:
    """The author of the comment an event is of, and the comment, if readers see both."""
    state = event.changes[0].new if event.changes else None
    if state is None or not state.author or state.status != counters.APPROVED:
        return None
    return counters.author_scope(state.site, state.author), event.comment


def _later(
    sums: Mapping[counters.Scope, Mapping[str, int]],
    spoken: Mapping[counters.Scope, str] = MappingProxyType({}),
) -> datastore.Writes:
    """Add to rows of places and of authors there, of whom the places' participants come.

    `spoken` is a comment of each author, where one is known.
    """
    authors = [scope for scope in sums if scope.author]
    wholes = [counters.above(scope) if scope.author else scope for scope in sums]
    places = {scope: dict(sums.get(scope, {})) for scope in wholes}
    rows = datastore.get_multi([scope_key(scope) for scope in (*places, *authors)])
    put: list[ndb.Model] = []
    gone: list[ndb.Key] = []
    for scope, row in zip(authors, rows[len(places) :], strict=True):
        old = counts.numbers_of(row)
        new = counters.added(old, sums[scope])
        place = counters.above(scope)
        more = counters.presence(place, old, new)
        places[place] = counters.added(places[place], _names(more))
        if new:
            known = row.comment if isinstance(row, models.Standing) else ""
            put.append(_author_row(scope, new, spoken.get(scope, known)))
        else:
            gone.append(scope_key(scope))
    for (scope, more_here), row in zip(places.items(), rows[: len(places)], strict=True):
        numbers = counters.added(counts.numbers_of(row), more_here)
        if scope.kind == "site" and more_here:
            # It stays without numbers too: it says how often they were mended.
            put.append(with_numbers(row or _site_counter(scope.place), numbers))
        elif numbers and more_here:
            put.append(_statistics(scope, numbers))
        elif more_here:
            gone.append(scope_key(scope))
    return datastore.Writes(_OWNER, put=tuple(put), delete=tuple(gone))


def scope_key(scope: counters.Scope) -> ndb.Key:
    """The key of the row of a scope that is counted from events."""
    if scope.kind == "site":
        return models.site_counter_key(scope.place)
    if scope.kind == "author":
        return models.standing_key(scope.place, scope.author)
    return models.statistics_key(scope)


def _author_row(scope: counters.Scope, numbers: counts.Numbers, comment: str) -> ndb.Model:
    if scope.kind == "author":
        return standing(scope.place, scope.author, numbers, comment)
    return _statistics(scope, numbers)


def _statistics(scope: counters.Scope, numbers: counts.Numbers) -> ndb.Model:
    """The row of a category, of a day, or of an author there."""
    key, text = models.statistics_key(scope), counts.encoded(numbers)
    if scope.author:
        author = models.author_name(scope.place, scope.author)
        return models.Appearance(key=key, author=author, day=scope.day, numbers=text)
    if scope.day:
        return models.Day(key=key, entry=models.day_entry(scope), numbers=text)
    return models.Category(key=key, numbers=text)


def _site_counter(site: str) -> models.Counter:
    return models.Counter(key=models.site_counter_key(site), scope=f"site/{site}")


def standing(site: str, author: str, numbers: Mapping[str, int], comment: str) -> models.Standing:
    """The row of an author on a website, and a comment of his."""
    return models.Standing(
        key=models.standing_key(site, author),
        site=site,
        score=numbers.get("score", 0),
        takes_part=numbers.get(counters.APPROVED, 0) > 0,
        alias=models.standing_alias(site, author),
        comment=comment,
        numbers=counts.encoded(numbers),
    )


class MendedMeanwhile(Exception):
    """Somebody mended these counters since they were compared. `mended` is how often by now."""

    def __init__(self, mended: int) -> None:
        super().__init__(mended)
        self.mended = mended


def mend_thread(
    name: records.ThreadName, step: int, missing: Mapping[counters.Scope, counts.Numbers]
) -> datastore.Writes:
    """Add what a recount found missing in a thread and in the rows of its authors.

    Raises:
        MendedMeanwhile: this is not the step that comes next.
    """
    here = counters.thread_scope(models.thread_key_name(name))
    authors = [scope for scope in missing if scope != here]
    keys = [models.participation_key(name, scope.author) for scope in authors]
    thread, first, *rows = datastore.get_multi(
        [models.thread_key(name), models.thread_counter_key(name, 0), *keys]
    )
    first = _next_step(first or thread_counter(name, 0), step)
    first.shards = 1 if thread is None else thread.shards or 1
    more = dict(missing.get(here, {}))
    put: list[ndb.Model] = []
    gone: list[ndb.Key] = []
    for scope, key, row in zip(authors, keys, rows, strict=True):
        old = counts.numbers_of(row)
        new = counters.added(old, missing[scope])
        more = counters.added(more, _names(counters.presence(here, old, new)))
        if new:
            put.append(participation(key, name.site, scope.author, new))
        else:
            gone.append(key)
    put.append(with_numbers(first, counters.added(counts.numbers_of(first), more)))
    return datastore.Writes(_OWNER, put=tuple(put), delete=tuple(gone))


def mend_site(
    site: str, step: int, missing: Mapping[counters.Scope, counts.Numbers]
) -> datastore.Writes:
    """Add what a recount found missing in a website, its statistics, and the rows of its authors.

    Raises:
        MendedMeanwhile: this is not the step that comes next.
    """
    key = models.site_counter_key(site)
    first = datastore.get(key) or _site_counter(site)
    mended = _next_step(first, step).mended
    writes = _later({counters.site_scope(site): {}, **missing})
    rows = [row for row in writes.put if row.key != key]
    counted: Any = next((row for row in writes.put if row.key == key), first)
    counted.mended = mended
    return datastore.Writes(_OWNER, put=(*rows, counted), delete=writes.delete)


def _next_step(row: models.Counter, step: int) -> models.Counter:
    if row.mended != step:
        raise MendedMeanwhile(row.mended)
    row.mended = step + 1
    return row


@contextlib.contextmanager
def turn(name: records.ThreadName) -> Iterator[shards.Turn]:
    """A transaction's turn to count in a thread, which is spread further if it met others."""
    with _shards().turn(name) as taken:
        yield taken
        wanted = taken.end()
    if wanted:
        # Nothing depends on it, and whoever meets others next tries again.
        with contextlib.suppress(errors.Overloaded), datastore.within(_PATIENCE):
            spread(name, wanted)


def spread(name: records.ThreadName, count: int) -> None:
    """Spread a thread's counters over so many shards. What is stored in them stays."""

    def body() -> int:
        thread, first = datastore.get_multi(
            [models.thread_key(name), models.thread_counter_key(name, 0)]
        )
        if thread is None or (thread.shards or 1) >= count:
            return 1 if thread is None else thread.shards or 1
        first = first or thread_counter(name, 0)
        thread.shards = first.shards = min(count, shards.MOST)
        datastore.apply(datastore.Writes(_OWNER, put=(thread, first)))
        return min(count, shards.MOST)

    _shards().learn(name, datastore.transaction(body))


def gather(name: records.ThreadName) -> None:
    """Bring a thread's numbers together in one shard."""

    def body() -> None:
        thread = datastore.get(models.thread_key(name))
        count = 1 if thread is None else thread.shards or 1
        if thread is None or count == 1:
            return
        keys = [models.thread_counter_key(name, shard) for shard in range(count)]
        first, *others = datastore.get_multi(keys)
        first = first or thread_counter(name, 0)
        thread.shards = first.shards = 1
        first = with_numbers(first, counts.summed([first, *others]))
        datastore.apply(
            datastore.Writes(_OWNER, put=(thread, first), delete=tuple(keys[1:])),
        )

    datastore.transaction(body)
    _shards().forget(name)


def gather_quiet() -> int:
    """Gather the threads that are quiet again, as far as this process knows; how many."""
    quiet = _shards().quiet()
    for name in quiet:
        gather(name)
    return len(quiet)


def notice_spread() -> None:
    """Take note of the threads that are spread, whoever did it."""
    query = datastore.Query("Counter", where=(("shards", ">", 1),))
    for message in datastore.fetch(query):
        scope = message.properties["scope"].string_value
        thread = datastore.get(models.thread_key_of(scope.partition("/")[2]))
        if thread is not None:
            _shards().learn(models.thread_record(thread).name, thread.shards or 1)


def thread_counter(name: records.ThreadName, shard: int) -> models.Counter:
    """A shard of a thread that has no numbers yet."""
    key = models.thread_counter_key(name, shard)
    scope = f"thread/{models.thread_key_name(name)}"
    return models.Counter(key=key, scope=scope, site=name.site)


def participation(
    key: ndb.Key, site: str, author: str, numbers: Mapping[str, int]
) -> models.Participation:
    """The row of an author in a thread."""
    row = models.Participation(key=key, author=models.author_name(site, author))
    row.numbers = counts.encoded(numbers)
    return row


def with_numbers(row: models.Counter, numbers: Mapping[str, int]) -> models.Counter:
    """The row with other numbers."""
    row.numbers = counts.encoded(numbers)
    return row


def _names(sums: Mapping[counters.Key, int]) -> counts.Numbers:
    return {key.name: number for key, number in sums.items()}


def _shards() -> shards.Shards:
    return datastore.kept(shards.HOLDINGS, shards.Shards)
