"""Maintain the time of a thread's newest comment, for lists of threads.

`Thread.active` is at most `PACE` earlier than the newest comment that was ever posted, and never
decreases. A reply therefore writes the thread's row at most once in `PACE`. All other replies leave
this row unchanged, so they do not conflict with each other. An import sets `Thread.active` for the
threads that it creates. It does not change the value for other threads, because imported comments
are old and an undo of the import could not restore the value.
"""

from datetime import datetime, timedelta

from comments.domain import records
from comments.store import ownership, reads
from comments.store.models import comment_rows, conversion
from comments.threads.comment_flags import OWNER

PACE = timedelta(minutes=10)


def advance(thread: comment_rows.ThreadRow, created: datetime) -> bool:
    """Note a new comment. Return whether the thread's row must be written."""
    before: datetime | None = thread.active
    if before is None or created > before:
        thread.active = created
    return before is None or created - before >= PACE


def adoption_writes(name: records.ThreadName) -> ownership.Writes:
    """Set the time in a row from a release that did not store it.

    The time is the creation time of the newest comment that readers see or, if there is none, of
    the thread.
    """
    thread = reads.get(comment_rows.thread_key(name))
    if thread is None or thread.active is not None:
        return ownership.Writes(OWNER)
    query = reads.Query(
        "Comment",
        where=(("thread", "=", thread.key.id()), ("listed", "=", True)),
        order=("-created", "-sort_hash"),
        limit=1,
    )
    newest = [conversion.comment_from_message(message).created for message in reads.fetch(query)]
    thread.active = newest[0] if newest else thread.created
    return ownership.Writes(OWNER, put=(thread,))
