"""Websites: their settings, and what each may use.

Doors: `site_settings`, `thread_info` (a thread's title and address), `rate_limits`, `budgets` and
`usage` (what a site may use on a day and what it used), `post_limits` and `proof_policy` (what is
asked of those who post).
"""
