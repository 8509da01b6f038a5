"""After each move to another scheme, trees equal a recursive walk, despite writers and crashes.

The golden table belongs to digits 0-9, width 2 and three levels.
"""

import contextlib
import itertools
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import flask.testing
import pytest

from comments import errors
from comments.domain import records
from comments.domain.ids import sorthash
from comments.events import audit_log
from comments.reading import listings, thread_pages
from comments.reading.compaction import compactor
from comments.reading.materialized import directories
from comments.sites import site_settings
from comments.store import connection, ownership, reads, transactions
from comments.store.models import comment_rows
from comments.tree.lists import ordered_query, slugs
from comments.tree.schemes import scheme_change
from comments.upkeep import scheduler, wiring
from comments.upkeep.integrity import repair
from comments.upkeep.migrations import rescheming
from comments.web.rendering import labels
from tests.support import datastores
from tests.support.histories import counter_oracle
from tests.support.store_interceptors import InterceptorSlot
from tests.support.threads import reader_processes, recursive_walk, sample_threads

DECIMAL = sorthash.Scheme("0123456789", 2, 3)
NAME = records.ThreadName("demo", "page")
SECRET = sample_threads.SETTINGS.secret
# Begin, stamp, switch, buckets, directory and end; with fewer commits, the test would be too small.
LEAST_COMMITS = 6
# Comments in the order of their posts, each with the text of the comment that it answers.
TALK = (
    ("a", None), ("b", "a"), ("c", "b"), ("d", "c"), ("e", "b"), ("f", "d"), ("g", "a"),
    ("h", "a"), ("i", None), ("j", "i"), ("k", "c"), ("l", "i"), ("m", None), ("n", "f"),
)  # fmt: skip
GOLDEN = {
    "a": ("000000", "1"), "b": ("000100", "1-1"), "c": ("000101", "1-1-1"),
    "d": ("000102", "1-1-2"), "e": ("000103", "1-1-3"), "f": ("000104", "1-1-4"),
    "k": ("000105", "1-1-5"), "n": ("000106", "1-1-6"), "g": ("000200", "1-2"),
    "h": ("000300", "1-3"), "i": ("010000", "2"), "j": ("010100", "2-1"),
    "l": ("010200", "2-2"), "m": ("020000", "3"),
}  # fmt: skip
# The slugs with six levels. Comments that keep their parent keep their number.
DEEP = {
    "a": "1", "b": "1-1", "c": "1-1-1", "d": "1-1-1-1", "f": "1-1-1-1-1", "n": "1-1-1-1-1-1",
    "k": "1-1-1-2", "e": "1-1-3", "g": "1-2", "h": "1-3", "i": "2", "j": "2-1", "l": "2-2",
    "m": "3",
}  # fmt: skip


def talk(site: records.Site, thread: str = "page") -> dict[str, records.Comment]:
    """Post `TALK`, one comment a minute."""
    posted: dict[str, records.Comment] = {}
    for minute, (text, answered) in enumerate(TALK):
        posted[text] = sample_threads.post(
            site, text, answered and posted[answered].id, thread=thread,
            now=sample_threads.START + timedelta(minutes=minute),
        )  # fmt: skip
    return posted


def begin(scheme: sorthash.Scheme, site_id: str = "demo") -> rescheming.Progress:
    return rescheming.begin(site_id, scheme, sample_threads.ADA, now=sample_threads.START)


def move(scheme: sorthash.Scheme, site_id: str = "demo") -> rescheming.Progress:
    begin(scheme, site_id)
    done = rescheming.run_to_end(site_id)
    assert done is not None
    return done


def rows(name: records.ThreadName = NAME) -> list[records.Comment]:
    return recursive_walk.stored(name)


def table(scheme: sorthash.Scheme) -> dict[str, tuple[str, str]]:
    return {row.body: (sorthash.pad(scheme, row.sort_hash), row.slug) for row in rows()}


