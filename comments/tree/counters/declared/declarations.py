"""Store the declarations of a website's counters.

The declarations are stored as JSON in the row with the website's own numbers, because each delivery
of events reads and writes that row anyway. A website without declared counters therefore has no
additional costs.

    Counter "site/{site}#0"
            `declared`: {"counters": [...], "removed": [3], "last": 5, "mended": "..."}
    Job "counters/{site}"
            exists while a counter is incomplete, or while numbers of a removed counter are left;
            `position` is the time at which a process last began to work on it

A delivery reads the declarations in the transaction that counts its events. A new counter therefore
counts exactly the events that follow its declaration. The job `declared_backfill` adds the comments
that existed before. Each generation is used only once. A changed counter gets a new generation, and
a removed generation is never written again, so the job can delete its numbers.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any

import msgspec

from comments import errors
from comments.domain import decoders
from comments.domain.counters import declared_counters
from comments.domain.counters.declared_counters import Declaration, DeclaredCounter
from comments.store import ownership, reads, transactions
from comments.store.models import counter_rows, event_rows, schema

JOBS = "counters/"
_JOB_OWNER = "declarations"


class SiteDeclarations(msgspec.Struct, frozen=True, omit_defaults=True):
    """A website's declared counters, in the order of their declaration.

    `removed` lists generations whose numbers must still be deleted. `last` is the last generation
    that was used. `mended` identifies the last correction (`declared_counts.mend`).
    """

    counters: tuple[DeclaredCounter, ...] = ()
    removed: tuple[int, ...] = ()
    last: int = 0
    mended: str = ""

    @property
    def is_settled(self) -> bool:
        """Return whether the job has nothing left to do."""
        return not self.removed and all(counter.is_complete for counter in self.counters)

    def get(self, name: str) -> DeclaredCounter | None:
        """Return the counter with this name, or None."""
        return next(
            (counter for counter in self.counters if counter.declaration.name == name), None
        )


_DECLARATIONS = decoders.json(SiteDeclarations)


def in_row(row: counter_rows.CounterRow | None) -> SiteDeclarations:
    """Decode the declarations in the row of a website's numbers."""
    if row is None or not row.declared:
        return SiteDeclarations()
    return _DECLARATIONS.decode(row.declared)


def of_site(site: str) -> SiteDeclarations:
    """Return a website's declared counters, with one read."""
    return in_row(reads.get(counter_rows.site_counter_key(site)))


def counter(site: str, name: str) -> DeclaredCounter:
    """Return a website's counter.

    Raises:
        errors.NotFound: the website has no counter with this name.
    """
    return _existing_counter(of_site(site), name)


def add(site: str, declaration: Declaration, *, now: datetime) -> DeclaredCounter:
    """Declare a counter. Afterwards, the caller runs the job, which counts existing comments.

    Raises:
        errors.Conflict: there is a counter with this name, or there are too many counters.
    """

    def body(known: SiteDeclarations) -> SiteDeclarations:
        own = known.get(declaration.name)
        if own is not None:
            if transactions.may_have_run() and own.declaration == declaration:
                return known  # An earlier run committed, but its response was lost.
            raise errors.Conflict("counter-exists", value=declaration.name)
        if len(known.counters) >= declared_counters.MOST:
            raise errors.Conflict("too-many-counters", limit=declared_counters.MOST)
        return _with(known, declaration)

    return _change_counters(site, declaration.name, body, now=now)


def change(site: str, declaration: Declaration, *, now: datetime) -> DeclaredCounter:
    """Replace the declaration of the counter with the same name, and start its numbers anew.

    If the declaration is the same as before, the numbers stay.

    Raises:
        errors.NotFound: the website has no counter with this name.
    """

    def body(known: SiteDeclarations) -> SiteDeclarations:
        if _existing_counter(known, declaration.name).declaration == declaration:
            return known
        return _with(known, declaration)

    return _change_counters(site, declaration.name, body, now=now)


