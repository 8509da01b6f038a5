"""Parsing queries, and planning the index scans that answer them. No I/O, no data.

`parser` checks a query message, `filters` its filter, and `planner` chooses the index scans that
form a `query_plan`. `query_cursors` encodes and decodes cursors.

Invariants:

1. A plan never sorts and never reads an entity. If no index serves a query, it is refused and the
   error names the index to add.
2. The values in a query do not affect whether the query is allowed.
"""
