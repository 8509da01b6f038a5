"""Transactions, locks and commits.

Use `open_transactions` to begin, find and end transactions, `commits` to commit, and `mutations` to
check and apply the changes in a commit (with `preconditions` and `property_transforms`). The
pessimistic mode takes its locks from `lock_manager`; `lock_table` decides which transaction waits
for which, and `shared_lock_files` shares locks between processes.

Invariant: Correctness never depends on a lock: inside the write transaction, a commit is refused
with ABORTED if anything that its transaction read has changed since
(test_lock_manager.py::test_without_a_lock_the_commit_is_still_validated).

No request waits forever. If transactions wait for each other, the youngest is aborted.
"""
