"""Running lookups, queries and aggregations on a snapshot.

Use `query_runner` for RunQuery and RunAggregationQuery, `lookups` for Lookup, `cost_meter` for what
production would bill, `automatic_indexes` to add the indexes that queries lack. Inside, a query is
prepared (`prepared_queries`), walked (`index_scan`, `merge_join`) and answered in batches
(`query_batches`) or as numbers (`aggregations`).

Invariants:

1. A query costs the index entries that it takes, not the entities that are stored.
2. Everything that a transaction reads is noted in its ReadSet, ranges included.
3. An answer stays below the 4 MiB that clients accept.
"""
