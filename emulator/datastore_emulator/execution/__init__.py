"""Lookups, queries and aggregations on a snapshot.

Use `query_runner` for RunQuery and RunAggregationQuery, `lookups` for Lookup, `cost_meter` for the
operations that Google's service would bill, and `automatic_indexes` to add indexes that queries
lack. Internally, `repeated_queries` caches answers that are still valid, and `prepared_queries`
prepares a query. `index_scan` and `merge_join` scan the query's indexes. `query_batches` then
returns results in batches, and `aggregations` returns numbers.

Invariant: A transaction's ReadSet records everything that the transaction reads, including ranges
(test_phantoms.py::test_a_phantom_is_aborted).

The cost of a query depends on the number of index entries that it reads, not on the number of
stored entities. A response stays below the 4 MiB that clients accept.
"""
