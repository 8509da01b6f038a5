"""The door to the store: contexts, transactions, time-outs, retries, bulk reads and the guard.

Owns every call that leaves for a Datastore, and these rules, each a test in
tests/comments/test_datastore.py:

- A transaction body may run again although its commit was applied (the answer was lost). Bodies
  therefore recognise their own earlier work; `transaction` relies on it and retries everything
  that is transient, whatever was or was not applied.
- Every RPC has a time-out; retries are short, jittered and end at one deadline. Then `Overloaded`.
- Each attempt of a transaction names the one before (`transaction`).
- The answer to a query is the state of one moment, in however many batches it comes (`reads`).
- Rows are NDB's models, but NDB calls nobody: converting (`entities`) and transactions
  (`transactions`) take a tenth of the processor time that NDB takes for them, and its retries
  sleep for seconds. Bulk reads (`fetch`, `read`) stay protobuf messages.

**The guard.** Comments, counters and votes are written only by their owners (`OWNERS`), because
writes that go around the owners are how counters drift. An owner hands out `Writes`, and `apply`
is the only way into a transaction's commit. NDB's own calls are refused where they would pass by
that: a commit of an owned kind anywhere, and any call at all inside a transaction.
"""

from comments.datastore.commits import (
    afterwards,
    apply,
    at_one_moment,
    may_have_run,
    snapshot,
    transaction,
)
from comments.datastore.reads import (
    Entity,
    Path,
    Query,
    ask,
    count,
    fetch,
    get,
    get_multi,
    lookup,
    prepared,
    read,
    varied,
    walk,
)
from comments.datastore.stores import TRANSIENT, Store, carried, current, kept, spent, within
from comments.datastore.writes import OWNERS, Writes
from comments.datastore.written import written

__all__ = [
    "OWNERS",
    "TRANSIENT",
    "Entity",
    "Path",
    "Query",
    "Store",
    "Writes",
    "afterwards",
    "apply",
    "ask",
    "at_one_moment",
    "carried",
    "count",
    "current",
    "fetch",
    "get",
    "get_multi",
    "kept",
    "lookup",
    "may_have_run",
    "prepared",
    "read",
    "snapshot",
    "spent",
    "transaction",
    "varied",
    "walk",
    "within",
    "written",
]