def assert_walk(scheme: sorthash.Scheme, name: records.ThreadName = NAME) -> None:
    """Fail if a thread, as stored or as readers see it, is not the recursive walk."""
    stored = rows(name)
    assert [row.id for row in stored] == recursive_walk.order(stored, scheme.levels)
    assert {row.id: row.parent for row in stored} == recursive_walk.parents(stored, scheme.levels)
    assert repair.find_problems(sorthash.Scheme(), name) == []
    listed = [row.id for row in stored if row.listed]
    assert [row.id for row in ordered_query.thread(name)] == listed
    asked = thread_pages.PageRequest(200, None, SECRET)
    page = listings.page(scheme, name, asked)
    expected = reader_processes.ordered_thread(name)
    assert (list(page.comments), list(page.replies), page.total) == expected


@pytest.fixture
def decimal(store: connection.Store, site: records.Site) -> records.Site:
    """The site "demo" with the scheme of the golden table."""
    return sample_threads.shaped(site, DECIMAL)


def test_the_golden_table_raised_lowered_and_back(decimal: records.Site) -> None:
    talk(decimal)
    assert table(DECIMAL) == GOLDEN
    raised = move(sorthash.Scheme("0123456789", 2, 6))
    assert (raised.phase, raised.threads, raised.moved, raised.left) == ("done", 1, 1, 0)
    assert {row.body: row.slug for row in rows()} == DEEP
    assert [row.body for row in rows()] == list(DEEP)
    assert_walk(sorthash.Scheme("0123456789", 2, 6))
    move(DECIMAL)
    assert table(DECIMAL) == GOLDEN
    move(sorthash.Scheme("0123456789", 2, 2))
    assert "".join(row.body for row in rows()) == "abcdefghknijlm"
    assert_walk(sorthash.Scheme(levels=2))
    move(DECIMAL)
    assert [row.body for row in rows()] == list(GOLDEN)
    assert_walk(DECIMAL)


@pytest.mark.parametrize(
    "scheme",
    [
        sorthash.Scheme(),
        sorthash.Scheme("01", 4, 3),
        sorthash.Scheme("abc", 1, 20),
        sorthash.Scheme("#$%&'()*+", 8, 1),
    ],
)
def test_other_digits_and_widths(decimal: records.Site, scheme: sorthash.Scheme) -> None:
    talk(decimal)
    compactor.compact(DECIMAL, NAME)
    move(scheme)
    assert_walk(scheme)
    assert site_settings.get("demo").scheme == scheme
    stored = reads.get(comment_rows.thread_key(NAME))
    assert sorthash.decode_scheme(stored.scheme) == scheme
    assert all(sorthash.to_numbers(scheme, row.sort_hash) for row in rows())
    move(DECIMAL)
    assert_walk(DECIMAL)


def test_new_comments_and_new_threads_get_the_new_scheme(decimal: records.Site) -> None:
    posted = talk(decimal)
    stale = decimal  # A process's copy of the site from before the move
    move(sorthash.Scheme("0123456789", 2, 6))
    reply = sample_threads.post(stale, "o", posted["n"].id, now=_later(1))
    assert (reply.level, reply.slug) == (5, "1-1-1-1-1-2")
    sibling = sample_threads.post(stale, "p", posted["b"].id, now=_later(2))
    assert sibling.slug == "1-1-7"  # Numbers are never used again
    talk(stale, "other")
    other = {row.body: row.slug for row in rows(records.ThreadName("demo", "other"))}
    assert other["n"] == "1-1-1-1-1-1"
    assert_walk(sorthash.Scheme(levels=6))


def test_a_tombstone_appears_when_its_replies_come_back(decimal: records.Site) -> None:
    posted = talk(decimal)
    sample_threads.retract(posted["d"])
    assert [row.listed for row in rows() if row.id == posted["d"].id] == [False]
    compactor.compact(DECIMAL, NAME)
    move(sorthash.Scheme("0123456789", 2, 6))
    assert [row.listed for row in rows() if row.id == posted["d"].id] == [True]
    assert_walk(sorthash.Scheme(levels=6))
    folded = compactor.compact(DECIMAL, NAME)
    assert folded is not None
    compactor.clear(folded)
    assert_walk(sorthash.Scheme(levels=6))
    move(DECIMAL)
    assert [row.listed for row in rows() if row.id == posted["d"].id] == [False]
    assert_walk(DECIMAL)
    sample_threads.post(decimal, "o", posted["c"].id, now=_later(1))
    assert_walk(DECIMAL)


