"""Find in the journals which run of an import added a comment, and whether that run was undone.

After `import_journal.TERM`, a journal contains only the fact and the time of the import. The
journals are read only when a difference needs them, because most verifications find no difference.
"""

from datetime import datetime
from typing import NamedTuple

from comments.domain.ids import imported_ids
from comments.transfer.importing import import_journal


class ImportRun(NamedTuple):
    """A run of an import: the digest of its file, its time, and whether its comments are erased.

    `at` is None if an undo is removing the comments.
    """

    digest: str
    at: datetime | None
    is_erased: bool


class ImportHistory:
    """The imports of a site, and the comments and threads that each import added.

    What an import added is known only until the import's term ends.

    `digest` identifies the file that is verified, and `system` is its format.
    """

    def __init__(self, site: str, system: str, digest: str) -> None:
        self._site = site
        self._systems = {system, imported_ids.OWN}
        self._digest = digest
        self._imports: list[import_journal.Import] = []
        self._runs: dict[str, ImportRun] | None = None
        self._made: dict[str, ImportRun] = {}
        self.refresh()

    def refresh(self) -> None:
        """Read the imports again; if any has progressed, discard the journals read so far."""
        imports = sorted(import_journal.all_imports(self._site), key=lambda each: each.began)
        if imports != self._imports or any(stored.is_being_undone for stored in imports):
            self._runs = None
        self._imports = imports

    def run_of(self, comment_id: str) -> ImportRun | None:
        """Return the last run that added a comment; None if no journal contains the comment."""
        return self._journals().get(comment_id)

    def is_from_other_file(self, comment_id: str) -> bool:
        """Return whether an import of another file added a comment."""
        run = self.run_of(comment_id)
        return run is not None and run.digest != self._digest

    def is_undone(self, comment_id: str) -> bool:
        """Return whether a comment's import was undone, even if its journal no longer exists."""
        run = self.run_of(comment_id)
        return self.has_been_undone if run is None else run.is_erased

    @property
    def has_been_undone(self) -> bool:
        """Return whether the last import of the file was undone, or is being undone."""
        last = self._last()
        return last is not None and last.undoing is not None

    def first_revision(self, comment_id: str) -> int:
        """Return the revision with which an import stored a comment.

        If an undo has removed comments, this revision is higher than every revision of those
        comments.
        """
        undone = [stored for stored in self._imports if stored.undone and stored.revision]
        run = self.run_of(comment_id) if undone else None
        at = None if run is None else run.at
        before = (
            stored.revision for stored in undone if stored.undone and at and stored.undone <= at
        )
        return 1 + max(before, default=0)

    def has_made(self, thread_id: str) -> bool:
        """Return whether an import of this file is known to have created a thread."""
        self._journals()
        made = self._made.get(thread_id)
        return made is not None and made.digest == self._digest

    @property
    def is_unfinished(self) -> bool:
        """Return whether the last import of the file has not ended."""
        last = self._last()
        return last is not None and last.added is None and last.undoing is None

    @property
    def orders(self) -> int:
        """Return how many imports have added comments; each of them used the order of its file."""
        return sum(
            stored.system in self._systems and stored.undoing is None and stored.added != 0
            for stored in self._imports
        )

    def _last(self) -> import_journal.Import | None:
        return next(
            (stored for stored in self._imports[::-1] if stored.digest == self._digest), None
        )

    def _journals(self) -> dict[str, ImportRun]:
        if self._runs is None:
            self._runs, self._made = {}, {}
            for stored in self._imports:
                for at, batch in import_journal.batches(self._site, stored.id) if stored.id else ():
                    run = ImportRun(stored.digest, at, batch.is_erased)
                    self._runs.update(dict.fromkeys(batch.ids, run))
                    self._made.update(dict.fromkeys(batch.threads, run))
        return self._runs
