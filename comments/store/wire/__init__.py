"""Rows, queries and commits as protobuf messages, and NDB's client on our channel.

Doors: `codec` (rows to messages and back), `queries`, `ndb_client`.

NDB declares the kinds (`store/models/schema`), makes rows and looks single entities up. It is left
out where it costs too much: its queries take ten times the processor time of these messages for
each row, its transactions two thirds of the time of a post, and its retries sleep for seconds. No
private attribute of NDB is used.
"""
