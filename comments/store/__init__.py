"""The only door to Datastore: connections, transactions, reads and the stored kinds.

Doors: `transactions` to change something, `reads` to look something up, `models` for the kinds,
`connection` for a process's store. NDB defines the kinds and converts rows; `wire` sends queries
and commits as protobuf messages, because NDB takes ten times the processor time for that and its
retries sleep for seconds.

Invariants, each a test of its module:

1. A transaction's body may run again although its commit was applied (the answer was lost), so
   bodies recognise their own earlier work; `transactions.transaction` retries what is transient.
2. Every call has a time-out; retries are short, jittered and end at one deadline with `Overloaded`.
3. The answer to a query is the state of one moment, in however many batches it comes.
4. Each kind is written by its owner only (`ownership`): writes around the owner are how counters
   drift. NDB's own writes of owned kinds are refused.
"""
