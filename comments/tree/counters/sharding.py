"""Over how many shards the numbers of a thread are spread, as stored.

Owns the row of the thread and its first shard where they say how many there are: both are written
by one commit, so no writer counts where no reader looks. Which shard a transaction takes is
`shard_choice`.
"""

import contextlib
from collections.abc import Iterator

from comments import errors
from comments.domain import records
from comments.store import connection, ownership, reads, transactions
from comments.store.models import comment_rows, conversion, counter_rows
from comments.tree.counters import new_rows, shard_choice, totals

_PATIENCE = 5.0  # seconds for spreading, which may as well be left to the next one


@contextlib.contextmanager
def turn(name: records.ThreadName) -> Iterator[shard_choice.Turn]:
    """A transaction's turn to count in a thread, which is spread further if it met others."""
    with _shards().turn(name) as taken:
        yield taken
        wanted = taken.end()
    if wanted:
        # Nothing depends on it, and whoever meets others next tries again.
        with contextlib.suppress(errors.Overloaded), connection.within(_PATIENCE):
            spread(name, wanted)


def spread(name: records.ThreadName, count: int) -> None:
    """Spread a thread's counters over so many shards. What is stored in them stays."""

    def body() -> int:
        thread, first = reads.get_multi(
            [comment_rows.thread_key(name), counter_rows.thread_counter_key(name, 0)]
        )
        if thread is None or (thread.shards or 1) >= count:
            return 1 if thread is None else thread.shards or 1
        first = first or new_rows.thread_counter(name, 0)
        thread.shards = first.shards = min(count, shard_choice.MOST)
        transactions.apply(ownership.Writes(new_rows.OWNER, put=(thread, first)))
        return min(count, shard_choice.MOST)

    _shards().learn(name, transactions.transaction(body))


def gather(name: records.ThreadName) -> None:
    """Bring a thread's numbers together in one shard."""

    def body() -> None:
        thread = reads.get(comment_rows.thread_key(name))
        count = 1 if thread is None else thread.shards or 1
        if thread is None or count == 1:
            return
        keys = [counter_rows.thread_counter_key(name, shard) for shard in range(count)]
        first, *others = reads.get_multi(keys)
        first = first or new_rows.thread_counter(name, 0)
        thread.shards = first.shards = 1
        first = new_rows.with_numbers(first, totals.summed([first, *others]))
        transactions.apply(
            ownership.Writes(new_rows.OWNER, put=(thread, first), delete=tuple(keys[1:])),
        )

    transactions.transaction(body)
    _shards().forget(name)


def gather_quiet() -> int:
    """Gather the threads that are quiet again, as far as this process knows; how many."""
    quiet = _shards().quiet()
    for name in quiet:
        gather(name)
    return len(quiet)


def notice_spread() -> None:
    """Take note of the threads that are spread, whoever did it."""
    query = reads.Query("Counter", where=(("shards", ">", 1),))
    for message in reads.walk(query):
        scope = message.properties["scope"].string_value
        thread = reads.get(comment_rows.thread_key_of(scope.partition("/")[2]))
        if thread is not None:
            _shards().learn(conversion.thread_record(thread).name, thread.shards or 1)


def _shards() -> shard_choice.Shards:
    return shard_choice.SHARDS.get()
