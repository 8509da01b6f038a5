"""A thread as materialised: its bucket directory, its buckets, and the delta of changed rows.

Doors: `thread_view` (the view that a page is cut from), `buckets` (stored forms). Reads only;
`compaction` writes.
"""
