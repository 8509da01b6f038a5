"""Measure the cost of compacting a thread that grows comment by comment.

`edits` and `votes` are the numbers of edits and new scores per post. Each edit changes one of the
last hundred comments. Half of the new scores are for root comments, which are ranked. The engine's
meter counts the compactions' writes: buckets, directories, rankings, and rows with cleared flags.
"""

import contextlib
import dataclasses
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from benchmarks.threads import shapes
from comments import config
from comments.domain import records
from comments.events import backlog
from comments.limits.site_request import SiteRequest
from comments.posting import admission, new_comment, own_comment
from comments.reading.compaction import compactor
from comments.reading.materialized import directories
from comments.sites import site_settings
from comments.store import connection, ownership, reads, transactions
from comments.store.models import comment_rows
from datastore_emulator import inprocess, testing
from tests.support import programs

NAME = records.ThreadName("bench", "page")
SETTINGS = config.Settings(secret="the secret of a growing thread")
START = datetime(2026, 1, 1, tzinfo=UTC)
WORDS = "a comment is read far more often than it is changed and the reader wants it whole "
RECENT = 100  # Number of comments that people still edit


@dataclasses.dataclass(slots=True)
class Spent:
    """The cost of the compactions."""

    changes: int = 0
    writes: int = 0
    deletes: int = 0
    reads: int = 0


class Replay:
    """A thread that grows and is compacted."""

    def __init__(
        self, shape: shapes.Shape, engine: inprocess.Engine, *, edits: float, votes: float
    ) -> None:
        self._shape = shape
        self._engine = engine
        self._edits = edits
        self._votes = votes
        self._chance = random.Random(1)
        self._posted: list[records.Comment] = []
        self.spent = Spent()

    def run(self, at_once: int) -> None:
        """Post, edit and compact the whole thread."""
        for number, _ in enumerate(self._changes(), 1):
            if number % at_once == 0:
                self._compact()
        self._compact()

    def _changes(self) -> Iterator[None]:
        site = site_settings.add(
            "bench", ["https://bench.example"], scheme=SETTINGS.scheme, now=START
        )
        for place, parent in enumerate(self._shape):
            self.post(site, place, parent, START + timedelta(seconds=place))
            self.spent.changes += 1
            yield
            if self._chance.random() < self._edits:
                self.edit(place)
                self.spent.changes += 1
                yield
            if self._chance.random() < self._votes:
                self.vote(START + timedelta(seconds=place))
                self.spent.changes += 1
                yield

    def post(self, site: records.Site, place: int, parent: int | None, now: datetime) -> None:
        """Post the comment at a position."""
        draft = admission.Submission(
            NAME.id,
            None if parent is None else self._posted[parent].id,
            records.Author(f"reader {place % 400}", id=f"g:{place % 400}"),
            f"{place}: {WORDS * (1 + place % 4)}",
        )
        self._posted.append(new_comment.post(draft, SiteRequest(site, SETTINGS, now)).comment)

    def edit(self, place: int) -> None:
        """Edit one of the last comments."""
        chosen = self._chance.choice(self._posted[-RECENT:])
        own_comment.edit(
            chosen.id,
            author_id=chosen.author.id,
            body=f"edited at {place}: {WORDS}",
            revision=None,
            settings=SETTINGS,
            now=chosen.created,
        )

    def vote(self, now: datetime) -> None:
        """Write a new score. One row write counts the votes from several seconds."""
        recent = self._posted[-RECENT:]
        roots = [row for row in self._posted if row.parent is None]
        chosen = self._chance.choice(roots if self._chance.random() < 0.5 else recent)

        def body() -> None:
            row = reads.get(comment_rows.comment_key(chosen.id))
            row.up += 1
            row.score += 1
            row.revision += 1
            if not row.unfolded:
                row.unfolded, row.fold_by = True, now + timedelta(seconds=backlog.FOLD_AFTER)
            transactions.apply(ownership.Writes("tree", put=(row,)))

        transactions.transaction(body)

    def _compact(self) -> None:
        with testing.meter(self._engine) as met:
            folded = compactor.compact(SETTINGS.scheme, NAME)
            if folded is None:
                raise AssertionError("another process compacts here")
            compactor.clear(folded)
        self.spent.writes += met.writes
        self.spent.deletes += met.deletes
        self.spent.reads += met.reads


def replay(shape: shapes.Shape, *, edits: float, votes: float, at_once: int) -> tuple[Spent, int]:
    """Replay a thread on a fresh engine; return the cost and the number of buckets."""
    with contextlib.ExitStack() as stack:
        engine = stack.enter_context(
            inprocess.open_engine(None, indexes=programs.ROOT / "index.yaml")
        )
        store = connection.Store(inprocess.Channel(engine), project="bench", deadline=60.0)
        stack.enter_context(store.context())
        thread = Replay(shape, engine, edits=edits, votes=votes)
        thread.run(at_once)
        return thread.spent, len(directories.load_directory(NAME).lines)
