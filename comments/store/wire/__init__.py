"""Convert rows and queries to protobuf messages and back.

Entry points: `codec` (converts rows to messages and back) and `queries`.
"""
