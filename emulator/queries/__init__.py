"""What a query asks for, and which index scans answer it. No I/O, no data.

`parser` checks a query message, `filters` its filter, `planner` chooses the index scans that make a
`query_plan`. `query_shapes` plans queries that differ only in their values once; `query_cursors`
are the bytes of cursors.

Invariants:

1. A plan never sorts and never looks at an entity. A query that no index serves is refused with the
   index to add.
2. Whether a query is allowed does not depend on the values in it.
"""
