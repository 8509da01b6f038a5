"""Manage websites: their settings and their limits.

Entry points: `site_settings`, `thread_info` (a thread's title and address), `rate_limits`,
`budgets` and `usage` (the amounts that a site may use and has used per day), `post_limits` and
`proof_policy` (the conditions for posts).
"""
