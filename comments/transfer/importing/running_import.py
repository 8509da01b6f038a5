"""Write the journal and the progress of a running import (`import_journal`).

If a transaction adds nothing, no batch is written. A commit whose response was lost therefore does
not leave two batches. Importing the same file into the same site in the same format continues the
existing journal. If that import was undone or its term has ended, a new journal begins. The
transaction of each batch also reads the import's row, so a running import adds nothing once an undo
has begun.
"""

import contextlib
import functools
import hashlib
import time
from collections.abc import Callable, Sequence
from datetime import datetime

import msgspec

from comments import errors
from comments.domain.counters import declared_counters
from comments.domain.crypto import keyed_hashes
from comments.store import ownership, transactions
from comments.store.models import event_rows
from comments.transfer.importing import import_journal, import_process
from comments.transfer.parsing.imported_file import ImportedFile

PAUSE = 2.0  # Minimum seconds between two writes of the progress.
_LONGEST_NAME = 200  # Maximum number of characters of a file's name.
_ID_LENGTH = 10  # Number of characters.


class RunningImport:
    """A running import, which writes its own journal.

    Call `begin` first and `end` when the import is complete. A journal without an end belongs to an
    interrupted import.
    """

    def __init__(
        self, site: str, file: ImportedFile, now: datetime, clock: Callable[[], datetime]
    ) -> None:
        self.site = site
        self._clock = clock
        name = file.name.encode(errors="replace").decode()[:_LONGEST_NAME]
        self._file = file._replace(name=name)
        self._began = now
        self._seen = 0
        self._noted = 0.0
        self.id = ""
        self.revision = 1  # The first revision of new comments.

    def begin(self) -> None:
        """Store a new import, or continue the journal of an existing one.

        Raises:
            errors.UndoRunning: this or another import of the site is being undone.
        """
        self.id = transactions.transaction(self._begin)
        self._noted = time.monotonic()

    def advance(self, more: int) -> None:
        """Count comments as processed, and write the row at most every `PAUSE` seconds.

        If the store is busy, a later call writes the row.
        """
        self._seen += more
        if time.monotonic() - self._noted >= PAUSE:
            self._noted = time.monotonic()
            with contextlib.suppress(errors.Overloaded):
                transactions.transaction(functools.partial(self._change, seen=self._seen))

    def note_counters(self, counters: Sequence[declared_counters.Declaration]) -> None:
        """Record counters that the site does not have, before the import declares them."""

        def body() -> None:
            known = import_journal.get(self.site, self.id).counters
            self._change(counters=tuple(dict.fromkeys((*known, *counters))))

        transactions.transaction(body)

    def note_settings(self) -> None:
        """Record that the import replaces the site's settings."""
        transactions.transaction(functools.partial(self._change, has_settings=True))

    def end(self) -> None:
        """Record that the import is complete."""
        added = sum(len(batch.ids) for _, batch in import_journal.batches(self.site, self.id))
        transactions.transaction(functools.partial(self._change, seen=self._seen, added=added))

    def batch_writes(
        self, number: int, batch: import_journal.Batch, now: datetime
    ) -> ownership.Writes:
        """Return the row that records what a transaction adds, to be written in this transaction.

        Raises:
            errors.ImportRefused: the import is being undone.
        """
        import_journal.check_not_undone(import_journal.find(self.site, self.id))
        if not batch.ids and not batch.threads and not batch.entries:
            return ownership.Writes(import_journal.OWNER)
        first = (*batch.ids, *batch.entries, "threads")[0]
        key = f"{self.site}/{self.id}/{number:08}.{first}"
        return import_journal.batch_writes(
            event_rows.ImportBatchRow(key=event_rows.import_batch_key(key), at=now), batch
        )

    def _begin(self) -> str:
        file, now = self._file, self._clock()
        others = import_journal.check_no_undo(self.site)
        self.revision = 1 + max((other.revision for other in others), default=0)
        for number in range(1_000_000):
            name = _id(self.site, file, number)
            earlier = import_journal.find(self.site, name)
            if earlier is not None and (earlier.undone is not None or self._began >= earlier.ends):
                continue
            import_journal.check_not_undone(earlier)
            new = import_journal.Import(
                file.system, file.name, file.comments, 0, self._began, now, id=name
            )
            stored = msgspec.structs.replace(
                earlier or new,
                file=file.name,
                comments=file.comments,
                digest=file.digest,
                mapping=file.mapping,
                seen=0,
                at=now,
                resumed=now,
                added=None,
                process=import_process.own_mark(),
            )
            transactions.apply(import_journal.import_writes(self.site, stored))
            return name
        raise errors.ImportRefused(
            "The file was imported and undone too often. Change the file, then import it."
        )

    def _change(self, **changed: object) -> None:
        stored = import_journal.find(self.site, self.id)
        if stored is not None:
            writes = import_journal.change_writes(self.site, stored, at=self._clock(), **changed)
            transactions.apply(writes)


def _id(site: str, file: ImportedFile, number: int) -> str:
    """Return the id of a file's first, second or later import into a site."""
    text = msgspec.json.encode((site, file.system, file.digest, number))
    return keyed_hashes.text(hashlib.sha256(text).digest())[:_ID_LENGTH]
