"""Stored comments: the only package that writes them or changes the shape of a tree.

Entry points: `placement` (a new comment), `changes` (edit, retract, votes), `status_changes`
(moderators' decisions), `bulk_append` (imports), `job_writes` (flags, repaired places, categories),
`ordered_query` (the thread as one query), `votes`. `counters` maintains the numbers, and `threads`
the title, address and categories of a thread. Each operation runs inside a transaction, decides,
and returns a `values.ChangeResult`; the caller applies its writes in that transaction. Each
operation is safe to run again after its own commit.

Invariants (`repair` checks them):

1. A comment's hash is its parent's hash plus the segment of its number; a root's is the segment.
2. A comment's number comes from its parent's child counter (a root's number from the thread's) and
   is never reused. One commit stores counter, number and comment, so there are no gaps and no
   orphans.
3. A comment is listed if it is approved or if a listed comment is below it.
4. A retracted comment never comes back. Only a moderator's decision restores a refused comment, and
   only while its text is kept.

A reply writes its parent's row and not its thread's, so replies to different parents do not
conflict.
"""
