"""Read a thread's terms: the thread's own data that decides whether it accepts comments.

Every page of comments shows the result (`thread_access`), so reading the terms must cost nothing.
The directory of a compacted thread therefore stores a copy of the terms, and a process reads this
copy together with the directory. Compaction does not update the copy, because a thread may be
closed without a change to its comments, and then nothing would be compacted.

The copy in a directory equals the thread's row. The transaction that changes the terms changes
both, and the transaction that switches to another directory keeps the copy. A process uses terms
for at most a minute. It uses its own change to the terms at once.
"""

import msgspec

from comments.domain import decoders, records
from comments.store import ownership, reads
from comments.store.memory import caches, per_process
from comments.store.models import bucket_rows, comment_rows, conversion
from comments.threads import thread_cache

_OWNER = "thread_terms"
_TERM = 60.0  # Seconds for which a copy is used
_MOST_COPIES = 10_000  # Maximum number of threads

# Terms that this process has read from a thread's row, or has just changed.
COPIES = per_process.PerProcess(
    lambda: caches.Cache[records.ThreadName, records.ThreadTerms](_MOST_COPIES, _TERM)
)
_TERMS = decoders.json(records.ThreadTerms)


def get(name: records.ThreadName, stored: records.ThreadTerms | None) -> records.ThreadTerms:
    """Return a thread's terms, at most a minute old.

    `stored` is the copy in the thread's directory. If there is no copy, read the thread's row once
    a minute.
    """
    copies = COPIES.get()
    terms = copies.get(name) or stored
    if terms is None:
        drops, thread_drops = copies.drops, thread_cache.COPIES.get().drops
        row = reads.get(comment_rows.thread_key(name))
        terms = of(row)
        copies.keep(name, terms, drops=drops)
        if row is not None:
            thread_cache.keep(conversion.thread_record(row), drops=thread_drops)
    return terms


def of(row: comment_rows.ThreadRow | None) -> records.ThreadTerms:
    """Return the terms in a thread's row, or the terms of a new thread if there is no row."""
    if row is None:
        return records.ThreadTerms()
    thread = conversion.thread_record(row)
    return records.ThreadTerms(thread.state, thread.policy, thread.created)


def copy_writes(row: comment_rows.ThreadRow) -> ownership.Writes:
    """Change the terms in a thread's directory, in the transaction that writes the thread's row."""
    directory = reads.get(bucket_rows.directory_key(conversion.thread_record(row).name))
    if directory is None:
        return ownership.Writes(_OWNER)
    directory.terms = encode(of(row))
    return ownership.Writes(_OWNER, put=(directory,))


def refresh(thread: records.Thread) -> None:
    """Use a thread's new terms in this process, after their transaction."""
    copies = COPIES.get()
    copies.drop(thread.name)
    copies.keep(thread.name, records.ThreadTerms(thread.state, thread.policy, thread.created))


def encode(terms: records.ThreadTerms) -> str:
    """Encode the copy for a directory: JSON [state, policy, created]."""
    return msgspec.json.encode(terms).decode()


def decode(stored: str) -> records.ThreadTerms | None:
    """Decode the copy from a directory. Return None if an older release wrote no copy."""
    return _TERMS.decode(stored) if stored else None
