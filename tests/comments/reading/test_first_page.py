"""The first page that a directory stores equals the first page of the directory's view.

Every test that compares a compacted thread with the ordered query also proves that no outdated
first page is shown, because a short thread's first page is the whole thread.
"""

from collections.abc import Iterator
from datetime import UTC, datetime

import msgspec
import pytest

from comments.domain import presentation, records
from comments.posting import own_comment
from comments.reading import listings, thread_pages
from comments.reading.compaction import compactor
from comments.reading.materialized import directories, first_page, thread_view, view_cache
from comments.store import connection, ownership, reads, transactions
from comments.store.models import bucket_rows
from datastore_emulator import inprocess, testing
from tests.support import datastores
from tests.support.threads import compaction, reader_processes, sample_threads

SCHEME, SECRET = sample_threads.SETTINGS.scheme, sample_threads.SETTINGS.secret
# These stored bytes must stay readable. To change the format, increase the format number instead.
GOLDEN = (
    "0498a374616703d6ff69570a8093a57469746c65b268747470733a2f2f612e6578616d706c652fc0cd02bc92"
    "a24141a441414142c4677b226964223a2261222c227265706c696573223a312c22706f736974696f6e223a31"
    "2c2273756274726565223a5b312c325d7d2c7b226964223a2262222c227265706c696573223a302c22706f73"
    "6974696f6e223a322c2273756274726565223a5b322c325d7dc4417b226964223a2263222c2270696e6e6564"
    "223a747275652c227265706c696573223a302c22706f736974696f6e223a332c2273756274726565223a5b33"
    "2c335d7d"
)
HEAD = first_page.FirstPage(
    tag="tag",
    total=3,
    changed=datetime(2026, 1, 2, tzinfo=UTC),
    about=records.ThreadHeading("title", "https://a.example/"),
    weight=700,
    hashes=("AA", "AAAB"),
    sent=(
        b'{"id":"a","replies":1,"position":1,"subtree":[1,2]},'
        b'{"id":"b","replies":0,"position":2,"subtree":[2,2]}'
    ),
    pinned=b'{"id":"c","pinned":true,"replies":0,"position":3,"subtree":[3,3]}',
)


def test_a_first_page_survives_encoding_and_decoding() -> None:
    assert first_page.decode(first_page.encode(HEAD)) == HEAD


def test_the_format_of_a_first_page_is_stable() -> None:
    assert first_page.decode(bytes.fromhex(GOLDEN)) == HEAD


def test_an_unknown_format_is_ignored() -> None:
    assert first_page.decode(b"") is None
    assert first_page.decode(b"\x03" + first_page.encode(HEAD)[1:]) is None
    assert first_page.encode(None) == b""


def test_a_first_page_serves_limits_up_to_its_rows_and_short_threads_whole() -> None:
    assert [limit for limit in (1, 2, 3, 200) if HEAD.has_enough(limit)] == [1, 2]
    whole = msgspec.structs.replace(HEAD, total=2)
    assert whole.has_enough(200)
    assert whole.page(200, label="x", secret=SECRET).cursor is None
    assert whole.page(1, label="x", secret=SECRET).cursor is not None


@pytest.fixture(autouse=True)
def _small(store: connection.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run all these tests inside the store, with buckets smaller than a first page."""
    compaction.small_buckets(monkeypatch, 8, 4)
    monkeypatch.setattr(first_page, "ROWS", 12)


@pytest.fixture
def name(site: records.Site) -> records.ThreadName:
    """A compacted and cleared thread with 16 comments."""
    sample_threads.grow(
        site, {f"{root}": {f"{root}.1": {}, f"{root}.2": {}} for root in range(1, 6)}
    )
    sample_threads.post(site, "last")
    return _compact(sample_threads.name_of(site))


def _compact(name: records.ThreadName) -> records.ThreadName:
    compaction.whole(name)
    compaction.forget()
    return name


def _page(name: records.ThreadName, limit: int) -> bytes:
    return listings.page(SCHEME, name, thread_pages.PageRequest(limit, None, SECRET)).json()


def _tags(name: records.ThreadName) -> Iterator[str]:
    """Yield the first page's tag."""
    asked = thread_pages.PageRequest(5, None, SECRET)
    yield thread_pages.InOrder(name, asked).look()


def _without_heads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_page, "decode", lambda _stored: None)
    compaction.forget()


