"""Counters as stored: shards, rows of authors, and the transaction that keeps them exact.

Owns the kinds Counter, Participation and Standing. What a change adds is `counters.increments`;
here it is read and written with the change:

    Counter        one shard of a thread's or a site's numbers; a number is the sum over shards
    Participation  an author in a thread: his comments by status, and the votes on them
    Standing       the same for an author on a website

A thread's Counter and the Participation are read and written in the transaction that changes the
comment (`Entry`), so they are exact at any moment. A reply must not wait for replies elsewhere in
its thread: under contention the thread's numbers are `spread` over shards, and `gather`ed when it
is quiet again. How many there are stands in the thread's row, for writers, and in the first shard,
for readers; both are written by one commit. A shard that the thread's row does not know is never
written, so no reader misses one.

A website's Counter and the Standings are written from events, exactly once (`from_events`): changes
of all its threads would meet there.

A row without numbers is deleted: who took back his last comment in a thread leaves no trace there.
"""

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from google.cloud import ndb

from comments import counters, counts, datastore, errors, models, outbox, records, shards
from comments.counters import Change

FIRST = shards.First()
_OWNER = "tallies"
_PATIENCE = 0.5  # seconds for spreading, which may as well be left to the next one


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
        self._participations: dict[str, models.Participation | None] = {}

    @property
    def keys(self) -> list[ndb.Key]:
        """What the transaction has to read for it."""
        return [
            models.thread_counter_key(self._name, self._shard),
            *(models.participation_key(self._name, author) for author in self._authors),
        ]

    def fill(self, thread: models.Thread | None, rows: Sequence[Any]) -> None:
        """Take what stands at `keys`, and the thread's row."""
        self._row, *participations = rows
        self._participations = dict(zip(self._authors, participations, strict=True))
        count = 1 if thread is None else thread.shards or 1
        if self._shard >= count:
            # Gathered meanwhile: the first one is always there.
            self._shard = 0
            self._row = datastore.get(models.thread_counter_key(self._name, 0))
        self._turn.learn(count)

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
            key = models.participation_key(self._name, scope.author)
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


def from_events(events: Sequence[outbox.Event]) -> datastore.Writes:
    """What events make of the counters of websites and of authors on them.

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
    return _later(sums)


def _later(sums: Mapping[counters.Scope, Mapping[str, int]]) -> datastore.Writes:
    """Add to rows of websites and of authors on them, whose participants come of it."""
    sites = {scope.place: dict(sums.get(counters.site_scope(scope.place), {})) for scope in sums}
    standings = [scope for scope in sums if scope.author]
    rows = datastore.get_multi(
        [
            *map(models.site_counter_key, sites),
            *(models.standing_key(scope.place, scope.author) for scope in standings),
        ]
    )
    put: list[ndb.Model] = []
    gone: list[ndb.Key] = []
    for scope, row in zip(standings, rows[len(sites) :], strict=True):
        old = counts.numbers_of(row)
        new = counters.added(old, sums[scope])
        more = counters.presence(counters.site_scope(scope.place), old, new)
        sites[scope.place] = counters.added(sites[scope.place], _names(more))
        if new:
            put.append(standing(scope.place, scope.author, new))
        else:
            gone.append(models.standing_key(scope.place, scope.author))
    for (site, numbers), row in zip(sites.items(), rows[: len(sites)], strict=True):
        if numbers:
            put.append(_site_counter(row, site, numbers))
    return datastore.Writes(_OWNER, put=tuple(put), delete=tuple(gone))


def _site_counter(row: models.Counter | None, site: str, more: Mapping[str, int]) -> models.Counter:
    row = row or models.Counter(key=models.site_counter_key(site), scope=f"site/{site}")
    return with_numbers(row, counters.added(counts.numbers_of(row), more))


def standing(site: str, author: str, numbers: Mapping[str, int]) -> models.Standing:
    """The row of an author on a website."""
    return models.Standing(
        key=models.standing_key(site, author),
        site=site,
        score=numbers.get("score", 0),
        takes_part=numbers.get(counters.APPROVED, 0) > 0,
        numbers=counts.encoded(numbers),
    )


class MendedMeanwhile(Exception):
    """Somebody mended these counters since they were compared. `mended` is how often by now."""

    def __init__(self, mended: int) -> None:
        super().__init__(mended)
        self.mended = mended


def mend_thread(
    name: records.ThreadName, step: int, more: counts.Numbers, authors: Mapping[str, counts.Numbers]
) -> datastore.Writes:
    """Add what a recount found missing in a thread and in the rows of its authors.

    Raises:
        MendedMeanwhile: this is not the step that comes next.
    """
    keys = [models.participation_key(name, author) for author in authors]
    thread, first, *rows = datastore.get_multi(
        [models.thread_key(name), models.thread_counter_key(name, 0), *keys]
    )
    first = _next_step(first or thread_counter(name, 0), step)
    first.shards = 1 if thread is None else thread.shards or 1
    here = counters.thread_scope(models.thread_key_name(name))
    put: list[ndb.Model] = []
    gone: list[ndb.Key] = []
    for (author, missing), key, row in zip(authors.items(), keys, rows, strict=True):
        old = counts.numbers_of(row)
        new = counters.added(old, missing)
        more = counters.added(more, _names(counters.presence(here, old, new)))
        if new:
            put.append(participation(key, name.site, author, new))
        else:
            gone.append(key)
    put.append(with_numbers(first, counters.added(counts.numbers_of(first), more)))
    return datastore.Writes(_OWNER, put=tuple(put), delete=tuple(gone))


def mend_site(
    site: str, step: int, more: counts.Numbers, authors: Mapping[str, counts.Numbers]
) -> datastore.Writes:
    """Add what a recount found missing in a website and in the rows of its authors.

    Raises:
        MendedMeanwhile: this is not the step that comes next.
    """
    sums: dict[counters.Scope, Mapping[str, int]] = {
        counters.author_scope(site, author): missing for author, missing in authors.items()
    }
    sums[counters.site_scope(site)] = more
    key = models.site_counter_key(site)
    first = datastore.get(key) or models.Counter(key=key, scope=f"site/{site}")
    mended = _next_step(first, step).mended
    writes = _later(sums)
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
