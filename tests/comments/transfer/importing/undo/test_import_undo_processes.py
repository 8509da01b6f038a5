"""Undos in processes: killed at any point of a commit, two at once, beside readers and writers."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from comments import errors
from comments.domain import records
from comments.domain.records import Status
from comments.reading import listings, thread_pages
from comments.sites import site_settings
from comments.store import connection
from comments.transfer.formats import disqus
from comments.transfer.importing import import_journal, import_undo
from comments.tree.bulk import bulk_removal
from datastore_emulator import inprocess
from tests.support import datastores, dying_programs, forked_programs, optional_tools
from tests.support.histories import counter_oracle
from tests.support.threads import sample_exports, sample_threads
from tests.support.threads import undone_imports as undone
from tests.support.threads.undone_imports import NOW, comment

pytestmark = [pytest.mark.slow, pytest.mark.embedded]

INDEXES = dying_programs.INDEXES
SIZE = 9
ROSES = records.ThreadName("garden", "garden.example/roses")


def finish(import_id: str) -> None:
    """Finish an undo in small steps."""
    bulk_removal.AT_ONCE = 3
    undone.finish(import_journal.get("garden", import_id))


def finish_alone(store_path: Path, import_id: str) -> None:
    """Run an undo in a process of its own, as far as possible without a compaction."""
    bulk_removal.AT_ONCE = 3
    with (
        inprocess.open_engine(store_path, indexes=INDEXES) as engine,
        connection.Store(inprocess.Channel(engine), project="test").context(),
    ):
        import_undo.go_on("garden", import_id, now=NOW)


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
        undone.Clock.current()
        yield site_settings.add(
            "garden", sample_exports.SITE.origins, scheme=undone.SCHEME, now=NOW
        )


def imported(tmp_path: Path, size: int = SIZE) -> import_journal.Import:
    """Import a chain of comments in one thread, and comments of another one."""
    export = [
        *(comment(f"{n}", f"{n - 1}" if n % 4 else None) for n in range(1, size)),
        *(comment(f"{n}", page="tulips") for n in range(size, size + 3)),
    ]
    found = undone.brought(undone.saved(tmp_path / "export", export))
    undone.settle()
    return found


def assert_undone(kept: int, posted: int) -> None:
    rows = sample_exports.rows()
    assert len([row for row in rows if row.status is Status.RETRACTED]) == kept
    assert len([row for row in rows if row.status is Status.APPROVED]) == posted
    undone.deliver()
    undone.settle()
    undone.assert_sound()
    counter_oracle.assert_all_counted()


@pytest.mark.parametrize(
    "rule",
    [
        {"point": "commit.mutation", "call": 30},
        {"rpc": "Commit", "call": 3, "when": "before"},
        {"rpc": "Commit", "call": 5, "when": "before"},
        {"rpc": "Commit", "call": 7, "when": "after"},
        {"rpc": "Commit", "call": 9, "when": "after"},
        {"rpc": "Commit", "call": 14, "when": "before"},
    ],
    ids=str,
)
def test_the_next_undo_completes_one_that_was_killed(
    store_path: Path, site: records.Site, tmp_path: Path, rule: dict[str, object]
) -> None:
    found = imported(tmp_path)
    first = next(row for row in sample_exports.rows() if row.body == "imported 5")
    sample_threads.post(site, "a reply", first.id, thread=ROSES.id, now=NOW)
    undone.begin(found)
    ended = dying_programs.run(store_path, [{**rule, "kill": True}], finish, found.id)
    assert ended == (-signal.SIGKILL, "")
    assert import_journal.get("garden", found.id).undone is None
    undone.deliver()
    undone.assert_sound()
    done = undone.finish(found)
    assert (done.removed, done.kept) == (SIZE, 2)
    assert_undone(kept=2, posted=1)


def test_two_undos_at_once_remove_and_count_each_comment_once(
    store_path: Path, site: records.Site, tmp_path: Path
) -> None:
    found = imported(tmp_path, 40)
    undone.begin(found)
    processes = [forked_programs.start(finish_alone, store_path, found.id) for _ in range(2)]
    for each in processes:
        each.output()
    assert [each.returncode for each in processes] == [0, 0]
    done = undone.finish(found)
    assert (done.removed, done.kept) == (42, 0)
    assert_undone(kept=0, posted=0)


class Actors:
    """A writer and a reader of a thread, each in a thread of its own."""

    def __init__(self, datastore: datastores.Datastore, site: records.Site) -> None:
        self._datastore = datastore
        self._site = site
        self._ended = threading.Event()
        self._above = [row.id for row in sample_exports.rows() if row.thread == ROSES.id]
        self.posted: list[str] = []
        self.pages = 0

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        actors = [threading.Thread(target=each) for each in (self._write, self._read)]
        for each in actors:
            each.start()
        try:
            yield
        finally:
            self._ended.set()
            for each in actors:
                each.join()

    def _write(self) -> None:
        with self._datastore.connect().context():
            while not self._ended.is_set() and len(self.posted) < 50:
                parent = self._above[len(self.posted) % len(self._above)]
                with contextlib.suppress(errors.NotFound, errors.Conflict):
                    self._post("a reply", parent)
                self.posted.append(self._post(f"post {len(self.posted)}", None))

    def _post(self, text: str, parent: str | None) -> str:
        return sample_threads.post(self._site, text, parent, thread=ROSES.id, now=NOW).id

    def _read(self) -> None:
        order = thread_pages.ListingOrder.THREAD
        with self._datastore.connect().context():
            while not self._ended.is_set() and self.pages < 500:
                asked = thread_pages.PageRequest(50, None, sample_exports.SECRET)
                page = listings.page(undone.SCHEME, ROSES, asked, order=order)
                assert len(page.comments) == len(set(page.comments))
                self.pages += 1


def test_an_undo_beside_readers_and_writers_loses_none_of_their_comments(
    datastore: datastores.Datastore,
    site: records.Site,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bulk_removal, "AT_ONCE", 3)
    found = imported(tmp_path, 30)
    actors = Actors(datastore, site)
    with actors.running():
        undone.begin(found)
        import_undo.go_on("garden", found.id, now=NOW)
    undone.deliver()
    done = undone.finish(found)
    assert done.removed + done.kept == 32
    assert actors.posted
    assert actors.pages
    rows = {row.id: row for row in sample_exports.rows()}
    assert rows.keys() >= set(actors.posted)
    links = {link for row in rows.values() for link in (row.parent, row.reply_to) if link}
    assert rows.keys() >= links
    assert not [row for row in rows.values() if row.body.startswith("imported")]
    undone.settle()
    undone.assert_sound()
    counter_oracle.assert_all_counted()


def test_a_real_export_is_undone_and_imported_again(site: records.Site) -> None:
    path = optional_tools.real_export("disqus/laisky-209.xml")
    shown = []
    for _ in range(2):
        with sample_exports.planned_by(disqus.read, path, levels=3) as plan:
            sample_exports.write(plan, 3)
        undone.deliver()
        undone.settle()
        found = next(each for each in import_journal.recent_imports("garden") if not each.undone)
        rows = sample_exports.rows()
        shown.append([(row.id, row.sort_hash, row.html, row.status, row.listed) for row in rows])
        done = undone.undo(found, sample_exports.NOW)
        assert (done.removed, done.kept) == (209, 0)
        assert undone.threads() == []
        counter_oracle.assert_all_counted()
    assert shown[0] == shown[1]
