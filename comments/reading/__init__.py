"""Read threads: pages in every order, whole threads in one response, and feeds.

Entry points: `listings` (a page in any order), `full_thread` (everything in one response), `feeds`.
`materialized` reads a thread from its buckets and the rows changed since; `compaction` writes the
buckets.

Invariants:

1. Every page shows the thread as of one moment, no matter where its rows come from.
"""
