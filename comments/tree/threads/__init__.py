"""What a thread shows of itself: its title, its address and its categories.

Doors: `details` (what moderators set), `naming` (which comment names the thread), `thread_cache`
(copies in this process), `category_journal` (how far a change of categories came).
"""
