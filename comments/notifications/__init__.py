"""Send notification mail to the people who requested it.

Entry points: `double_opt_in` (requests and confirms subscriptions), `subscriptions` (stores them),
`planner` (decides who gets which mail), `moderation_links` (lets moderators decide from a mail).
`follower_lists` and `follower_compaction` store follower lists of any length.

Invariants:

1. Nothing about an address is stored until its owner has confirmed it.
"""
