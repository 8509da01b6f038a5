"""A batch of an import is one commit for several threads, and its size changes no stored row."""

import contextlib
import functools
import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import grpc
import msgspec
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from comments.domain import records
from comments.domain.ids import sorthash
from comments.events import dispatcher, outbox
from comments.store import reads, transactions
from comments.transfer.checking import import_batches
from comments.transfer.importing import import_writer
from comments.tree import values
from comments.tree.bulk import bulk_append
from comments.upkeep import wiring
from comments.upkeep.integrity import repair
from tests.support import datastores
from tests.support.histories import counter_oracle
from tests.support.store_interceptors import Faults, InterceptorSlot, error
from tests.support.threads import sample_threads
from tests.support.threads.sample_exports import (
    NOW,
    SCHEME,
    SITE,
    plan_of,
    rows,
    saved,
    threads_of,
    write,
)

SHALLOW = sorthash.Scheme(levels=2)
COUNTERS = ("Counter", "Participation", "Standing", "Day", "Month", "Appearance")


@pytest.fixture
def faults(interceptor: InterceptorSlot) -> Faults:
    return interceptor.use(Faults())


def commits(faults: Faults) -> list[Any]:
    """Return the commits with comments."""
    return [
        request
        for method, request in faults.requests
        if method == "Commit"
        and any(each.upsert.key.path[0].kind == "Comment" for each in request.mutations)
    ]


def deliver_all() -> None:
    events = [event.id for event in outbox.pending_events(outbox.COUNTERS)]
    dispatcher.deliver(events, now=NOW, handlers=wiring.HANDLERS)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_commit_whose_answer_was_lost_is_counted_once(
    garden: records.Site, faults: Faults, export: Callable[..., Path], when: str
) -> None:
    told: list[str] = []
    with plan_of(export(*threads_of([3, 2]))) as plan:
        faults.lose("Commit", when, grpc.StatusCode.UNAVAILABLE)
        summary = import_writer.write(plan, scheme=SCHEME, now=NOW, told=told.extend)
    assert summary == import_writer.ImportSummary(added=5, present=0, threads=2)
    assert len(rows()) == 5
    assert told == [event.id for event in outbox.pending_events(outbox.COUNTERS)]


class Overtaken:
    """An interceptor that aborts the first commit and then calls `meanwhile` in another thread."""

    def __init__(self, meanwhile: Callable[[], None]) -> None:
        self._meanwhile = meanwhile
        self._is_aborted = False

    def __call__(self, method: str, _: Any, proceed: Callable[[], Any]) -> Any:
        if method == "Commit" and not self._is_aborted:
            self._is_aborted = True
            raise error(grpc.StatusCode.ABORTED)
        answer = proceed()
        if method == "Rollback":
            thread = threading.Thread(target=self._meanwhile)
            thread.start()
            thread.join()
        return answer


def test_comments_that_another_import_stored_during_an_aborted_run_are_not_counted_as_added(
    datastore: datastores.Datastore,
    garden: records.Site,
    interceptor: InterceptorSlot,
    export: Callable[..., Path],
) -> None:
    lines = threads_of([3, 2])
    part = export(*lines[:3], name="part.xml")
    other = datastore.connect()
    summaries: list[import_writer.ImportSummary] = []

    def elsewhere() -> None:
        with other.context(), plan_of(part) as plan:
            summaries.append(write(plan))

    with plan_of(export(*lines)) as plan:
        interceptor.use(Overtaken(elsewhere))
        assert write(plan).added == 3
    assert [summary.added for summary in summaries] == [2]
    assert len(rows()) == 5


def test_several_threads_share_a_commit_and_its_event(
    garden: records.Site, faults: Faults, export: Callable[..., Path]
) -> None:
    told: list[str] = []
    with plan_of(export(*threads_of([3, 1, 2, 4]))) as plan:
        import_writer.write(plan, scheme=SCHEME, now=NOW, told=told.extend)
    assert len(commits(faults)) == 1
    assert len(told) == 1
    deliver_all()
    counter_oracle.assert_counted()
    authors = {row.id: row.author for row in rows()}
    for standing in reads.fetch(reads.Query("Standing")):
        comment = standing.properties["comment"].string_value
        assert standing.key.path[0].name == f"garden/{authors[comment].id}"
    assert all(repair.find_problems(SCHEME, name) == [] for name in repair.threads("garden"))


@pytest.mark.parametrize("sizes", [[1] * 230, [250], [1, 249]])
def test_a_commit_writes_at_most_500_entities(
    garden: records.Site, faults: Faults, export: Callable[..., Path], sizes: list[int]
) -> None:
    lines = (
        line.replace("<name>Ada</name>", f"<name>author {place}</name>")
        for place, line in enumerate(threads_of(sizes, "Ada"))
    )
    with plan_of(export(*lines)) as plan:
        assert write(plan).added == sum(sizes)
    assert 400 < max(len(request.mutations) for request in commits(faults)) <= 500


