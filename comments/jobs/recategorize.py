"""Recategorizing: a thread's change of categories, as a work that may be interrupted anywhere.

Each comment holds the categories it is counted under, so a change of its thread's goes through all
of them. Owns that walk and its journal, a Job:

1. one transaction gives the thread its categories, numbers the change (`Thread.filed`) and writes
   the journal (`category_journal`): which change, and after which comment the walk goes on. `tree`
   does the same where the comment that names a thread comes or goes;
2. each step takes the next comments by key, and in one transaction counts them under what the
   thread has by now (`job_writes.recategorize`) and moves the journal on; the last one deletes it.

What must stay true:

- a comment placed after 1 has the new categories, because whoever places it reads the thread; one
  placed before is met by the walk, because it begins later and keys of comments never change;
- a comment moves from where it is counted, whatever that is, in the commit that tells of it, so
  changes that follow each other, and comments that change meanwhile, add up;
- a step whose journal is not where it was does nothing: two runners share the walk.

What was interrupted is finished by `finish`, which every process with a worker calls from time to
time. Changing to the same categories walks again, and mends comments that damage left elsewhere.
"""

from collections.abc import Iterable
from datetime import datetime

from comments import errors
from comments.domain import categories, records
from comments.events import backlog
from comments.store import ownership, reads, transactions
from comments.store.models import comment_rows, conversion
from comments.tree import job_writes, values
from comments.tree.threads import category_journal, details

AT_ONCE = 50  # comments in one transaction, and in one event
STEPS = 100  # of one call of `finish`: a worker has more to do


def change(name: records.ThreadName, names: Iterable[str], *, now: datetime) -> int:
    """Give a thread other categories; how many comments moved.

    Raises:
        errors.BadInput: a name is refused, or there are too many.
        errors.NotFound: there is no such thread.
        errors.Overloaded: the store is busy. What was begun is finished later.
    """
    begin(name, categories.canonical_set(names))
    return run(name, now=now)


def run(name: records.ThreadName, *, now: datetime) -> int:
    """Go on with the change of a thread to its end, if one was begun; how many comments moved."""
    moved = 0
    while (more := step(name, now=now)) is not None:
        moved += more
    return moved


def begin(name: records.ThreadName, names: tuple[str, ...]) -> None:
    """Give a thread its categories and begin the walk anew. Those who post follow at once."""

    def body() -> None:
        thread = reads.get(comment_rows.thread_key(name))
        if thread is None:
            raise errors.NotFound("thread", name.id)
        transactions.apply(details.set_categories(thread, names))

    transactions.transaction(body)


def step(name: records.ThreadName, *, now: datetime) -> int | None:
    """Go through the next comments; how many moved, None if there is nothing left to do."""
    key = category_journal.key(comment_rows.thread_key_name(name))
    row = reads.get(key)
    if row is None:
        return None
    seen: str = row.position
    position = category_journal.position(row)
    ids = _next(name, position.after)

    def body() -> values.Recategorized:
        journal = reads.get(key)
        if journal is None or journal.position != seen:
            return values.Recategorized((), 0)
        refiled = job_writes.recategorize(name, ids, now=now)
        transactions.apply(*refiled.writes, _moved_on(name, position, ids))
        return refiled

    refiled = transactions.transaction(body)
    for event in refiled.events:
        backlog.tell(event)
    return refiled.changed


def finish(*, now: datetime, steps: int = STEPS) -> int:
    """Go on with every change that was begun and not finished, so many steps; how many moved."""
    moved = 0
    for name in _begun():
        while steps > 0 and (more := step(name, now=now)) is not None:
            steps -= 1
            moved += more
    return moved


def _moved_on(
    name: records.ThreadName, position: category_journal.Position, ids: list[str]
) -> ownership.Writes:
    thread = comment_rows.thread_key_name(name)
    if len(ids) < AT_ONCE:
        return ownership.Writes("recategorize", delete=(category_journal.key(thread),))
    journal = category_journal.journal(thread, position._replace(after=ids[-1]))
    return ownership.Writes("recategorize", put=(journal,))


def _next(name: records.ThreadName, after: str) -> list[str]:
    where: list[tuple[str, str, object]] = [("thread", "=", comment_rows.thread_key_name(name))]
    if after:
        where.append(("__key__", ">", after))
    query = reads.Query("Comment", where=where, order=("__key__",), limit=AT_ONCE, keys_only=True)
    return [message.key.path[-1].name for message in reads.fetch(query)]


def _begun() -> list[records.ThreadName]:
    jobs = category_journal.PREFIX
    where = (("__key__", ">=", jobs), ("__key__", "<", jobs.replace("/", "0")))
    query = reads.Query("Job", where=where, order=("__key__",), keys_only=True)
    names = [message.key.path[-1].name.removeprefix(jobs) for message in reads.fetch(query)]
    rows = reads.get_multi([comment_rows.thread_key_of(name) for name in names])
    return [conversion.thread_record(row).name for row in rows if row is not None]
