"""A read returns the state at one moment, regardless of its number of batches."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial

import grpc
import pytest

from comments.domain import records
from comments.posting import own_comment
from comments.reading import full_thread
from comments.store import connection, reads, transactions
from comments.tree.lists import ordered_query
from comments.upkeep.integrity import repair
from datastore_emulator import faults, inprocess
from tests.support import datastores, prepared_stores, store_interceptors
from tests.support.threads import compaction, reader_processes, sample_threads

SCHEME, SECRET = sample_threads.SETTINGS.scheme, sample_threads.SETTINGS.secret
NAME = records.ThreadName("demo", "page")


class Between:
    """A hook that runs its next step before each of a reader's calls, until no step remains."""

    def __init__(self) -> None:
        self.steps: Iterator[Callable[[], object]] = iter(())
        self.calls: list[str] = []

    def __call__(self, method: str, _request: object) -> None:
        self.calls.append(method)
        next(self.steps, _nothing)()


def _nothing() -> None:
    pass


def _edit(comment: records.Comment, body: str) -> None:
    own_comment.edit(
        comment.id,
        author_id=comment.author.id,
        body=body,
        revision=None,
        settings=sample_threads.SETTINGS,
        now=sample_threads.START,
    )


def _cut(engine: inprocess.Engine, most: int, seed: int) -> None:
    """Make the engine end batches after a random number of results, but not more than `most`."""
    cut = {"rpc": "RunQuery", "batch": most}
    engine.install_faults(faults.Plan.parse({"seed": seed, "rules": [cut]}))


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> prepared_stores.Beginning:
    """A thread with one compacted and 520 uncompacted comments; the last 30 were edited once."""

    def grow(site: records.Site) -> None:
        sample_threads.post(site, "first")
        compaction.whole(NAME)
        for start in range(0, 520, 104):
            nodes = [
                sample_threads.node(f"{n}", author=f"g:{n}") for n in range(start, start + 104)
            ]
            sample_threads.store_imported(NAME, *nodes)
        for row in ordered_query.thread(NAME)[-30:]:
            _edit(row, "edited")

    return prepared_stores.grown(tmp_path_factory, grow)


@pytest.fixture
def between() -> Between:
    return Between()


@pytest.fixture
def reader(datastore: datastores.Datastore, between: Between) -> reader_processes.Reader:
    """A reading process; the test runs steps between its calls."""
    return reader_processes.Reader(datastore, seen=between)


@pytest.fixture
def writer(datastore: datastores.Datastore) -> reader_processes.Reader:
    return reader_processes.Reader(datastore)


def _whole() -> bytes:
    return full_thread.WholeThread(NAME, SECRET).page().json()


@pytest.mark.slow
def test_a_page_misses_no_row_that_is_edited_between_two_batches_of_the_probe(
    reader: reader_processes.Reader, writer: reader_processes.Reader, between: Between
) -> None:
    """Edit rows between two batches: 520 rows are uncompacted, a batch contains 300 results, and
    the probe requests 501.

    The second batch contains the two edited rows of the first batch again, with their new
    revisions. A naive probe would return 501 results with only 499 different rows and miss the 21
    rows after them.
    """
    rows = writer.do(lambda: ordered_query.thread(NAME))
    assert reader.do(_whole) == writer.do(_whole)  # Caches the directory
    edits = [partial(writer.do, partial(_edit, row, "edited")) for row in rows[1:3]]
    between.steps = iter([_nothing, lambda: [edit() for edit in edits]])
    shown = reader.do(_whole)
    assert next(between.steps, None) is None
    assert shown == writer.do(_whole)


def test_a_read_of_many_batches_is_from_one_moment(
    reader: reader_processes.Reader,
    writer: reader_processes.Reader,
    between: Between,
    engine: inprocess.Engine,
) -> None:
    """Edit the last row before the first row, in the middle of a read in reading order."""
    rows = writer.do(lambda: ordered_query.thread(NAME))

    def bodies() -> tuple[str, str]:
        found = ordered_query.thread(NAME)
        assert [row.id for row in found] == [row.id for row in rows]
        return found[1].body, found[-1].body

    def change(number: int) -> None:
        for row in (rows[-1], rows[1]):
            writer.do(partial(_edit, row, f"edit {number}"))

    _cut(engine, 200, seed=1)
    between.steps = (partial(change, number) for number in range(20))
    first, last = reader.do(bodies)
    assert first == last
    assert between.calls.count("RunQuery") > 3


