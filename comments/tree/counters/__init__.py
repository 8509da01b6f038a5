"""Maintain stored counters: shards, author rows, and the transactions that keep them exact.

    Counter        one shard of a thread's or a site's numbers; a number is the sum over all shards
    Participation  an author in a thread: the comments by status, and the votes on them
    Standing       the same for an author on a site
    Category       the numbers of one of a site's categories
    Day            the numbers of a day on a site, or in one of its categories
    Month          the approved comments of a group of a site's pages in a month, by page, author
                   and day
    Appearance     an author in a category or on a day: the number of approved comments
    DeclaredCount  one number of a counter that the site's owner declared

Entry points: `in_transaction` (a thread's numbers, exact at any moment), `from_events` (all other
numbers, counted exactly once from events), `totals` (the numbers that readers get), `statistics`,
`periods`, `leaderboard`, `counter_repair`; for declared counters, `declarations`, `declared_counts`
(also counted from events) and `declared_reports`.

A row without numbers is deleted: an author who retracts their last comment in a thread leaves no
trace there.
"""
