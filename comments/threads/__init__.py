"""Manage thread titles, addresses, categories and terms.

Entry points: `details` (changes by moderators), `naming` (the comment that names the thread),
`thread_info` (a thread's title and address), `thread_terms` (whether it accepts comments),
`category_journal` (progress of a change of categories), `comment_flags` (what a compaction must
still take over).
"""
