"""Who is told by mail, and that nobody is told who did not ask for it.

Doors: `double_opt_in` (asking and confirming), `subscriptions` (who follows what), `planner` (who
gets which mail), `moderation_links` (deciding from a mail). `follower_lists` and
`follower_compaction` keep lists of any length.

Invariant: nothing is stored of an address until its owner has confirmed it.
"""
