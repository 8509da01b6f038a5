"""Websites: their settings and their limits.

Entry points: `site_settings`, `thread_info` (a thread's title and address), `rate_limits`,
`budgets` and `usage` (what a site may use per day, and what it used), `post_limits` and
`proof_policy` (the conditions for posts).
"""
