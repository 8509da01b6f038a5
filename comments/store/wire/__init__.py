"""Convert rows, queries and commits to protobuf messages, and run NDB on the store's channel.

Entry points: `codec` (converts rows to messages and back), `queries` and `ndb_client`.

NDB declares the kinds (`store/models/schema`), makes rows and looks up single entities. The hot
paths avoid NDB: its queries need ten times as much processor time per row, its transactions took
two thirds of the time for a post, and its retries sleep for seconds. The code uses no private
attribute of NDB.
"""
