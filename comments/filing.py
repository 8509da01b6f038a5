"""Filing: a thread's change of categories, as a work that may be interrupted anywhere.

Each comment holds the categories it is counted under, so a change of its thread's goes through all
of them. Owns that walk and its journal, a Job:

1. one transaction gives the thread its categories, numbers the change (`Thread.filed`) and writes
   the journal (`filings`): which change, and after which comment the walk goes on. `tree` does
   the same where the comment that names a thread comes or goes;
2. each step takes the next comments by key, and in one transaction counts them under what the
   thread has by now (`tree.refile`) and moves the journal on; the last one deletes it.

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

from comments import categories, datastore, errors, filings, models, records, tasks, tree

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
        thread = datastore.get(models.thread_key(name))
        if thread is None:
            raise errors.NotFound("thread", name.id)
        datastore.apply(tree.filed(thread, names))

    datastore.transaction(body)


def step(name: records.ThreadName, *, now: datetime) -> int | None:
    """Go through the next comments; how many moved, None if there is nothing left to do."""
    key = filings.key(models.thread_key_name(name))
    row = datastore.get(key)
    if row is None:
        return None
    seen: str = row.position
    position = filings.position(row)
    ids = _next(name, position.after)

    def body() -> tree.Refiled:
        journal = datastore.get(key)
        if journal is None or journal.position != seen:
            return tree.Refiled((), 0)
        refiled = tree.refile(name, ids, now=now)
        datastore.apply(*refiled.writes, _moved_on(name, position, ids))
        return refiled

    refiled = datastore.transaction(body)
    for event in refiled.events:
        tasks.tell(event)
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
    name: records.ThreadName, position: filings.Position, ids: list[str]
) -> datastore.Writes:
    thread = models.thread_key_name(name)
    if len(ids) < AT_ONCE:
        return datastore.Writes("filing", delete=(filings.key(thread),))
    journal = filings.journal(thread, position._replace(after=ids[-1]))
    return datastore.Writes("filing", put=(journal,))


def _next(name: records.ThreadName, after: str) -> list[str]:
    where: list[tuple[str, str, object]] = [("thread", "=", models.thread_key_name(name))]
    if after:
        where.append(("__key__", ">", after))
    query = datastore.Query(
        "Comment", where=where, order=("__key__",), limit=AT_ONCE, keys_only=True
    )
    return [message.key.path[-1].name for message in datastore.fetch(query)]


def _begun() -> list[records.ThreadName]:
    jobs = filings.PREFIX
    where = (("__key__", ">=", jobs), ("__key__", "<", jobs.replace("/", "0")))
    query = datastore.Query("Job", where=where, order=("__key__",), keys_only=True)
    names = [message.key.path[-1].name.removeprefix(jobs) for message in datastore.fetch(query)]
    rows = datastore.get_multi([models.thread_key_of(name) for name in names])
    return [models.thread_record(row).name for row in rows if row is not None]
