"""Read materialized threads: the bucket directory, the buckets and the delta of changed rows.

Entry points: `thread_view` (makes the view from which pages are cut), `buckets` (stored formats).
This package only reads; `compaction` writes the data.
"""
