"""A site moves to other schemes while people read and write, and while movers die.

Writers, readers and movers are threads with separate stores. A reader checks each page by itself:
every comment is directly below its parent, at the place that its slug names.
"""

import contextlib
import itertools
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any, Self

import msgspec
import pytest

from comments import errors
from comments.domain import records
from comments.domain.ids import sorthash
from comments.domain.records import Status
from comments.reading import listings, thread_pages
from comments.reading.compaction import compactor
from comments.sites import site_settings
from comments.store import connection, transactions
from comments.transfer import import_source
from comments.transfer.checking import checked_import
from comments.transfer.formats import disqus, wordpress
from comments.transfer.importing import import_writer
from comments.tree import values
from comments.tree.bulk import bulk_append
from comments.tree.lists import listed_comments
from comments.upkeep.integrity import repair
from comments.upkeep.migrations import rescheming
from tests.support import datastores, optional_tools, programs
from tests.support.threads import reader_processes, recursive_walk, sample_exports, sample_threads

pytestmark = pytest.mark.slow

DECIMAL = sorthash.Scheme("0123456789", 2, 3)
SCHEMES = (
    sorthash.Scheme("0123456789", 2, 2),
    sorthash.Scheme("abc", 1, 20),
    DECIMAL,
)
NAME = records.ThreadName("demo", "page")
COMMENTS = 140  # More than one batch of an import, and more than one bucket
APART = 3  # Commits between the deaths of a move; the next move takes those between
POSTS = 25  # Of each writer, so that a page still has all comments


TURN, SECONDS = threading.Lock(), itertools.count()


class Killed(BaseException):
    """An error that simulates the end of the process."""


def grow(name: records.ThreadName) -> None:
    """Import a thread in which half of the replies answer one of the newest comments."""
    dice = random.Random(5)
    nodes: list[records.ImportedComment] = []
    for number in range(COMMENTS):
        recent = nodes[-4:] if dice.random() < 0.5 else nodes
        answered = dice.choice(recent).id if nodes and dice.random() < 0.9 else None
        nodes.append(
            records.ImportedComment(
                id=f"{number:026}".translate(str.maketrans("0123456789", "abcdefghij")),
                reply_to=answered, author=records.Author("ann"), body=f"text {number}",
                html=f"text {number}", renderer="html-1", status=Status.APPROVED,
                created=sample_threads.START + timedelta(minutes=number), source=f"x:{number}",
            )
        )  # fmt: skip
    for batch in _parts(nodes):
        transactions.transaction(
            lambda batch=batch: transactions.apply(  # type: ignore[misc]
                *bulk_append.append_imported(
                    DECIMAL, [values.ImportedThread(name, batch)], now=sample_threads.START
                ).writes
            )
        )


def _parts(nodes: list[Any]) -> Iterator[list[Any]]:
    return (nodes[start : start + 100] for start in range(0, len(nodes), 100))


def assert_whole(page: Any) -> None:
    """Fail if a page with all comments of a thread is not one tree in reading order."""
    shown = [msgspec.json.decode(each) for each in page.comments]
    by_id = {each["id"]: each for each in shown}
    open_: list[Any] = []
    for each in shown:
        del open_[each["level"] :]
        assert len(open_) == each["level"]
        assert each["parent"] == (open_[-1]["id"] if open_ else None)
        if open_:
            assert each["slug"].startswith(f"{open_[-1]['slug']}-")
        open_.append(each)
    replies = dict(zip(by_id, page.replies, strict=True))
    for each in shown:
        below = [other for other in shown if other["slug"].startswith(f"{each['slug']}-")]
        assert len(below) == replies[each["id"]]
    assert page.total == len(shown)


