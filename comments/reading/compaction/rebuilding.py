"""Rebuild a thread's directory, buckets, ranking and first page from its comments.

A change that was made without `tree` (by a restore, a script or another client) sets no flag, so no
compaction finds it. A rebuild ignores the old directory. It has two steps:

1. **Request**: flag one comment as moved (`deltas.DeltaRow.moved`). From this commit on, every
   process answers with the ordered query, so readers see the comments as they are stored.
2. **Compact** as usual: a compaction that finds a moved comment reads all listed comments.

After a crash between the steps, or during the second step, the flag is still set, so the next
compaction of any process rebuilds the thread. Comments that are written during a rebuild are in the
delta, as during every compaction. A thread without comments has no row for the flag, so its
directory is deleted. A process that has cached the deleted directory may use it for up to
`view_cache.CACHE_MAX_AGE` seconds.
"""

import functools

from comments.domain import records
from comments.reading.compaction import leftovers
from comments.store import ownership, reads, transactions
from comments.store.models import bucket_rows, comment_rows
from comments.tree.bulk import job_writes

_CANDIDATES = 20  # Comments to read so that one can be flagged
_OWNER = "compactor"


def request(name: records.ThreadName) -> None:
    """Let readers use the ordered query until the next compaction, which rebuilds the thread."""
    if not transactions.transaction(functools.partial(_request, name)):
        leftovers.delete_orphans(name, leftovers.orphans(name))


def _request(name: records.ThreadName) -> bool:
    """Flag a comment; if there is none, delete the directory and return False."""
    where = (("thread", "=", comment_rows.thread_key_name(name)),)
    candidates = reads.names("Comment", where, limit=_CANDIDATES)
    asked = job_writes.rebuild_request_writes(candidates)
    if asked.put:
        transactions.apply(asked)
        return True
    key = bucket_rows.directory_key(name)
    if reads.get(key) is not None:
        # A large directory continues in Bucket entities, which the caller deletes with the other
        # buckets.
        transactions.apply(ownership.Writes(_OWNER, delete=(key,)))
    return False