def test_a_read_of_one_batch_takes_one_call(
    reader: reader_processes.Reader, between: Between
) -> None:
    assert len(reader.do(lambda: ordered_query.stretch(NAME, "", "~", limit=300))) == 300
    assert between.calls == ["RunQuery"]


@pytest.mark.slow
def test_a_longer_read_survives_the_failure_of_any_of_its_calls(
    datastore: datastores.Datastore, site: records.Site
) -> None:
    expected = 521
    for number in range(1, 6):
        for when in ("before", "after"):
            failing = store_interceptors.Faults()
            store = datastore.connect(failing)
            methods = ("RunQuery", "BeginTransaction", "Commit")
            for method in methods:
                failing.plan[method, number] = (when, grpc.StatusCode.UNAVAILABLE)
            with store.context():
                assert len(ordered_query.thread(NAME)) == expected


def test_a_scan_continues_while_its_consumer_writes(
    store: connection.Store, site: records.Site, engine: inprocess.Engine
) -> None:
    query = reads.Query("Comment", where=(("site", "=", site.id),), keys_only=True)
    _cut(engine, 100, seed=2)
    seen = []
    for entity in reads.walk(query):
        seen.append(entity.key.path[-1].name)
        if len(seen) % 100 == 0:
            sample_threads.post(site, f"new {len(seen)}", thread="other")
    assert len(set(seen)) == len(seen) >= 521


@pytest.mark.slow
def test_a_scan_inside_a_transaction_is_part_of_it(
    store: connection.Store, site: records.Site, writer: reader_processes.Reader
) -> None:
    query = reads.Query("Comment", where=(("site", "=", site.id),), keys_only=True)

    def body() -> tuple[int, int]:
        before = sum(1 for _ in reads.walk(query))
        writer.do(lambda: sample_threads.post(site, "new"))
        return before, sum(1 for _ in reads.walk(query))

    assert transactions.snapshot(body) == (521, 521)


def test_an_audit_reports_no_problem_because_of_concurrent_writes(
    reader: reader_processes.Reader,
    writer: reader_processes.Reader,
    between: Between,
    engine: inprocess.Engine,
    site: records.Site,
) -> None:
    """The audit reads a parent before the replies that are posted in the meantime."""
    deep = sample_threads.name_of(site, "deep")
    root = writer.do(lambda: sample_threads.post(site, "root", thread="deep"))

    def reply() -> None:
        writer.do(lambda: sample_threads.post(site, "reply", root.id, thread="deep"))

    for _ in range(8):
        reply()
    _cut(engine, 6, seed=4)
    between.steps = (reply for _ in range(8))
    assert reader.do(lambda: repair.find_problems(SCHEME, deep)) == []
    assert between.calls.count("RunQuery") > 2


@pytest.mark.slow
def test_the_rows_and_total_of_an_ordered_page_are_from_one_moment(
    reader: reader_processes.Reader,
    writer: reader_processes.Reader,
    between: Between,
    site: records.Site,
) -> None:
    """Each post raises the total; the page shows exactly the rows that existed at one moment."""

    def page() -> records.OrderedPage:
        return ordered_query.page(
            raw,
            order=ordered_query.QueryOrder.THREAD,
            parent=None,
            limit=200,
            cursor=None,
            secret=SECRET,
        )

    raw = sample_threads.name_of(site, "raw")
    now = [sample_threads.START + timedelta(minutes=number) for number in range(20)]
    posts = (
        partial(writer.do, partial(sample_threads.post, site, "more", thread="raw", now=each))
        for each in now
    )
    next(posts)()
    between.steps = posts
    shown = reader.do(page)
    assert len(shown.comments) == shown.total > 1
    assert shown.changed == shown.comments[-1].created
