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

from comments.tallies.entries import FIRST, PACE, Entry, added, entered
from comments.tallies.events import from_events, from_followings
from comments.tallies.mending import MendedMeanwhile, mend_site, mend_thread
from comments.tallies.rows import (
    participation,
    scope_key,
    standing,
    statistics,
    thread_counter,
    with_numbers,
)
from comments.tallies.spreading import gather, gather_quiet, notice_spread, spread, turn

__all__ = [
    "FIRST",
    "PACE",
    "Entry",
    "MendedMeanwhile",
    "added",
    "entered",
    "from_events",
    "from_followings",
    "gather",
    "gather_quiet",
    "mend_site",
    "mend_thread",
    "notice_spread",
    "participation",
    "scope_key",
    "spread",
    "standing",
    "statistics",
    "thread_counter",
    "turn",
    "with_numbers",
]
