"""Change a thread's categories in a job that can be interrupted at any point.

Each comment stores the categories under which it is counted, so changing a thread's categories
requires a scan of all its comments. This module owns this scan and its journal, a Job row:

1. One transaction sets the thread's categories, assigns a number to the change (`Thread.filed`) and
   writes the journal (`category_journal`). The journal contains the number of the change and the
   comment after which the scan continues. `tree` does the same when the comment that names a thread
   appears or disappears.
2. Each step reads the next comments in key order. One transaction counts these comments under the
   thread's current categories (`job_writes.recategorize`) and advances the journal. The last step
   deletes the journal.

`finish` continues interrupted scans; every process with a worker calls it from time to time.
Setting the same categories again repeats the scan and corrects comments that are counted under
wrong categories because of damage.

A comment that is added after step 1 has the new categories, because adding a comment reads its
thread. The scan finds every comment that was added earlier, because the scan starts later and
comment keys never change. A comment is removed from the categories under which it is actually
counted, in the commit that writes the event about the move. Counts are therefore correct after
concurrent changes. A step does nothing if the journal has changed since the step read it, so two
processes can share a scan.
"""

from collections.abc import Iterable
from datetime import datetime

from comments import errors
from comments.domain import categories, records
from comments.events import backlog
from comments.store import ownership, reads, transactions
from comments.store.models import comment_rows, conversion
from comments.threads import category_journal, details
from comments.tree import values
from comments.tree.bulk import job_writes

AT_ONCE = 50  # Maximum number of comments per transaction and per event.


def change(name: records.ThreadName, names: Iterable[str], *, now: datetime) -> int:
    """Change a thread's categories and return the number of comments that moved.

    Raises:
        errors.BadInput: a name is invalid, or there are too many names.
        errors.NotFound: the thread does not exist.
        errors.Overloaded: the store is busy; a change that has begun is finished later.
    """
    begin(name, categories.canonical_set(names))
    return run_to_end(name, now=now)


def run_to_end(name: records.ThreadName, *, now: datetime) -> int:
    """If a change of a thread's categories has begun, finish it; return how many comments moved."""
    moved = 0
    while (more := step(name, now=now)) is not None:
        moved += more
    return moved


def begin(name: records.ThreadName, names: tuple[str, ...]) -> None:
    """Set a thread's categories and start the scan. New comments get the categories immediately."""

    def body() -> None:
        thread = reads.get(comment_rows.thread_key(name))
        if thread is None:
            raise errors.NotFound("thread", name.id)
        transactions.apply(details.category_writes(thread, names))

    transactions.transaction(body)


def step(name: records.ThreadName, *, now: datetime) -> int | None:
    """Run the next step of a scan; return how many comments moved, or None if there is no scan."""
    key = category_journal.key(comment_rows.thread_key_name(name))
    row = reads.get(key)
    if row is None:
        return None
    seen: str = row.position
    position = category_journal.position(row)
    ids = _next_comments(name, position.after)

    def body() -> values.Recategorized:
        journal = reads.get(key)
        if journal is None or journal.position != seen:
            return values.Recategorized((), 0)
        refiled = job_writes.recategorize(name, ids, now=now)
        transactions.apply(*refiled.writes, _move_on_writes(name, position, ids))
        return refiled

    refiled = transactions.transaction(body)
    for event in refiled.events:
        backlog.tell(event)
    return refiled.changed


def finish(*, now: datetime, steps: int) -> int:
    """Continue all unfinished scans for up to `steps` steps; return how many ran."""
    done = 0
    for name in _unfinished_threads():
        while done < steps and step(name, now=now) is not None:
            done += 1
    return done


def _move_on_writes(
    name: records.ThreadName, position: category_journal.JournalPosition, ids: list[str]
) -> ownership.Writes:
    thread = comment_rows.thread_key_name(name)
    if len(ids) < AT_ONCE:
        return ownership.Writes("recategorize", delete=(category_journal.key(thread),))
    journal = category_journal.journal(thread, position._replace(after=ids[-1]))
    return ownership.Writes("recategorize", put=(journal,))


def _next_comments(name: records.ThreadName, after: str) -> list[str]:
    where: list[tuple[str, str, object]] = [("thread", "=", comment_rows.thread_key_name(name))]
    if after:
        where.append(("__key__", ">", after))
    return reads.names("Comment", where, order=("__key__",), limit=AT_ONCE)


def _unfinished_threads() -> list[records.ThreadName]:
    jobs = category_journal.PREFIX
    where = (("__key__", ">=", jobs), ("__key__", "<", jobs.replace("/", "0")))
    names = reads.names("Job", where, order=("__key__",))
    rows = reads.get_multi([comment_rows.thread_key_of(name.removeprefix(jobs)) for name in names])
    return [conversion.thread_record(row).name for row in rows if row is not None]
