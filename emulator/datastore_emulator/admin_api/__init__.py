"""The Datastore Admin API: indexes, exports, imports and long-running operations.

Callers use `admin_service`, which loads the other modules on the first call. An engine that
receives no admin calls therefore never loads their protobuf classes. `admin_methods` passes each
call to `index_methods`, `transfer_methods` or `operations`.

Operations exist only in the process that started them: a restart forgets them but never leaves an
import half done.
"""
