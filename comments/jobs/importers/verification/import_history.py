"""Find in the journals which run of an import added a comment, and whether it was undone.

After `import_journal.TERM`, a journal tells only that the import took place, and when. The journals
are read when a difference needs them, because most verifications find none.
"""

from datetime import datetime
from typing import NamedTuple

from comments.domain import imported_ids
from comments.jobs.importers import import_journal


class ImportRun(NamedTuple):
    """A run of an import: the digest of its file, its time, and whether its comments are erased.

    `at` is None if an undo is removing the comments.
    """

    import_id: str
    digest: str
    at: datetime | None
    is_erased: bool


class ImportHistory:
    """The journals of a site. An import's journal is kept for `import_journal.TERM`."""

    def __init__(self, site: str) -> None:
        self._site = site
        self._imports: list[import_journal.Import] | None = None
        self._highest: int | None = None  # the highest revision of undone imports
        self._with_journal: set[str] = set()
        self._comments: dict[str, ImportRun] = {}
        self._threads: dict[str, ImportRun] = {}

    def run_of(self, comment_id: str) -> ImportRun | None:
        """Return the last run that added a comment, or None if no journal has it."""
        self._load()
        return self._comments.get(comment_id)

    def first_revision(self, comment_id: str) -> int:
        """Return the revision with which an import stored a comment.

        After an undo, it is higher than every revision of the removed comments.
        """
        if self._highest is None:
            imports = import_journal.every(self._site)
            self._highest = max((each.revision for each in imports), default=0)
        run = self.run_of(comment_id) if self._highest else None
        if run is None or run.at is None:
            return 1
        before = [each for each in self._imports or () if each.undone and each.undone <= run.at]
        return 1 + max((each.revision for each in before), default=0)

    def run_that_made(self, thread_id: str) -> ImportRun | None:
        """Return the last run that made a thread, or None if no journal has it."""
        self._load()
        return self._threads.get(thread_id)

    def is_undone(self, digest: str) -> bool:
        """Return whether the last import of a file was undone, or is being undone."""
        found = self._last(digest)
        return found is not None and found.undoing is not None

    def is_unfinished(self, digest: str) -> bool:
        """Return whether the last import of a file has not ended."""
        found = self._last(digest)
        return found is not None and found.added is None and found.undoing is None

    def is_older(self, moment: datetime | None, digest: str) -> bool:
        """Return whether a time is before the last import of a file."""
        found = self._last(digest)
        return moment is not None and found is not None and moment < found.began

    def without_journal(self, system: str) -> int:
        """Count the imports from a system whose comments are stored but in no journal any more."""
        self._load()
        return sum(
            each.system in {system, imported_ids.OWN}
            and each.undoing is None
            and each.added != 0
            and each.id not in self._with_journal
            for each in self._imports or ()
        )

    def refresh(self) -> None:
        """Forget what was read if imports or undos have gone on since."""
        if self._imports is None:
            return
        if self._imports != import_journal.of(self._site) or any(
            each.undoing is not None and each.undone is None for each in self._imports
        ):
            self._imports = None

    def _last(self, digest: str) -> import_journal.Import | None:
        """Return the import of a file that began last."""
        self._load()
        return next((each for each in self._imports or () if each.digest == digest), None)

    def _load(self) -> None:
        if self._imports is not None:
            return
        self._imports = import_journal.of(self._site)
        self._with_journal, self._comments, self._threads = set(), {}, {}
        for each in sorted(self._imports, key=lambda each: each.began):
            for at, batch in import_journal.batches(self._site, each.id) if each.id else ():
                run = ImportRun(each.id, each.digest, at, batch.is_erased)
                self._with_journal.add(each.id)
                self._comments.update(dict.fromkeys(batch.ids, run))
                self._threads.update(dict.fromkeys(batch.threads, run))