class People:
    """Threads that read and write until the end of a `with` block. The first error is raised."""

    def __init__(self, *acts: Callable[[], object]) -> None:
        self._end = threading.Event()
        self._failed: list[BaseException] = []
        self._acted: set[int] = set()
        self._threads = [
            threading.Thread(target=self._run, args=(number, act))
            for number, act in enumerate(acts)
        ]

    def __enter__(self) -> Self:
        for each in self._threads:
            each.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        for each in self._threads:
            each.join()
        if self._failed:
            raise self._failed[0]

    def wait_until_all_act(self) -> None:
        """Wait for each thread's first act, because a busy machine may start a thread late."""
        programs.wait_until(lambda: self._failed or len(self._acted) == len(self._threads))

    def _run(self, number: int, act: Callable[[], object]) -> None:
        try:
            while not self._end.wait(0.005):
                act()
                self._acted.add(number)
        except BaseException as error:  # noqa: BLE001 - raised at the end
            self._failed.append(error)


class Writer(reader_processes.Reader):
    """A process that answers comments, one after the other, and then retracts its comments."""

    def __init__(
        self, datastore: datastores.Datastore, name: records.ThreadName, seed: int
    ) -> None:
        super().__init__(datastore)
        self.posted: list[str] = []
        self.retracted = 0
        self._name, self._seed = name, seed
        self._dice = random.Random(seed)
        self._known = self.do(
            lambda: [row.id for row in recursive_walk.stored(name) if row.status == Status.APPROVED]
        )

    def act(self) -> None:
        """Post a reply, by this process's own copy of the site, or retract one."""
        if len(self.posted) == POSTS:
            self._retract()
            return
        answered = self._dice.choice([*self._known, *self.posted])
        text = f"by {self._seed}: {len(self.posted)}"
        site, page = self._name.site, self._name.id
        # Posts take turns, so that the order of their dates is the order of their commits.
        with TURN, contextlib.suppress(errors.Overloaded):
            now = sample_threads.START + timedelta(days=1, seconds=next(SECONDS))
            row = self.do(
                lambda: sample_threads.post(
                    site_settings.get(site), text, answered, thread=page, now=now
                )
            )
            self.posted.append(row.id)

    def _retract(self) -> None:
        if self.retracted < POSTS:
            with contextlib.suppress(errors.Overloaded):
                row = self.do(lambda: listed_comments.by_id(self.posted[self.retracted]))
                self.do(lambda: sample_threads.retract(row))
                self.retracted += 1


class Looker(reader_processes.Reader):
    """A process that reads the whole thread on one page."""

    def __init__(self, datastore: datastores.Datastore, name: records.ThreadName) -> None:
        super().__init__(datastore)
        self.pages = 0
        self._name = name

    def act(self) -> None:
        asked = thread_pages.PageRequest(200, None, sample_threads.SETTINGS.secret)
        with contextlib.suppress(errors.Overloaded):
            page = self.do(lambda: listings.page(DECIMAL, self._name, asked))
            assert page.cursor is None
            assert_whole(page)
            self.pages += 1


def move_with_kills(
    datastore: datastores.Datastore, site: str, scheme: sorthash.Scheme, first: int
) -> None:
    """Move a site; each process dies at a later commit, `APART` after the previous one."""
    for number in itertools.count(first, APART):
        commits = itertools.count()

        def seen(
            method: str, _request: object, number: int = number, commits: Any = commits
        ) -> None:
            if method.endswith("Commit") and next(commits) == number:
                raise Killed

        mover = reader_processes.Reader(datastore, seen=seen)
        with contextlib.suppress(Killed, errors.Overloaded):
            mover.do(
                lambda: (
                    rescheming.begin(site, scheme, sample_threads.ADA, now=sample_threads.START),
                    rescheming.run_to_end(site),
                )
            )
        done = reader_processes.Reader(datastore).do(lambda: rescheming.progress(site))
        if (
            done is not None
            and done.phase == "done"
            and sorthash.decode_scheme(done.scheme) == scheme
        ):
            assert done.left == 0
            return


