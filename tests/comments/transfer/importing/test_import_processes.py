"""Imports in processes: killed at any point of a commit, and two at once while people post."""

import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from comments.domain import records
from comments.domain.ids import author_ids
from comments.events import dispatcher, outbox
from comments.sites import site_settings
from comments.store import connection
from comments.transfer.checking import import_batches
from comments.transfer.importing import import_journal
from comments.upkeep import wiring
from comments.upkeep.integrity import repair
from datastore_emulator import inprocess
from tests.support import datastores, dying_programs, forked_programs
from tests.support.histories import counter_oracle
from tests.support.threads import sample_exports, sample_threads
from tests.support.threads.sample_exports import NOW, SCHEME, plan_of, rows, threads_of, write

pytestmark = [pytest.mark.slow, pytest.mark.embedded]

INDEXES = dying_programs.INDEXES
SIZES = [2, 1, 5, 1, 3]  # With 4 comments in a batch: commits of one, two and three threads
BATCH = 4
COMMITS = 3


def imported(path: Path) -> int:
    """Import and count in small batches; return the number of added comments."""
    import_batches.BATCH = BATCH
    with plan_of(path) as plan:
        added = write(plan).added
    deliver()
    return added


def import_and_count(store_path: Path, path: Path) -> None:
    """Import in a process of its own, and print the number of added comments."""
    with (
        inprocess.open_engine(store_path, indexes=INDEXES) as engine,
        connection.Store(inprocess.Channel(engine), project="test").context(),
    ):
        print(imported(path))  # noqa: T201 - the test reads it


def deliver() -> None:
    events = [event.id for event in outbox.pending_events(outbox.COUNTERS)]
    dispatcher.deliver(events, now=NOW, handlers=wiring.HANDLERS)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_batches, "BATCH", BATCH)


@pytest.fixture
def store_path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def engine(store_path: Path) -> Iterator[inprocess.Engine]:
    """An engine on a file that other processes share."""
    with inprocess.open_engine(store_path, indexes=INDEXES) as engine:
        yield engine


@pytest.fixture
def site(datastore: datastores.Datastore) -> Iterator[records.Site]:
    with datastore.connect().context():
        yield site_settings.add(
            "garden", sample_exports.SITE.origins, scheme=SCHEME, now=sample_exports.NOW
        )


def assert_sound(count: int) -> None:
    assert len(rows()) == count
    imported_rows = [row.id for row in rows() if row.author.id.startswith(author_ids.IMPORTED)]
    (journal,) = import_journal.recent_imports("garden")
    batches = import_journal.batches("garden", journal.id)
    assert sorted(each for _, batch in batches for each in batch.ids) == sorted(imported_rows)
    counter_oracle.assert_counted()
    assert outbox.overdue_ids(NOW.replace(year=9998), 1) == []
    for name in repair.threads("garden"):
        assert repair.find_problems(SCHEME, name) == []
        here = [row for row in rows() if row.thread == name.id]
        assert [row.id for row in here] == sample_threads.walk(here)


@pytest.mark.parametrize(
    "rule",
    [
        {"point": "commit.before", "call": 2},
        {"point": "commit.after", "call": 2},
        {"point": "commit.mutation", "call": 7},
        {"point": "commit.mutation", "call": 18},
        {"point": "commit.indexes", "call": 14},
        {"rpc": "Commit", "call": COMMITS, "when": "before"},
        {"rpc": "Commit", "call": COMMITS, "when": "after"},
        {"rpc": "Commit", "call": COMMITS + 1, "when": "before"},
    ],
    ids=str,
)
def test_the_next_import_completes_one_that_was_killed(
    store_path: Path, site: records.Site, export: Callable[..., Path], rule: dict[str, object]
) -> None:
    path = export(*threads_of(SIZES))
    ended = dying_programs.run(store_path, [{**rule, "kill": True}], imported, path)
    assert ended == (-signal.SIGKILL, "")
    stored = len(rows())
    assert stored in {0, 4, 8, 12}  # A commit is stored as a whole or not at all
    assert imported(path) == sum(SIZES) - stored
    assert_sound(sum(SIZES))
    assert imported(path) == 0
    assert_sound(sum(SIZES))


def test_two_imports_at_once_and_people_who_post_leave_one_copy_of_each_comment(
    store_path: Path,
    datastore: datastores.Datastore,
    site: records.Site,
    export: Callable[..., Path],
) -> None:
    sizes = [3] * 8 + [9]
    path = export(*threads_of(sizes))
    ended, posted = threading.Event(), list[str]()

    def post_in_threads() -> None:
        with datastore.connect().context():
            while not ended.is_set():
                thread = f"garden.example/page{len(posted) % 9 + 1}"
                posted.append(sample_threads.post(site, f"hello {len(posted)}", thread=thread).id)

    reader = threading.Thread(target=post_in_threads)
    reader.start()
    try:
        processes = [forked_programs.start(import_and_count, store_path, path) for _ in range(2)]
        outputs = [each.output() for each in processes]
    finally:
        ended.set()
        reader.join()
    assert [each.returncode for each in processes] == [0, 0]
    assert sum(map(int, outputs)) == sum(sizes)
    assert posted
    deliver()
    assert_sound(sum(sizes) + len(posted))
    assert imported(path) == 0
