"""Read threads: pages in every order, whole threads in one response, and feeds.

Entry points: `listings` (a page in any order), `full_thread` (a whole thread in one response),
`feeds`. `materialized` reads a thread from its buckets and from the rows that have changed since
the last compaction. `compaction` writes the buckets.

Every page shows the thread as of one moment, regardless of the source of its rows.
"""