def test_the_counts_of_threads_follow_a_tombstone(decimal: records.Site) -> None:
    posted = talk(decimal)
    sample_threads.retract(posted["d"])
    deliver()
    for scheme in (sorthash.Scheme("0123456789", 2, 6), DECIMAL):
        move(scheme)
        deliver()
        counter_oracle.assert_all_counted()


def deliver() -> None:
    events = counter_oracle.events()
    scheduler.deliver(events, now=sample_threads.START, handlers=wiring.HANDLERS)


def test_threads_of_older_releases_move_too(decimal: records.Site) -> None:
    talk(decimal)
    row = reads.get(comment_rows.thread_key(NAME))
    row.scheme = ""
    transactions.transaction(lambda: transactions.apply(ownership.Writes("tree", put=(row,))))
    move(sorthash.Scheme("01", 3, 6))
    assert_walk(sorthash.Scheme("01", 3, 6))


def test_a_former_slug_stays_with_its_comment(decimal: records.Site) -> None:
    posted = talk(decimal)
    move(sorthash.Scheme(levels=6))
    stored = reads.get(comment_rows.comment_key(posted["d"].id))
    assert (stored.slug, stored.former_slugs) == ("1-1-1-1", ["1-1-2"])
    move(DECIMAL)
    stored = reads.get(comment_rows.comment_key(posted["d"].id))
    assert (stored.slug, stored.former_slugs) == ("1-1-2", ["1-1-1-1"])


def test_a_former_slug_leads_on_to_its_comment(decimal: records.Site) -> None:
    posted = talk(decimal)
    move(sorthash.Scheme(levels=6))
    scheme = site_settings.get("demo").scheme
    for text, (_, slug) in GOLDEN.items():
        for known in (scheme, DECIMAL):  # A process may have an older copy of the site
            assert slugs.find(known, NAME, slug, field="slug").id == posted[text].id
            assert slugs.find(known, NAME, DEEP[text], field="slug").id == posted[text].id
    with pytest.raises(errors.NotFound):
        slugs.find(scheme, NAME, "1-1-99", field="slug")


def test_only_the_place_changes(decimal: records.Site) -> None:
    posted = talk(decimal)
    before = {row.id: row for row in rows()}
    move(sorthash.Scheme(levels=6))
    for row in rows():
        was = before[row.id]
        assert (row.body, row.html, row.changed, row.edited, row.text_revision) == (
            was.body, was.html, was.changed, was.edited, was.text_revision
        )  # fmt: skip
        assert row.revision == was.revision + 1
    assert len(posted) == len(before)


def test_a_thread_that_cannot_move_keeps_its_scheme(decimal: records.Site) -> None:
    for number in range(30):
        sample_threads.post(decimal, str(number), now=_later(number))
    talk(decimal, "small")
    done = move(sorthash.Scheme("01", 1, 3))  # A segment encodes up to 22 numbers
    assert (done.threads, done.left) == (1, 1)
    assert done.kept == (rescheming.KeptThread("page", "scheme-too-narrow"),)
    assert_walk(DECIMAL)
    assert_walk(sorthash.Scheme("01", 1, 3), records.ThreadName("demo", "small"))
    sample_threads.post(site_settings.get("demo"), "31", now=_later(31))
    assert_walk(DECIMAL)


