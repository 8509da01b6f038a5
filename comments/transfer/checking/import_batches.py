"""Batches: the comments that an import writes in one transaction, by thread.

A batch contains as many comments as one commit may write, from one or several threads. Filling
batches saves time, because a commit costs more than a comment and most threads are short.
"""

from comments.domain import records
from comments.transfer.checking import source_pages, write_order
from comments.tree import values
from comments.tree.bulk import bulk_append

# The maximum number of comments in a batch.
BATCH = 200
# The maximum number of entities that a batch writes, not counting its events, its row in the
# journal and the ancestors of its first comment. Every Datastore version accepts 500 entities in a
# transaction.
BATCH_WRITES = 450
_OF_COMMENT = 2  # Entities: the comment and its author's row in the thread
_OF_THREAD = 2  # Entities: the thread and its counter
# The maximum number of bytes of text in a batch. A transaction is limited to 10 MiB, and each text
# is stored about twice.
BATCH_BYTES = 3 << 20


class ImportBatch:
    """The comments of one transaction, by thread, with their number and size."""

    def __init__(self) -> None:
        self.threads: list[values.ImportedThread] = []
        self.comments = 0
        self._writes = 0
        self._bytes = 0
        self._nodes: list[records.ImportedComment] = []  # The nodes of the last thread

    def has_room_for(
        self, thread: source_pages.PlannedThread, node: write_order.Node | None
    ) -> bool:
        """Return whether another comment, or a thread without comments, fits into the batch.

        An empty batch accepts any comment.
        """
        return not self.threads or (
            self.comments < BATCH
            and self._writes + self._write_count(thread, node) <= BATCH_WRITES
            and (node is None or self._bytes + node.place[1] <= BATCH_BYTES)
        )

    def add(
        self,
        thread: source_pages.PlannedThread,
        node: write_order.Node | None,
        comment: records.ImportedComment | None,
    ) -> None:
        """Add a comment with its thread, or a thread without comments."""
        self._writes += self._write_count(thread, node)
        if not self._contains(thread):
            self._nodes = []
            self.threads.append(
                values.ImportedThread(
                    thread.name,
                    self._nodes,
                    thread.title,
                    thread.url,
                    thread.state,
                    thread.kept,
                    thread.newest,
                )
            )
        if node is not None and comment is not None:
            self._bytes += node.place[1]
            self.comments += 1
            self._nodes.append(comment)

    def _contains(self, thread: source_pages.PlannedThread) -> bool:
        return bool(self.threads) and self.threads[-1].name == thread.name

    def _write_count(
        self, thread: source_pages.PlannedThread, node: write_order.Node | None
    ) -> int:
        # Comments are in preorder, so a parent is in the same batch or is an ancestor of its first
        # comment.
        of_thread = 0 if self._contains(thread) else _OF_THREAD
        if node is None:
            return of_thread
        return of_thread + _OF_COMMENT + min(node.more, bulk_append.VOTES_AT_ONCE)
