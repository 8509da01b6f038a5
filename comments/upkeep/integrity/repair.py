"""Find and repair damage in stored threads: in the tree, in single comments and in their pages.

Changes that bypass the service (a restore, a script, another client) may leave comments with
contradictory fields, and pages that do not show what the comments contain. For a whole thread, this
module recomputes all derived fields, compares all materialized data with the comments, and corrects
the differences. `find_problems` writes nothing. `fix` writes in transactions of at most `_BATCH`
comments, each of which leaves a valid state. If `fix` is interrupted, run it again. After a
complete run, `find_problems` finds nothing unless new damage has occurred.

The sources of truth are:

    place     parent and number; for a parent that cannot be true, `reply_to` (`tree_places`)
    text      the body: the HTML is rendered again
    score     the upvotes and downvotes in the comment (`recount` compares these with the votes)
    status    the status: whether the comment is listed follows from it and from the replies
    pages     the comments as stored

Counters are raised to the highest assigned number and never lowered, because a number is never
assigned twice. A source of truth that was overwritten cannot be recovered: if a body was replaced,
the replacement counts as the text, and pages will show it.

If pages show a comment incorrectly, the comment is flagged, so every process shows the stored
comment at once. For any other damage of the materialized data, `fix` requests a rebuild
(`rebuilding`): readers get the ordered query at once, and the next compaction rebuilds all
materialized data.
"""

import dataclasses
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from comments import errors
from comments.domain import records
from comments.domain.ids import sorthash
from comments.domain.records import Status
from comments.reading.compaction import rebuilding
from comments.reading.materialized import comparison, deltas
from comments.store import connection, reads, transactions
from comments.store.models import comment_rows, conversion
from comments.tree import values
from comments.tree.bulk import job_writes
from comments.upkeep.integrity import tree_places
from comments.upkeep.migrations import rerendering

_BATCH = 100
_TRIES = 5  # Maximum attempts to repair a thread that people are changing
SECONDS = 240.0  # Maximum seconds to read one thread; the service aborts transactions after 270 s.
_FIELDS = ("parent", "number", "level", "sort_hash", "slug", "listed")


@dataclasses.dataclass(frozen=True, slots=True)
class ThreadProblem:
    """A field that differs from its expected value.

    `comment` is "" for a problem of the whole thread. `of_pages` tells whether the field belongs to
    the materialized data. A problem that is not `mendable` can only be solved by a person.
    """

    thread: records.ThreadName
    comment: str
    field: str
    stored: object
    expected: object
    of_pages: bool = False
    mendable: bool = True


def threads(site: str) -> Iterator[records.ThreadName]:
    """Yield the names of a site's threads."""
    query = reads.Query("Thread", where=(("site", "=", site),))
    for entity in reads.walk(query):
        yield records.ThreadName(site, entity.properties["thread"].string_value)


def find_problems(scheme: sorthash.Scheme, name: records.ThreadName) -> list[ThreadProblem]:
    """Compare a thread with the values that its sources of truth imply; write nothing."""
    return _Checked(scheme, name).problems


def fix(scheme: sorthash.Scheme, name: records.ThreadName) -> list[ThreadProblem]:
    """Repair a thread and return the problems that were found.

    After this call, compact the thread, because until then its pages come from the ordered query.

    Raises:
        errors.Overloaded: people change the thread faster than it can be repaired.
    """
    problems: dict[tuple[str, str], ThreadProblem] = {}
    for _ in range(_TRIES):
        checked = _Checked(scheme, name)
        for problem in checked.problems:
            problems.setdefault((problem.comment, problem.field), problem)
        if not any(problem.mendable for problem in checked.problems):
            checked.refresh({problem.comment for problem in problems.values()})
            return list(problems.values())
        checked.mend()
    raise errors.Overloaded(f"{name.site} {name.id} changes faster than it is repaired")


class _ThreadState(NamedTuple):
    """A thread as of one moment.

    `spoiled` lists rows that had to be changed before they could be read.
    """

    rows: dict[str, records.Comment]
    stored: list[deltas.DeltaRow]
    renderers: dict[str, str]
    materialized: comparison.Materialized
    spoiled: list[ThreadProblem]


