"""Provide the only access to Datastore: connections, transactions, reads and the stored kinds.

Entry points: `transactions` for changes, `reads` for lookups and queries, `models` for the kinds,
and `connection` for a process's store. `wire` converts rows and queries to protobuf messages.

Invariant: If the response to an applied commit is lost, the transaction's body runs again, so every
body must recognize its own earlier work
(test_transactions.py::test_a_post_whose_answer_is_lost_several_times_is_stored_once).

Invariant: Each kind is written only by its owner (`ownership`), because writes that bypass the
owner make counters drift (test_transactions.py::test_only_its_owner_may_write_a_kind).

Every call has a time-out. Pauses between retries are short and random. When the deadline of all
retries passes, `Overloaded` is raised. A fault of the disk or the data ends a call at once.
"""
