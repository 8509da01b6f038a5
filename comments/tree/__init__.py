"""Write comments. Only this package writes comments or changes the shape of a tree.

Entry points: `placement` (a new comment), `changes` (edit, retract, votes), `status_changes`
(moderators' decisions), `bulk_append` (imports), `bulk_removal` (undoing imports), `job_writes`
(flags, repaired places, categories), `ordered_query` (the thread as one query), `votes`. `counters`
maintains the numbers. Each operation runs inside a transaction, decides on the change, and returns
a `values.ChangeResult`, whose writes the caller applies in the same transaction. Each operation can
safely run again after its own commit.

Invariant: Numbers are never reused while the thread exists: a comment's number comes from a child
counter that only grows, which is its parent's or, for a root, the thread's
(test_placement.py::test_the_number_of_a_retracted_comment_is_not_used_again).

A comment's sort hash is its parent's sort hash followed by the segment for its number. A root's
sort hash is the segment alone. One commit stores counter, number and comment, so there are no
orphans, and only the undo of an import leaves gaps. A comment is listed if it is approved or if a
listed comment is below it. A retracted comment is never restored, with one exception: an import may
restore a comment that the undo of an import erased. Only a moderator's decision restores a refused
comment, and only while the comment's text is kept. `repair` checks these rules.

A reply writes its parent's row but not its thread's row, so replies to different parents do not
conflict.
"""