def test_a_thread_above_the_size_of_a_commit_keeps_its_scheme(
    decimal: records.Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk(decimal)
    monkeypatch.setattr(scheme_change, "MOST_BYTES", 1000)
    done = move(sorthash.Scheme(levels=6))
    assert done.kept == (rescheming.KeptThread("page", "thread-too-large"),)
    assert table(DECIMAL) == GOLDEN


def test_the_audit_log_says_who_began_a_change(decimal: records.Site) -> None:
    wanted = sorthash.Scheme("0123456789", 2, 6)
    begin(wanted)
    begin(wanted)  # The job runs already, so nothing is decided.
    (entry,) = audit_log.log("demo")
    assert (entry.verb, entry.subject, entry.actor) == ("set-scheme", "site", sample_threads.ADA)
    assert sorthash.decode_scheme(entry.before) == DECIMAL
    assert sorthash.decode_scheme(entry.after) == wanted
    assert labels.change(entry) == "3 levels → 6 levels"


def test_the_audit_log_shows_the_width_and_the_digits_if_they_change(decimal: records.Site) -> None:
    begin(sorthash.Scheme("01234567", 3, 1))
    (entry,) = audit_log.log("demo")
    before, after = labels.change(entry).split(" → ")
    assert before == "3 levels, width 2, digits 0123456789"
    assert after == "1 level, width 3, digits 01234567"


def test_a_second_scheme_is_refused_while_a_job_runs(decimal: records.Site) -> None:
    begin(sorthash.Scheme(levels=6))
    assert begin(sorthash.Scheme(levels=6)).phase == "stamp"
    with pytest.raises(errors.Conflict, match="rescheme-running"):
        begin(sorthash.Scheme(levels=7))
    with pytest.raises(errors.NotFound):
        begin(sorthash.Scheme(), "nobody")
    assert rescheming.finish(steps=20) > 0
    assert rescheming.finish(steps=20) == 0
    assert begin(sorthash.Scheme(levels=7)).phase == "stamp"


ORDERS = list(thread_pages.ListingOrder)


@pytest.mark.parametrize("is_compacted", [False, True])
@pytest.mark.parametrize("order", ORDERS)
def test_cursors_of_the_previous_tree_have_expired(
    decimal: records.Site, order: thread_pages.ListingOrder, *, is_compacted: bool
) -> None:
    talk(decimal)
    if is_compacted:
        compactor.compact(DECIMAL, NAME)
    first = listings.page(DECIMAL, NAME, thread_pages.PageRequest(3, None, SECRET), order=order)
    old = thread_pages.PageRequest(3, first.cursor, SECRET)
    for _ in range(2):
        move(sorthash.Scheme("01", 3, 6))
        with pytest.raises(errors.CursorExpired):
            listings.page(DECIMAL, NAME, old, order=order)
        fresh = listings.page(DECIMAL, NAME, thread_pages.PageRequest(3, None, SECRET), order=order)
        old = thread_pages.PageRequest(3, fresh.cursor, SECRET)
        assert listings.page(DECIMAL, NAME, old, order=order).comments
        move(DECIMAL)
        with pytest.raises(errors.CursorExpired):
            listings.page(DECIMAL, NAME, old, order=order)


def test_an_old_cursor_answers_410(
    client: flask.testing.FlaskClient, decimal: records.Site, open_store: connection.Store
) -> None:
    with open_store.context():
        talk(decimal)
    path = "/api/v1/sites/demo/comments?thread=page&limit=3"
    cursor = client.get(path).get_json()["cursor"]
    with open_store.context():
        move(sorthash.Scheme(levels=6))
    answer = client.get(f"{path}&cursor={cursor}")
    assert (answer.status_code, answer.get_json()["code"]) == (410, "cursor-expired")
    assert client.get(path).status_code == 200


class Killed(BaseException):
    """An error that simulates the end of the process."""


class Kill:
    """A hook that ends the process before or after its n-th commit from now."""

    def __init__(self, when: str) -> None:
        self._when = when
        self._left = -1

    @property
    def is_over(self) -> bool:
        return self._left < 0

    def plan(self, number: int) -> None:
        self._left = number

    def __call__(self, method: str, _: Any, proceed: Any) -> Any:
        if method != "Commit" or self.is_over:
            return proceed()
        self._left -= 1
        if self.is_over and self._when == "before":
            raise Killed
        answer = proceed()
        if self.is_over:
            raise Killed
        return answer


def _later(minutes: int) -> Any:
    return sample_threads.START + timedelta(days=1, minutes=minutes)


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("is_compacted", [False, True])
@pytest.mark.embedded  # Emulators get fewer commits
def test_a_job_that_dies_at_any_commit_is_continued(
    datastore: datastores.Datastore,
    decimal: records.Site,
    interceptor: InterceptorSlot,
    when: str,
    *,
    is_compacted: bool,
) -> None:
    posted = talk(decimal)
    if is_compacted:
        compactor.compact(DECIMAL, NAME)
    reader = reader_processes.Reader(datastore)
    kill = interceptor.use(Kill(when))
    schemes = itertools.cycle([sorthash.Scheme("01", 3, 6), sorthash.Scheme("abc", 2, 2), DECIMAL])
    for number in itertools.count():
        reader.shown(NAME)
        scheme = next(schemes)
        kill.plan(number)
        with contextlib.suppress(Killed):
            move(scheme)
        if not kill.is_over:
            break
        sample_threads.post(decimal, f"x{number}", posted["d"].id, now=_later(number))
        reader.assert_current(NAME)
        reader_processes.Reader(datastore).assert_current(NAME)
        resumed = reader_processes.Reader(datastore)
        resumed.do(lambda: rescheming.finish(steps=20))
        # A process that died before its first commit has not begun the job.
        resumed.do(lambda scheme=scheme: move(scheme))  # type: ignore[misc]
        reader.assert_current(NAME)
        assert_walk(scheme)
    assert number >= LEAST_COMMITS


class Between:
    """A hook that lets another process act before the n-th call."""

    def __init__(
        self, datastore: datastores.Datastore, number: int, act: Callable[[], object]
    ) -> None:
        self.calls = 0
        self._number, self._act = number, act
        self._other = reader_processes.Reader(datastore)

    def __call__(self, _method: str, _request: object) -> None:
        if self.calls == self._number:
            self._other.do(self._act)
        self.calls += 1


@pytest.mark.slow
def test_no_page_mixes_the_previous_and_the_new_tree(
    datastore: datastores.Datastore, decimal: records.Site
) -> None:
    """A move between any two calls of a reader gives one of the two trees."""
    talk(decimal)
    compactor.compact(DECIMAL, NAME)
    schemes = itertools.cycle([sorthash.Scheme("01", 3, 6), DECIMAL])
    answered = next(row for row in rows() if row.body == "b").id

    for kind in range(8):
        for number in range(12):
            between = Between(datastore, number, lambda: move(next(schemes)))
            before = _one(datastore, kind, answered)
            reader = reader_processes.Reader(datastore, seen=between)
            seen = reader.do(lambda kind=kind: _page(kind, answered))  # type: ignore[misc]
            after = _one(datastore, kind, answered)
            assert seen in (before, after)
            if between.calls <= number:
                break


def _one(datastore: datastores.Datastore, kind: int, answered: str) -> Any:
    return reader_processes.Reader(datastore).do(lambda: _page(kind, answered))


def _page(kind: int, answered: str) -> Any:
    asked = thread_pages.PageRequest(200, None, SECRET)
    if kind == 0:
        return _said(listings.replies(answered, asked))
    if kind == 1:
        return _said(listings.around(DECIMAL, NAME, answered, asked))
    if kind == 2:
        return _said(listings.page(DECIMAL, NAME, asked, parent=answered))
    order = ORDERS[kind - 3]
    return _said(listings.page(DECIMAL, NAME, asked, order=order))


def _said(page: Any) -> Any:
    return list(page.comments), list(page.replies), page.total


def test_a_directory_of_the_previous_tree_is_not_compacted_further(decimal: records.Site) -> None:
    posted = talk(decimal)
    compactor.compact(DECIMAL, NAME)
    prepared = compactor.prepare(DECIMAL, NAME)
    move(sorthash.Scheme("01", 3, 6))
    assert prepared is not None
    compactor.switch(prepared)
    sample_threads.post(decimal, "o", posted["a"].id, now=_later(1))
    compactor.compact(DECIMAL, NAME)
    assert directories.load_directory(NAME).content.shape == 1
    assert_walk(sorthash.Scheme("01", 3, 6))
