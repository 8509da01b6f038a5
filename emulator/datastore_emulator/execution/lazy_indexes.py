"""Lazy indexes: make the built-in indexes that a query is the first to need.

Owns the check whether a plan's built-in indexes are complete, and the loop that makes missing
indexes step by step (`index_writer` takes each step). The answers, bills and plans of queries do
not depend on which indexes exist: a query that lacks one runs again once the index is complete.

Between two steps, other threads and processes have twice as much time to write as the step took.
Therefore a long fill delays other writers by at most one step, and it never delays readers.
"""

from __future__ import annotations

import time
from collections.abc import Collection

from datastore_emulator.queries import query_plan
from datastore_emulator.storage import file_store, row_reader

_PAUSE = 2  # Pause after a step, as a multiple of the step's duration.
_LONGEST_PAUSE = 0.5  # Maximum length of a pause in seconds.


class NotMade(Exception):
    """A query needs built-in indexes that are not complete: make them and run the query again."""

    def __init__(self, codes: tuple[bytes, ...]) -> None:
        super().__init__(codes)
        self.codes = codes


def check(plan: query_plan.QueryPlan, definitions: row_reader.Definitions) -> None:
    """Check that all built-in indexes that a plan scans are complete.

    Raises:
        NotMade: At least one of the indexes is incomplete.
    """
    ready = definitions.built_ins.ready
    needed = {
        scan.index.code: None
        for branch in plan.branches
        for scan in branch.scans
        if scan.index is not None and scan.index.is_builtin and scan.index.properties
    }
    missing = tuple(code for code in needed if code not in ready)
    if missing:
        raise NotMade(missing)


def make(store: file_store.FileStore, codes: Collection[bytes]) -> None:
    """Make built-in indexes of one kind, and return once they are complete."""
    while True:
        began = time.monotonic()
        if take_step(store, codes):
            return
        time.sleep(min(_PAUSE * (time.monotonic() - began), _LONGEST_PAUSE))
        store.checkpoint_if_due()


def take_step(store: file_store.FileStore, codes: Collection[bytes]) -> bool:
    """Take one step toward making the indexes; return whether they are complete."""
    with store.write() as writer:
        return writer.take_step(codes)
