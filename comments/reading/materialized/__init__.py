"""Read materialized threads: the bucket directory, the buckets and the delta of changed rows.

Entry points: `thread_view` (the view that pages are cut from), `buckets` (stored forms). This
package only reads; `compaction` writes.
"""
