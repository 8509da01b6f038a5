"""Running lookups, queries and aggregations on a snapshot.

Use `query_runner` for RunQuery and RunAggregationQuery, `lookups` for Lookup, `cost_meter` for what
Google's service would bill, and `automatic_indexes` to add the indexes that queries lack.
Internally, a query is prepared (`prepared_queries`), its indexes are scanned (`index_scan`,
`merge_join`), and the results are returned in batches (`query_batches`) or as numbers
(`aggregations`).

Invariants:

1. The cost of a query depends on the index entries it reads, not on the number of stored entities.
2. Everything that a transaction reads, ranges included, is recorded in its ReadSet.
3. A response stays below the 4 MiB that clients accept.
"""
