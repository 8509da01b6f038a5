"""Manage thread titles, addresses and categories.

Entry points: `details` (changes by moderators), `naming` (the comment that names the thread),
`thread_cache` (copies in this process), `category_journal` (progress of a change of categories).
"""
