"""Transactions, locks and commits.

Use `open_transactions` to begin, find and end transactions, `commits` to commit, and `mutations` to
check and apply the changes in a commit (with `preconditions` and `property_transforms`). The
pessimistic mode takes its locks from `lock_manager`; `lock_table` decides which transaction waits
for which, and `shared_lock_files` shares locks between processes.

Invariants:

1. A commit is refused with ABORTED if anything that its transaction read has changed since. This
   check runs inside the write transaction.
2. Correctness never depends on a lock. A missing lock causes an ABORTED error, never a wrong
   result.
3. No request waits forever. If transactions wait for each other, the youngest is aborted.
"""
