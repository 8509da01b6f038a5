"""Notify people by mail, and only those who asked for it.

Entry points: `double_opt_in` (request and confirm subscriptions), `subscriptions` (who follows
what), `planner` (who gets which mail), `moderation_links` (decide from a mail). `follower_lists`
and `follower_compaction` store lists of any length.

Invariants:

1. Nothing about an address is stored until its owner has confirmed it.
"""
