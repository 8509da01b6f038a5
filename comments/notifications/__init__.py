"""Send mail to people who requested it, and keep inboxes of unread replies.

The entry points are `double_opt_in` (requests and confirms subscriptions), `subscriptions` (stores
them), `planner` (decides who gets which mail) and `moderation_links` (lets moderators decide from a
mail). The followers of a thread are a large set (`store/large_sets`).
"""
