"""Protobuf messages for rows, queries and commits, and NDB's client on our own channel.

Entry points: `codec` (rows to messages and back), `queries`, `ndb_client`.

NDB declares the kinds (`store/models/schema`), makes rows and looks up single entities. The hot
paths avoid it: its queries need ten times the processor time per row, its transactions took two
thirds of the time of a post, and its retries sleep for seconds. The code uses no private attribute
of NDB.
"""
