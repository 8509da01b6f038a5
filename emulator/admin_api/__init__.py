"""The Datastore Admin API: indexes, exports, imports and long-running operations.

Callers use `admin_service`, which loads the other modules with the first call: an engine that
nobody administers does not pay for their protobuf classes. `admin_methods` sends each call to
`index_methods`, `transfer_methods` or `operations`.

Invariant: operations live in the process; a restart forgets them, and never half of an import.
"""
