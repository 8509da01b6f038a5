"""Provide the only access to Datastore: connections, transactions, reads and the stored kinds.

Entry points: `transactions` for changes, `reads` for lookups and queries, `models` for the kinds,
and `connection` for a process's store. `wire` converts rows and queries to protobuf messages.

Invariants, each tested with its module:

1. If the response to an applied commit is lost, the transaction's body runs again. Bodies must
   therefore recognize their own earlier work. `transactions.transaction` retries transient errors.
2. Every call has a time-out. Pauses between retries are short and random. At the deadline of all
   retries, `Overloaded` is raised. A fault of the disk or the data ends a call at once.
3. A query returns the state at one moment, regardless of the number of batches in the response.
4. Each kind is written only by its owner (`ownership`), because writes that bypass the owner make
   counters drift.
"""
