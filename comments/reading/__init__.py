"""Pages of a thread, whole threads, and feeds.

Doors: `thread_pages` (a page in any order), `full_thread` (all of it in one answer), `feeds`.
`materialized` reads a thread from its buckets and the rows changed since; `compaction` writes the
buckets.

Invariant: every page is the state of one moment, wherever its rows come from.
"""
