"""Transactions, locks and commits.

Use `open_transactions` to begin, find and end transactions, `commits` to commit, and `mutations` to
check and apply the changes of a commit (with `preconditions` and `property_transforms`).
Pessimistic mode takes its locks from `lock_manager`; `lock_table` decides which transaction waits
for which, `shared_lock_files` shares locks between processes.

Invariants:

1. A commit is refused with ABORTED if anything its transaction read has changed since. The check
   runs inside the write transaction.
2. Correctness never depends on a lock. A missing lock causes an ABORTED, not a wrong result.
3. No request waits forever. Of transactions that wait for each other, the youngest is aborted.
"""
