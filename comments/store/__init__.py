"""The only access to Datastore: connections, transactions, reads and the stored kinds.

Entry points: `transactions` to change something, `reads` to look something up, `models` for the
kinds, and `connection` for a process's store. NDB defines the kinds and converts rows; `wire` sends
queries and commits as protobuf messages, because NDB needs ten times the processor time for these
and its retries sleep for seconds.

Invariants, each tested with its module:

1. If the answer to an applied commit is lost, the transaction's body runs again. Bodies therefore
   recognize their own earlier work. `transactions.transaction` retries transient errors.
2. Every call has a time-out. Retries are short and jittered, and end at one deadline with
   `Overloaded`.
3. A query returns the state at one moment, regardless of how many batches the answer has.
4. Only its owner writes a kind (`ownership`), because writes that bypass the owner make counters
   drift. NDB's own writes of owned kinds are refused.
"""
