"""End the term of imports: erase the addresses of imported comments, and delete the journal.

The addresses of imported authors are stored encrypted, like those of guests. `retention` erases the
address of a guest some time after the comment was created. An imported comment may already be older
when it is stored, so this module erases its address `import_journal.TERM` after the import.
"""

import functools
from datetime import datetime

from comments.jobs.importers import import_journal
from comments.store import reads, transactions
from comments.store.models import event_rows
from comments.tree import job_writes

_AT_ONCE = 20  # Batches per query.


def expire(now: datetime) -> int:
    """Process the batches whose term has ended; return their number.

    Raises:
        errors.Overloaded: the store is busy; the next call continues.
    """
    number = 0
    before = now - import_journal.TERM
    while names := import_journal.old(before, _AT_ONCE):
        for name in names:
            transactions.transaction(functools.partial(_expire, name, before))
        number += len(names)
    return number


def _expire(name: str, before: datetime) -> None:
    row = reads.get(event_rows.import_batch_key(name))
    if row is None or row.at is None or row.at > before:
        return
    batch = import_journal.content(row)
    if import_journal.get(*import_journal.import_of(name)).is_being_undone:
        # The undo needs the batch, erases the addresses and deletes the batch.
        row.at = None
        transactions.apply(import_journal.put(row, batch))
        return
    transactions.apply(job_writes.without_addresses(batch.ids), import_journal.gone(row))
