"""Compact threads: move a thread's changed rows into its buckets, to keep reads cheap.

Entry points: `compactor` (compacts one thread, step by step), `due_threads` (finds the threads that
are due). Only this package writes Bucket, BucketDirectory and Ranking entities, and only this
package clears the `unfolded` flag of comments.
"""