def remove(site: str, name: str, *, now: datetime) -> None:
    """Remove a counter. The job deletes its numbers.

    Raises:
        errors.NotFound: the website has no counter with this name.
    """

    def body() -> None:
        row, known = read_row(site)
        if known.get(name) is None and transactions.may_have_run():
            return
        _existing_counter(known, name)
        transactions.apply(row_writes(row, _without(known, name)), _job_writes(site, now))

    transactions.transaction(body)


def row_writes(row: counter_rows.CounterRow, known: SiteDeclarations) -> ownership.Writes:
    """Write a website's declarations into the row with the website's numbers."""
    row.declared = msgspec.json.encode(known).decode()
    return ownership.Writes(counter_rows.OWNER, put=(row,))


def forget_removed(site: str, generation: int) -> None:
    """Record that the numbers of a removed generation are deleted."""

    def body() -> None:
        row, known = read_row(site)
        if generation in known.removed:
            left = tuple(other for other in known.removed if other != generation)
            transactions.apply(row_writes(row, msgspec.structs.replace(known, removed=left)))

    transactions.transaction(body)


def unsettled_sites(before: datetime) -> list[str]:
    """Return the websites on whose job no process has begun to work since `before`."""
    where = (("__key__", ">=", JOBS), ("__key__", "<", JOBS.replace("/", "0")))
    query = reads.Query("Job", where=where, order=("__key__",))
    return [
        message.key.path[-1].name.removeprefix(JOBS)
        for message in reads.fetch(query)
        if message.properties["position"].string_value < before.isoformat()
    ]


def begin_job(site: str, *, before: datetime, now: datetime) -> bool:
    """Begin a website's job; return False if another process has begun it since `before`."""

    def body() -> bool:
        row = reads.get(job_key(site))
        if row is None or (row.position >= before.isoformat() and not transactions.may_have_run()):
            return False
        transactions.apply(_job_writes(site, now))
        return True

    return transactions.transaction(body)


def end_job(site: str) -> None:
    """Delete a website's Job row if the job has nothing left to do."""

    def body() -> None:
        if of_site(site).is_settled:
            transactions.apply(ownership.Writes(_JOB_OWNER, delete=(job_key(site),)))

    transactions.transaction(body)


def job_key(site: str) -> schema.RowKey:
    """Return the key of a website's Job row."""
    return event_rows.job_key(f"{JOBS}{site}")


def _change_counters(
    site: str,
    name: str,
    change: Callable[[SiteDeclarations], SiteDeclarations],
    *,
    now: datetime,
) -> DeclaredCounter:
    def body() -> DeclaredCounter:
        row, known = read_row(site)
        after = change(known)
        if after != known:
            transactions.apply(row_writes(row, after), _job_writes(site, now))
        return _existing_counter(after, name)

    return transactions.transaction(body)


def read_row(site: str) -> tuple[Any, SiteDeclarations]:
    """Return the row of a website's numbers, and the declarations in it."""
    row = reads.get(counter_rows.site_counter_key(site)) or counter_rows.site_counter(site)
    return row, in_row(row)


def _job_writes(site: str, now: datetime) -> ownership.Writes:
    row = event_rows.JobRow(key=job_key(site), position=now.isoformat())
    return ownership.Writes(_JOB_OWNER, put=(row,))


def _existing_counter(declared: SiteDeclarations, name: str) -> DeclaredCounter:
    counter = declared.get(name)
    if counter is None:
        raise errors.NotFound("counter", name)
    return counter


def _without(known: SiteDeclarations, name: str) -> SiteDeclarations:
    own = known.get(name)
    if own is None:
        return known
    left = tuple(counter for counter in known.counters if counter is not own)
    return msgspec.structs.replace(known, counters=left, removed=(*known.removed, own.generation))


def _with(known: SiteDeclarations, declaration: Declaration) -> SiteDeclarations:
    """Add a counter, or replace the counter with its name, at the same place in the list."""
    made = DeclaredCounter(declaration, known.last + 1)
    old = known.get(declaration.name)
    left = _without(known, declaration.name)
    place = len(known.counters) if old is None else known.counters.index(old)
    counters = (*left.counters[:place], made, *left.counters[place:])
    return msgspec.structs.replace(left, counters=counters, last=made.generation)
