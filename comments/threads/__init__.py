"""Manage thread titles, addresses, categories and terms.

Entry points: `details` (changes by moderators), `naming` (the comment that names the thread),
`thread_info` (a thread's title and address), `thread_terms` (whether a thread accepts comments),
`category_journal` (progress of category changes), `comment_flags` (changes that are not compacted
yet).
"""
