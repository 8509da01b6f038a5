"""Parsing queries, and planning the index scans that answer them.

This room does no I/O and reads no data.

`parser` checks a query message, `filters` checks its filter, and `planner` chooses the index scans
that form a `query_plan`. `query_cursors` encodes and decodes cursors. `gql_parser` converts the
text of a GQL query to a query message.

A plan never sorts results and never reads entities. A query that no index serves is refused, and
the error names the index to add. The values in a query do not affect whether the query is allowed.
"""
