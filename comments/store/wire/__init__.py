"""Rows, queries and commits as protobuf messages, and NDB's client on our channel.

Doors: `codec` (rows to messages and back), `queries`, `wire_transaction`, `ndb_client`.
"""