def assert_walk(name: records.ThreadName, scheme: sorthash.Scheme) -> None:
    stored = recursive_walk.stored(name)
    assert [row.id for row in stored] == recursive_walk.order(stored, scheme.levels)
    assert repair.find_problems(scheme, name) == []


EXPORTS = {
    "disqus/evanlin-189.xml": disqus.read,
    "wxr/themeunittestdata-33.xml": wordpress.read,
}


def test_trees_are_right_while_people_write_and_movers_die(
    datastore: datastores.Datastore, store: connection.Store, site: records.Site
) -> None:
    sample_threads.shaped(site, DECIMAL)
    grow(NAME)
    compactor.compact(DECIMAL, NAME)
    move_beside_people(datastore, NAME, SCHEMES)


def test_an_export_is_right_while_people_write_and_movers_die(
    datastore: datastores.Datastore, garden: records.Site
) -> None:
    """People use the longest thread that fits on a page; all threads move."""
    name = "wxr/themeunittestdata-33.xml"  # A race takes much longer than a move alone
    _import(optional_tools.real_export(name), EXPORTS[name], garden)
    sizes = {each: len(recursive_walk.stored(each)) for each in repair.threads("garden")}
    # Readers ask for one page with all comments, also those that the writers add.
    longest = max((each for each in sizes if sizes[each] <= COMMENTS), key=sizes.__getitem__)
    compactor.compact(garden.scheme, longest)
    schemes = (*SCHEMES[:2], DECIMAL)
    move_beside_people(datastore, longest, schemes)
    for thread in repair.threads("garden"):
        assert_walk(thread, schemes[-1])


def move_beside_people(
    datastore: datastores.Datastore, name: records.ThreadName, schemes: Sequence[sorthash.Scheme]
) -> None:
    """Move a site to one scheme after the other, while two people write and two read."""
    writers = [Writer(datastore, name, seed) for seed in range(2)]
    lookers = [Looker(datastore, name) for _ in range(2)]
    for number, scheme in enumerate(schemes):
        with People(*(each.act for each in writers), *(each.act for each in lookers)) as people:
            people.wait_until_all_act()
            move_with_kills(datastore, name.site, scheme, number % APART)
        assert_walk(name, scheme)
        for each in (*lookers, reader_processes.Reader(datastore)):
            each.assert_current(name)
    stored = {row.id for row in recursive_walk.stored(name)}
    assert all(each in stored for writer in writers for each in writer.posted)
    assert all(writer.posted for writer in writers)
    assert all(looker.pages for looker in lookers)


@pytest.mark.parametrize("name", list(EXPORTS))
def test_a_moved_export_equals_a_fresh_import(garden: records.Site, name: str) -> None:
    file, reader = optional_tools.real_export(name), EXPORTS[name]
    _import(file, reader, garden)
    for levels in (3, 6, 2):
        scheme = sorthash.Scheme("0123456789", 1 + levels % 3, levels)
        rescheming.begin("garden", scheme, sample_threads.ADA, now=sample_threads.START)
        done = rescheming.run_to_end("garden")
        assert done is not None
        assert done.left == 0
        site = site_settings.add(
            f"fresh{levels}", garden.origins, scheme=scheme, now=sample_exports.NOW
        )
        _import(file, reader, site)
        assert _said("garden") == _said(site.id)
        for thread in repair.threads("garden"):
            assert repair.find_problems(scheme, thread) == []


def _import(file: Any, reader: import_source.Reader, site: records.Site) -> None:
    with checked_import.plan(
        reader, file, site=site, scheme=site.scheme, secret=sample_exports.SECRET
    ) as plan:
        import_writer.write(plan, scheme=site.scheme, now=sample_exports.NOW)


def _said(site: str) -> list[tuple[Any, ...]]:
    return [
        (row.thread, row.created, row.body, row.level, row.listed)
        for name in sorted(repair.threads(site), key=lambda name: name.id)
        for row in recursive_walk.stored(name)
    ]
