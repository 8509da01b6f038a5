"""What folding costs: writes for each change, counted by the engine's meter.

A thread of real shape is posted comment by comment and folded after every `tasks.FOLD_ROWS`
changes, the flags cleared each time before the next: its foldings do not overlap. For ten posts
there is one edit of one of the last hundred comments (`--edits`), which leaves its bucket with the
folding it is part of, and there are five new scores (`--votes`), half of them of first comments,
which are ranked. Counted are the entities that folding writes: buckets, directories, rankings, and
the rows whose flags it clears. Deletes cost a third of a write at most and are shown beside them.

The bar is 1.2 writes for each change. Usage:

    python -m benchmarks.folding [--shape FILE] [--size 2251] [--edits 0.1] [--votes 0.5]
        [--buckets 64,128,256] [--tails 64,128,256,512] [--changes 64]

FILE holds `id;parent;time` rows; without it a grown shape is used. Prints a Markdown table.
"""

import argparse
import contextlib
import dataclasses
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks import shapes
from comments import config
from comments.domain import records
from comments.events import backlog
from comments.posting import new_comment, own_comment
from comments.reading.compaction import compactor
from comments.reading.materialized import directories
from comments.sites import site_settings
from comments.sites.site_request import SiteRequest
from comments.store import connection, ownership, reads, transactions
from comments.store.models import comment_rows
from emulator import inprocess, testing

ROOT = Path(__file__).resolve().parent.parent
NAME = records.ThreadName("bench", "page")
SETTINGS = config.Settings(secret="the secret of a benchmark")  # noqa: S106 - of nobody
START = datetime(2026, 1, 1, tzinfo=UTC)
WORDS = "a comment is read far more often than it is changed and the reader wants it whole "
RECENT = 100  # comments that people still edit


@dataclasses.dataclass(slots=True)
class Spent:
    """What foldings cost."""

    changes: int = 0
    writes: int = 0
    deletes: int = 0
    reads: int = 0


class Replay:
    """A thread that grows and is folded."""

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
        """Post, edit and fold the whole thread."""
        for number, _ in enumerate(self._changes(), 1):
            if number % at_once == 0:
                self._fold()
        self._fold()

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
        """Post the comment of a place."""
        draft = new_comment.Submission(
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
        """Write a new score: the coalesced votes of some seconds come to one write of the row."""
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

    def _fold(self) -> None:
        with testing.meter(self._engine) as met:
            folded = compactor.fold(SETTINGS.scheme, NAME)
            if folded is None:
                raise SystemExit("nobody else folds here")
            compactor.clear(folded)
        self.spent.writes += met.writes
        self.spent.deletes += met.deletes
        self.spent.reads += met.reads


def replay(shape: shapes.Shape, *, edits: float, votes: float, at_once: int) -> tuple[Spent, int]:
    """Replay a thread on a fresh engine: what it cost, and how many buckets there are."""
    with contextlib.ExitStack() as stack:
        engine = stack.enter_context(inprocess.open_engine(None, indexes=ROOT / "index.yaml"))
        store = connection.Store(inprocess.Channel(engine), project="bench", deadline=60.0)
        stack.enter_context(store.context())
        thread = Replay(shape, engine, edits=edits, votes=votes)
        thread.run(at_once)
        return thread.spent, len(directories.load_directory(NAME).lines)


def measure(shape: shapes.Shape, *, edits: float, votes: float, at_once: int) -> str:
    """Replay a thread; a row of the table."""
    spent, lines = replay(shape, edits=edits, votes=votes, at_once=at_once)
    each = [spent.writes / spent.changes, spent.deletes / spent.changes]
    cells = [
        compactor.BUCKET_ROWS,
        compactor.TAIL_ROWS,
        at_once,
        f"{each[0]:.3f}",
        f"{each[1]:.3f}",
    ]
    cells += [f"{spent.reads / spent.changes:.2f}", lines]
    return "| " + " | ".join(map(str, cells)) + " |"


def _numbers(text: str) -> list[int]:
    return [int(each) for each in text.split(",")]


def main() -> None:
    """Print what each choice of sizes costs."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--shape", type=Path)
    options.add_argument("--size", type=int, default=2_251)
    options.add_argument("--edits", type=float, default=0.1)
    options.add_argument("--votes", type=float, default=0.5)
    options.add_argument("--buckets", type=_numbers, default=[64, 128, 256])
    options.add_argument("--tails", type=_numbers, default=[64, 128, 256, 512])
    options.add_argument("--changes", type=_numbers, default=[backlog.FOLD_ROWS])
    chosen = options.parse_args()
    shape = shapes.read(chosen.shape) if chosen.shape else shapes.grown(chosen.size)
    shape = shapes.repeated(shape, chosen.size)
    print("| BUCKET_ROWS | TAIL_ROWS | FOLD_ROWS | writes | deletes | reads | buckets |")
    print("|---|---|---|---|---|---|---|")
    for compactor.BUCKET_ROWS in chosen.buckets:
        for compactor.TAIL_ROWS in chosen.tails:
            for at_once in chosen.changes:
                row = measure(shape, edits=chosen.edits, votes=chosen.votes, at_once=at_once)
                print(row, flush=True)


if __name__ == "__main__":
    main()
