"""Taking changed rows into a thread's buckets, so that readers need not look at them.

Doors: `compactor` (one compaction, step by step), `due_threads` (which threads wait). The only room
that writes Bucket, BucketDirectory and Ranking, and that clears the flag `unfolded`.
"""
