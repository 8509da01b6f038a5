"""Thread titles, addresses and categories.

Entry points: `details` (what moderators set), `naming` (which comment names the thread),
`thread_cache` (copies in this process), `category_journal` (progress of a change of categories).
"""