def _assert_first_page(name: records.ThreadName) -> None:
    """Check that the stored first page exists and equals the page from the directory's rows."""
    limits = (1, 5, 12)
    head = thread_view.current_first_page(name, max(limits))
    assert head is not None
    found = [_page(name, limit) for limit in limits], list(_tags(name))
    with pytest.MonkeyPatch.context() as patch:
        _without_heads(patch)
        assert found == ([_page(name, limit) for limit in limits], list(_tags(name)))
        assert head.tag == thread_view.view(name).tag
        assert head.weight == directories.load_directory(name).weight
    compaction.forget()


def test_a_first_page_equals_its_directorys_rows(
    name: records.ThreadName, site: records.Site
) -> None:
    _assert_first_page(name)
    rows = thread_view.view(name).rows()
    first, second = (next(rows).id for _ in range(2))
    sample_threads.post(site, "in the tail", first)
    _assert_first_page(_compact(name))
    own_comment.retract(second, author_id="g:1.1", revision=None, now=sample_threads.START)
    _assert_first_page(_compact(name))


def test_a_directory_without_cleared_rows_has_its_own_first_page(
    name: records.ThreadName, site: records.Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compactor, "MOST_CLEARING", 0)
    sample_threads.post(site, "more")
    _assert_first_page(_compact(name))
    assert not directories.load_directory(name).content.clearing


def test_an_outdated_first_page_is_not_shown(name: records.ThreadName, site: records.Site) -> None:
    shown = _page(name, 12)
    rows = [
        presentation.read(json, 0)
        for json in listings.page(SCHEME, name, thread_pages.PageRequest(12, None, SECRET)).comments
    ]
    sample_threads.post(site, "far below the first page")
    changed = _page(name, 12)
    assert thread_view.current_first_page(name, 12) is None
    thread_view.forget_probe()
    assert changed != shown  # The total is different
    own_comment.retract(rows[0].id, author_id="g:1", revision=None, now=sample_threads.START)
    reader = reader_processes.ordered_thread(name)
    found = listings.page(SCHEME, name, thread_pages.PageRequest(12, None, SECRET))
    assert (list(found.comments), list(found.replies), found.total) == (
        reader[0][:12],
        reader[1][:12],
        reader[2],
    )


def test_the_probe_of_a_first_page_is_made_once(
    name: records.ThreadName, site: records.Site, datastore: datastores.Datastore
) -> None:
    _page(name, 12)
    sample_threads.post(site, "new")
    calls: list[str] = []
    process = reader_processes.Reader(datastore, seen=lambda method, _request: calls.append(method))
    asked = thread_pages.PageRequest(12, None, SECRET)
    process.do(lambda: listings.page(SCHEME, name, asked))
    assert calls.count("RunQuery") == 1


@pytest.mark.parametrize("slow", ["Lookup", "RunQuery"])
def test_a_first_page_too_old_when_its_probe_returns_is_not_shown(
    name: records.ThreadName, datastore: datastores.Datastore, slow: str
) -> None:
    """The directory's age counts from before its read; a compaction may run during the read."""
    calls: list[str] = []

    def seen(method: str, _request: object) -> None:
        calls.append(method)
        if calls.count(slow) == 1:
            process.now = view_cache.CACHE_MAX_AGE

    process = reader_processes.Reader(datastore, seen=seen)
    asked = thread_pages.PageRequest(12, None, SECRET)
    process.do(lambda: listings.page(SCHEME, name, asked))
    assert calls[:4] == ["Lookup", "RunQuery", "Lookup", "RunQuery"]


def test_a_thread_compacted_by_an_older_release_is_readable(
    name: records.ThreadName, engine: inprocess.Engine
) -> None:
    shown = _page(name, 12)
    for head in (None, b"\x01of another form"):
        _store_head(name, head)
        compaction.forget()
        with testing.meter(engine) as cost:
            assert _page(name, 12) == shown
        assert cost.reads > 1


def _store_head(name: records.ThreadName, head: bytes | None) -> None:
    def body() -> None:
        row = reads.get(bucket_rows.directory_key(name))
        row.head = head
        transactions.apply(ownership.Writes("compactor", put=(row,)))

    transactions.transaction(body)


def test_rows_too_long_for_a_first_page_are_read_without_one(
    name: records.ThreadName, site: records.Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_page, "BYTES", 1_000)
    sample_threads.post(site, "more")
    _compact(name)
    assert reads.get(bucket_rows.directory_key(name)).head == b""
    page = listings.page(SCHEME, name, thread_pages.PageRequest(12, None, SECRET))
    assert list(page.comments) == reader_processes.ordered_thread(name)[0][:12]