class _Checked:
    """A thread as of one moment, with its computed values and its problems."""

    def __init__(self, scheme: sorthash.Scheme, name: records.ThreadName) -> None:
        self._name = name
        self._read = _read_thread(name)
        scheme = conversion.scheme_of(self._read.materialized.thread, scheme)
        self._shape = conversion.shape_of(self._read.materialized.thread)
        self._places = tree_places.places(scheme, self._read.rows)
        self._texts: dict[str, values.RenderedText] = {}
        self.problems = [
            *self._read.spoiled,
            *self._row_problems(),
            *self._thread_problems(),
            *(
                ThreadProblem(name, *mismatch, of_pages=True)
                for mismatch in comparison.mismatches(
                    scheme, self._read.materialized, self._read.stored
                )
            ),
        ]

    def refresh(self, mended: Collection[str]) -> None:
        """Make every process read the delta again, except for the mended comments.

        A process recognizes a changed row by its revision, but a change that bypasses the service
        does not raise the revision. The copies in processes may therefore be outdated.
        """
        stored = self._read.materialized.stored
        if stored is None or not stored.directory.version:
            return
        rows = deltas.changes(stored.directory, self._read.stored)
        ids = [row.entry.id for row in rows if row.entry.id not in mended]
        for start in range(0, len(ids), _BATCH):
            _reread(ids[start : start + _BATCH])

    def mend(self) -> None:
        """Write the corrections. Skip comments that have changed since they were read."""
        wrong = dict.fromkeys(problem.comment for problem in self.problems)
        places = [self._places[comment_id] for comment_id in wrong if comment_id in self._places]
        # Parents are written before children, so that a partial repair is correct from the root
        # down.
        places.sort(key=lambda place: place.level)
        for start in range(0, len(places), _BATCH):
            _write(
                self._name,
                [self._corrected_place(place) for place in places[start : start + _BATCH]],
            )
        needed, pins = tree_places.least_root_count(self._places), self._pinned_ids()
        transactions.transaction(
            lambda: transactions.apply(*job_writes.thread_repair_writes(self._name, needed, pins))
        )
        if any(map(self._needs_rebuild, self.problems)):
            rebuilding.request(self._name)

    def _needs_rebuild(self, problem: ThreadProblem) -> bool:
        """Return whether the page stays wrong although the delta now contains the comment."""
        is_unknown = problem.comment not in self._places
        return problem.of_pages and (is_unknown or problem.field in comparison.OF_BUCKETS)

    def _corrected_place(self, place: values.TreePlace) -> values.TreePlace:
        return dataclasses.replace(place, text=self._texts.get(place.id), shape=self._shape)

    def _row_problems(self) -> Iterator[ThreadProblem]:
        for row in self._read.rows.values():
            place = self._places[row.id]
            pairs = {field: (getattr(row, field), getattr(place, field)) for field in _FIELDS}
            pairs["child_count"] = (row.child_count, max(row.child_count, place.child_count))
            pairs["shape"] = (row.shape, self._shape)
            pairs["score"] = (row.score, row.up - row.down)
            text = values.RenderedText(row.body, row.html, self._read.renderers[row.id])
            made = rerendering.current_rendering(text)
            if made is not None and made.html != row.html:
                self._texts[row.id] = made
                pairs["html"] = (row.html, made.html)
            for field, pair in pairs.items():
                if pair[0] != pair[1]:
                    yield ThreadProblem(self._name, row.id, field, *pair)

    def _thread_problems(self) -> Iterator[ThreadProblem]:
        thread = self._read.materialized.thread
        if thread is None:
            return
        needed, pins = tree_places.least_root_count(self._places), self._pinned_ids()
        if thread.child_count < needed:
            yield ThreadProblem(self._name, "", "child_count", thread.child_count, needed)
        if not set(pins).issubset(thread.pins):
            yield ThreadProblem(self._name, "", "pins", list(thread.pins), pins)

    def _pinned_ids(self) -> list[str]:
        return [row.id for row in self._read.rows.values() if row.pinned and not row.is_tombstone]


def _reread(ids: Sequence[str]) -> None:
    transactions.transaction(lambda: transactions.apply(job_writes.revision_writes(ids)))


def _write(name: records.ThreadName, places: Sequence[values.TreePlace]) -> None:
    transactions.transaction(lambda: transactions.apply(*job_writes.repair_writes(name, places)))


def _read_thread(name: records.ThreadName) -> _ThreadState:
    where = (("thread", "=", comment_rows.thread_key_name(name)),)
    # A query with an order would miss rows that have lost the property of the order.
    query = reads.Query("Comment", where=where)

    def read() -> tuple[list[Any], comparison.Materialized]:
        return list(reads.fetch(query)), comparison.load(name)

    with connection.within(SECONDS):
        messages, materialized = transactions.at_one_moment(read)
    thread = _ThreadState({}, [], {}, materialized, [])
    for message in messages:
        row_id, properties = message.key.path[-1].name, message.properties
        if not _has_needed_fields(properties):
            problem = ThreadProblem(name, row_id, "row", "incomplete", "complete", mendable=False)
            thread.spoiled.append(problem)
            continue
        status = properties["status"].string_value
        if status not in set(Status):
            thread.spoiled.append(
                ThreadProblem(name, row_id, "status", status, Status.PENDING.value)
            )
            properties["status"].string_value = Status.PENDING.value
        record = conversion.comment_from_message(message)
        thread.rows[row_id] = record
        thread.stored.append(deltas.row_from(record, message))
        thread.renderers[row_id] = properties["renderer"].string_value
    return thread


def _has_needed_fields(properties: Mapping[str, Any]) -> bool:
    """Return whether a row has all fields that cannot be derived from others."""
    return all(
        name in properties and not properties[name].HasField("null_value")
        for name in ("site", "thread_id", "created", "number")
    )
