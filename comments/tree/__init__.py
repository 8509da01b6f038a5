"""Comments as stored: the only room that writes them or changes a tree's shape.

Doors: `placement` (a new comment), `changes` (edit, retract, votes), `status_changes` (what
moderators do), `bulk_append` (imports), `job_writes` (flags, mended places, categories),
`ordered_query` (the thread as one query), `votes`. `counters` keeps the numbers, `threads` what a
thread shows of itself. Each verb runs inside a transaction, decides, and returns a `values.Change`
whose writes the caller applies in that transaction. Each is safe to run again after its own commit.

Invariants (`repair` checks them):

1. A comment's hash is its parent's hash plus the segment of its number; a root's is the segment.
2. Numbers come from the parent's child counter (a root's from the thread's) and are never reused;
   counter, number and comment are stored by one commit: no gap, no orphan.
3. A comment is listed when it is approved or when something listed stands below it.
4. Nothing that was retracted comes back; what was refused comes back by a moderator only, while its
   text is kept.

A reply writes its parent and not its thread, so replies to different parents do not meet.
"""
