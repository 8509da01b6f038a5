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
from datetime import datetime

from comments import errors
from comments.domain import records
from comments.domain.ids import sorthash
from comments.reading.compaction import compactor, leftovers
from comments.store import ownership, reads, transactions
from comments.store.models import bucket_rows, comment_rows
from comments.tree.bulk import job_writes

_TRIES = 5
_CANDIDATES = 20  # Comments to read so that one can be flagged
_OWNER = "compactor"


def rebuild(
    scheme: sorthash.Scheme, name: records.ThreadName, *, now: datetime | None = None
) -> compactor.CompactionResult:
    """Rebuild a thread. Pass the result to `compactor.clear` after `compactor.GRACE` seconds.

    If the process ends before it calls `clear`, the next compaction of the thread clears the flags.

    Raises:
        errors.Overloaded: other processes keep compacting the same thread.
    """
    request(name)
    for _ in range(_TRIES):
        done = compactor.compact(scheme, name, now=now)
        if done is not None:
            return done
    raise errors.Overloaded(f"another process is compacting {name.site} {name.id}")


def request(name: records.ThreadName) -> None:
    """Let readers use the ordered query until the next compaction, which rebuilds the thread."""
    if not transactions.transaction(functools.partial(_request, name)):
        leftovers.delete_orphans(name, leftovers.orphans(name))


def _request(name: records.ThreadName) -> bool:
    """Flag a comment; if there is none, delete the directory and return False."""
    where = (("thread", "=", comment_rows.thread_key_name(name)),)
    messages = reads.fetch(reads.Query("Comment", where=where, limit=_CANDIDATES, keys_only=True))
    asked = job_writes.rebuild_request_writes([message.key.path[-1].name for message in messages])
    if asked.put:
        transactions.apply(asked)
        return True
    key = bucket_rows.directory_key(name)
    if reads.get(key) is not None:
        # A large directory continues in Bucket entities, which the caller deletes with the other
        # buckets.
        transactions.apply(ownership.Writes(_OWNER, delete=(key,)))
    return False
