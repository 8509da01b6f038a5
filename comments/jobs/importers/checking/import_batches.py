"""Batches: the comments that an import writes in one transaction, by thread.

A batch contains as many comments as a commit may, of one thread or of several: a commit costs more
than a comment, and most threads are short.
"""

from comments.domain import records
from comments.jobs.importers.checking import import_plan, write_order
from comments.tree import bulk_append, values

# The maximum number of comments in a batch.
BATCH = 200
# The maximum number of entities that a batch writes, without its events, its row in the journal and
# the ancestors of its first comment. Every Datastore version accepts 500 in a transaction.
BATCH_WRITES = 450
_OF_COMMENT = 2  # the comment and its author's row in the thread
_OF_THREAD = 2  # the thread and its counter
# The maximum bytes of text in a batch. A transaction is limited to 10 MiB, and each text is stored
# about twice.
BATCH_BYTES = 3 << 20


class ImportBatch:
    """The comments of one transaction, by thread, with their number and size."""

    def __init__(self) -> None:
        self.threads: list[values.ImportedThread] = []
        self.comments = 0
        self._writes = 0
        self._bytes = 0
        self._thread: import_plan.PlannedThread | None = None
        self._nodes: list[records.ImportedComment] = []

    def begin(self, thread: import_plan.PlannedThread) -> bool:
        """Add the next comments to this thread. Return False if a thread without comments is full.

        Only an export of Flatthread contains threads without comments.
        """
        self._thread, self._nodes = thread, []
        if thread.nodes:
            return True
        if self._writes + _OF_THREAD > BATCH_WRITES:
            return False
        self._writes += _OF_THREAD
        self._add_thread(thread)
        return True

    def takes(self, node: write_order.Node) -> bool:
        """Return whether the batch can take one more comment; an empty batch takes any comment."""
        return not self.comments or (
            self.comments < BATCH
            and self._writes + self._writes_of_next(node) <= BATCH_WRITES
            and self._bytes + node.place[1] <= BATCH_BYTES
        )

    def add(self, node: write_order.Node, comment: records.ImportedComment) -> None:
        self._writes += self._writes_of_next(node)
        self._bytes += node.place[1]
        self.comments += 1
        if not self._nodes and self._thread is not None:
            self._add_thread(self._thread)
        self._nodes.append(comment)

    def _add_thread(self, given: import_plan.PlannedThread) -> None:
        self.threads.append(
            values.ImportedThread(
                given.name,
                self._nodes,
                given.title,
                given.url,
                given.state,
                given.kept,
                given.newest,
            )
        )

    def _writes_of_next(self, node: write_order.Node) -> int:
        # In preorder, a parent is in the batch too, or is an ancestor of the batch's first comment.
        of_comment = _OF_COMMENT + min(node.more, bulk_append.VOTES_AT_ONCE)
        return of_comment if self._nodes else of_comment + _OF_THREAD