def stored(kinds: tuple[str, ...]) -> dict[str, bytes]:
    """Return the entities of these kinds, by key. An author's row names any of their comments."""
    found = {}
    for message in (each for kind in kinds for each in reads.fetch(reads.Query(kind))):
        if "takes_part" in message.properties:
            del message.properties["comment"]
        path = str(message.key.path)
        message.key.partition_id.Clear()  # Each emulated database is another project
        found[path] = message.SerializeToString(deterministic=True)
    return found


@pytest.mark.slow
@examples(max_examples=15, suppress_health_check=list(HealthCheck))
@given(
    sizes=st.lists(st.integers(1, 8), min_size=1, max_size=7),
    batches=st.tuples(st.integers(2, 12), st.integers(2, 40)),
    killed_after=st.integers(1, 5),
)
def test_the_stored_rows_do_not_depend_on_batches_and_kills(
    sizes: list[int],
    batches: tuple[int, int],
    killed_after: int,
    new_datastore: Callable[[], datastores.Datastore],
    tmp_path: Path,
) -> None:
    path = saved(tmp_path / "export.xml", *threads_of(sizes))
    found = []
    for size, kills in ((1, 0), (batches[0], killed_after), (batches[1], 0)):
        with (
            pytest.MonkeyPatch.context() as patch,
            new_datastore().connect().context(),
            plan_of(path, levels=2) as plan,
        ):
            patch.setattr(import_batches, "BATCH", size)
            left = iter(range(kills - 1))
            with contextlib.suppress(StopIteration):
                import_writer.write(
                    plan,
                    scheme=SHALLOW,
                    now=NOW,
                    progress=lambda _, left=left, kills=kills: kills and next(left),  # type: ignore[misc]
                )
            write(plan, levels=2)
            deliver_all()
            counter_oracle.assert_counted()
            found.append(stored(("Comment", "Thread", *COUNTERS)))
    assert found[0] == found[1] == found[2]


class Said(NamedTuple):
    """A comment of a history. `above` is the text of the comment that it answers."""

    number: int
    thread: str
    author: str
    above: str | None
    created: datetime

    @property
    def text(self) -> str:
        return f"text {self.number}"


@st.composite
def histories(draw: st.DrawFn) -> list[Said]:
    said: list[Said] = []
    for number in range(draw(st.integers(1, 14))):
        thread = draw(st.sampled_from(["roses", "tulips", "lilies"]))
        here = [each.text for each in said if each.thread == thread]
        above = draw(st.none() | st.sampled_from(here)) if here else None
        author = draw(st.sampled_from(["g:ada", "g:bob", "g:cyd"]))
        created = sample_threads.START + draw(st.integers(0, 30)) * timedelta(hours=number)
        said.append(Said(number, thread, author, above, created))
    return said


def post_each(site: records.Site, history: list[Said]) -> None:
    ids: dict[str, str] = {}
    for each in history:
        author = records.Author(each.author, id=each.author)
        parent = ids[each.above] if each.above else None
        posted = sample_threads.post(
            site, each.text, parent, author=author, thread=each.thread, now=each.created
        )
        ids[each.text] = posted.id


def append_all(site: records.Site, history: list[Said], size: int) -> None:
    for start in range(0, len(history), size):
        threads: dict[str, list[records.ImportedComment]] = {}
        for each in history[start : start + size]:
            node = sample_threads.node(each.text, each.above, created=each.created)
            author = records.Author(each.author, id=each.author)
            threads.setdefault(each.thread, []).append(msgspec.structs.replace(node, author=author))
        batch = [
            values.ImportedThread(records.ThreadName(site.id, thread), nodes)
            for thread, nodes in threads.items()
        ]

        def body(batch: list[values.ImportedThread] = batch) -> None:
            made = bulk_append.append_imported(site.scheme, batch, now=NOW)
            transactions.apply(*made.writes)

        transactions.transaction(body)


def places() -> dict[str, tuple[Any, ...]]:
    """Return the place of each comment in its tree, by the comment's text."""
    found = rows()
    texts = {None: None} | {row.id: row.body for row in found}
    return {
        row.body: (
            row.thread,
            texts[row.parent],
            texts[row.reply_to],
            *(row.sort_hash, row.slug, row.number, row.level, row.child_count, row.listed),
        )
        for row in found
    }


@examples(max_examples=15, suppress_health_check=list(HealthCheck))
@given(history=histories(), size=st.integers(1, 14), levels=st.integers(1, 4))
def test_an_import_places_and_counts_comments_as_posts_one_by_one_do(
    history: list[Said],
    size: int,
    levels: int,
    new_datastore: Callable[[], datastores.Datastore],
) -> None:
    site = msgspec.structs.replace(SITE, levels=levels)
    found = []
    for store in (post_each, functools.partial(append_all, size=size)):
        with new_datastore().connect().context():
            store(site, history)
            deliver_all()
            counter_oracle.assert_counted()
            found.append((places(), stored(COUNTERS)))
    assert found[0] == found[1]
