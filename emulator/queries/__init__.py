"""What a query asks for, and which index scans answer it. No I/O, no data.

`parser` checks a query message, `filters` its filter, and `planner` chooses the index scans that
form a `query_plan`. `query_cursors` encodes and decodes cursors.

Invariants:

1. A plan never sorts and never reads an entity. A query that no index serves is refused with the
   index to add.
2. Whether a query is allowed does not depend on the values in it.
"""
