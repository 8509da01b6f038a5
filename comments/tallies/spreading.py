"""Over how many shards the numbers of a thread are spread, as stored.

Owns the row of the thread and its first shard where they say how many there are: both are written
by one commit, so no writer counts where no reader looks. Which shard a transaction takes is
`shards`.
"""

import contextlib
from collections.abc import Iterator

from comments import counts, datastore, errors, models, records, shards
from comments.tallies import rows

_PATIENCE = 5.0  # seconds for spreading, which may as well be left to the next one


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
        first = first or rows.thread_counter(name, 0)
        thread.shards = first.shards = min(count, shards.MOST)
        datastore.apply(datastore.Writes(rows.OWNER, put=(thread, first)))
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
        first = first or rows.thread_counter(name, 0)
        thread.shards = first.shards = 1
        first = rows.with_numbers(first, counts.summed([first, *others]))
        datastore.apply(
            datastore.Writes(rows.OWNER, put=(thread, first), delete=tuple(keys[1:])),
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
    for message in datastore.walk(query):
        scope = message.properties["scope"].string_value
        thread = datastore.get(models.thread_key_of(scope.partition("/")[2]))
        if thread is not None:
            _shards().learn(models.thread_record(thread).name, thread.shards or 1)


def _shards() -> shards.Shards:
    return datastore.kept(shards.HOLDINGS, shards.Shards)
