"""Counters as stored: shards, rows of authors, and the transaction that keeps them exact.

    Counter        one shard of the numbers of a thread or a site; a number is the sum over shards
    Participation  an author in a thread: comments by status, and the votes on them
    Standing       the same for an author on a site
    Category       the numbers of a category of a site
    Day            the numbers of a day on a site, or in a category of it
    Appearance     an author in a category or on a day: approved comments

Doors: `in_transaction` (a thread's numbers, exact at any moment), `from_events` (everything wider
than a thread, exactly once from events), `totals` (numbers as readers get them), `statistics`,
`leaderboard`, `counter_repair`.

Invariants: a thread's numbers and the change are one commit. Under contention they are spread over
shards (`sharding`); the number of shards stands in the thread's row for writers and in the first
shard for readers, both written by one commit, so no reader misses a shard. A row without numbers is
deleted: an author who took back the last comment in a thread leaves no trace there.
"""
