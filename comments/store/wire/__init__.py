"""Convert rows, queries and commits to protobuf messages, and run NDB on the store's channel.

Entry points: `codec` (converts rows to messages and back), `queries` and `ndb_client`.

NDB declares the kinds (`store/models/schema`), makes rows and looks up single entities. The hot
paths avoid NDB: its queries need ten times as much processor time per row, its transactions took
two thirds of the time for a post, and its retries sleep for seconds. No code here uses a private
attribute of NDB; `models/schema` explains why that module does.
"""
