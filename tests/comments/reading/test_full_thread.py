"""Whole threads and subtrees in one response equal the ordered query and have the expected cost.

Buckets are small in these tests, so a few dozen comments need several. The tests include the
process's caches: no later response may contain an outdated part.
"""

import gzip
import random
import zlib
from collections.abc import Iterator

import msgspec
import pytest
from flask.testing import FlaskClient

from benchmarks.threads import conversations, loading
from comments.domain import presentation, records
from comments.posting import own_comment
from comments.reading import full_thread
from comments.reading.compaction import compactor
from comments.store import connection
from comments.tree.lists import ordered_query
from comments.web.http import content_coding, responses
from datastore_emulator import inprocess, testing
from tests.support import prepared_stores
from tests.support.people import api_requests
from tests.support.threads import compaction, large_thread, sample_threads

SECRET = "a secret of the tests"
PAGE = "/api/v1/sites/demo/comments?thread=page"
ALL = f"{PAGE}&limit=all"
GZIP = {"Accept-Encoding": "gzip"}


@pytest.fixture(autouse=True)
def _small_buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    compaction.small_buckets(monkeypatch, 4, 3)


def expected(name: records.ThreadName, below: str = "") -> list[dict[str, object]]:
    """Return a thread from the ordered query, counting each comment's replies one by one."""
    rows = ordered_query.thread(name)
    top = next((row.sort_hash for row in rows if row.id == below), "")
    return [
        msgspec.json.decode(
            presentation.with_replies(
                presentation.fragment(row),
                sum(each.sort_hash.startswith(row.sort_hash) for each in rows) - 1,
            )
        )
        for row in rows
        if row.sort_hash.startswith(top) and row.sort_hash != top
    ]


def compact(site: records.Site) -> None:
    """Compact, clear without a grace period, and empty this process's caches."""
    folded = compactor.compact(sample_threads.SETTINGS.scheme, sample_threads.name_of(site))
    if folded is not None:
        compactor.clear(folded)
        loading.cold()


def change(site: records.Site, chance: random.Random) -> None:
    """Post, edit or retract one comment."""
    rows = [
        row for row in ordered_query.thread(sample_threads.name_of(site)) if not row.is_tombstone
    ]
    row = chance.choice(rows) if rows else None
    kind = chance.choice(("post", "post", "root", "edit", "retract")) if row else "root"
    if row is None or kind in {"post", "root"}:
        parent = row.id if row and kind == "post" else None
        sample_threads.post(
            site, f"text {chance.random()}", parent, author=records.Author("A", id="g:a")
        )
    elif kind == "edit":
        own_comment.edit(
            row.id,
            author_id="g:a",
            body=f"other {chance.random()}",
            revision=None,
            settings=sample_threads.SETTINGS,
            now=sample_threads.START,
        )
    else:
        own_comment.retract(row.id, author_id="g:a", revision=None, now=sample_threads.START)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_whole_threads_equal_the_ordered_query_at_all_times(
    open_store: connection.Store, client: FlaskClient, site: records.Site, seed: int
) -> None:
    chance = random.Random(seed)
    for step in range(100):
        with open_store.context():
            change(site, chance)
            if chance.random() < 0.06:
                compact(site)
            if chance.random() < 0.06:
                compactor.compact(sample_threads.SETTINGS.scheme, sample_threads.name_of(site))
            want = expected(sample_threads.name_of(site))
            some = chance.choice(want)["id"] if want else None
            below = expected(sample_threads.name_of(site), str(some)) if some else []
        got = client.get(ALL, headers=GZIP if step % 2 else {})
        page = msgspec.json.decode(zlib.decompress(got.data, 31) if step % 2 else got.data)
        assert page["comments"] == want
        assert (page["cursor"], page["total"]) == (None, len(want))
        assert page["changed"] == client.get(PAGE).json["changed"]
        if some:
            under = client.get(f"/api/v1/comments/{some}/replies?limit=all").json
            assert under is not None
            assert (under["comments"], under["total"]) == (below, len(want))


@pytest.fixture
def compacted_rows(open_store: connection.Store, site: records.Site) -> dict[str, records.Comment]:
    """A compacted thread with several buckets."""
    with open_store.context():
        found = sample_threads.grow(
            site, {str(n): {f"{n}.{m}": {} for m in range(5)} for n in range(6)}
        )
        compact(site)
        return found


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bytes]]:
    """Record the chunks that are built and encoded, except the response's start and end."""
    seen: list[bytes] = []
    part = content_coding.encode_part

    def noting(data: bytes, coding: content_coding.Coding) -> content_coding.EncodedPart:
        if b'"html"' in data:
            seen.append(data)
        return part(data, coding)

    monkeypatch.setattr(content_coding, "encode_part", noting)
    return iter([seen])


@pytest.mark.parametrize("headers", [{}, GZIP], ids=["plain", "gzip"])
def test_after_a_change_only_the_affected_chunks_are_built(
    client: FlaskClient,
    compacted_rows: dict[str, records.Comment],
    made: Iterator[list[bytes]],
    headers: dict[str, str],
) -> None:
    pieces_made = next(made)
    client.get(ALL, headers=headers)
    assert len(pieces_made) == 9  # 36 comments in buckets of four
    posted = {"name": "Ann", "body": "a new one", "parent": compacted_rows["3"].id}
    assert client.post(PAGE, json=posted).status_code == 201
    pieces_made.clear()
    client.get(ALL, headers=headers)
    # Two buckets change: the one with the discussion's end and the one with its root.
    assert 1 <= len(pieces_made) <= 2
    assert sum(b"a new one" in piece for piece in pieces_made) == 1
    pieces_made.clear()
    client.get(ALL, headers=headers)
    assert pieces_made == []


@pytest.mark.parametrize("headers", [{}, GZIP], ids=["plain", "gzip"])
def test_the_first_chunk_may_become_empty(
    open_store: connection.Store,
    client: FlaskClient,
    site: records.Site,
    headers: dict[str, str],
) -> None:
    with open_store.context():
        rows = sample_threads.grow(site, {str(n): {} for n in range(20)})
        compact(site)
        assert len(full_thread.WholeThread(sample_threads.name_of(site), SECRET).page().pieces) == 5
    client.get(ALL, headers=headers)
    for n in range(4):
        with open_store.context():
            own_comment.retract(
                rows[str(n)].id, author_id=f"g:{n}", revision=None, now=sample_threads.START
            )
    got = client.get(ALL, headers=headers)
    plain = gzip.decompress(got.data) if headers else got.data
    assert [each["id"] for each in msgspec.json.decode(plain)["comments"]] == [
        rows[str(n)].id for n in range(4, 20)
    ]


def test_a_whole_thread_is_one_gzip_member_that_any_client_unpacks(
    client: FlaskClient, compacted_rows: dict[str, records.Comment]
) -> None:
    packed = client.get(ALL, headers=GZIP)
    unpacker = zlib.decompressobj(31)
    plain = unpacker.decompress(packed.data)
    assert unpacker.eof
    assert unpacker.unused_data == b""
    assert plain == gzip.decompress(packed.data) == client.get(ALL).data
    assert packed.headers["Content-Length"] == str(len(packed.data))


@pytest.mark.parametrize("sizes", [(0,), (1,), (0, 0), (5, 0, 7), (70_000, 1, 300_000)])
def test_parts_are_joined_with_the_right_length_and_checksum(sizes: tuple[int, ...]) -> None:
    datas = [random.Random(size).randbytes(size) for size in sizes]
    parts = [content_coding.encode_part(data, content_coding.Coding.GZIP) for data in datas]
    packed = b"".join(content_coding.join(parts, content_coding.Coding.GZIP))
    assert gzip.decompress(packed) == b"".join(datas)


@pytest.mark.parametrize("headers", [{}, GZIP], ids=["plain", "gzip"])
@pytest.mark.parametrize("again", range(2))
def test_a_whole_thread_has_an_etag_and_answers_304_and_head(
    client: FlaskClient,
    compacted_rows: dict[str, records.Comment],
    headers: dict[str, str],
    again: int,
) -> None:
    for url in (ALL, f"/api/v1/comments/{compacted_rows['2'].id}/replies?limit=all"):
        for _ in range(1 + again):
            got, head = client.get(url, headers=headers), client.head(url, headers=headers)
        assert (head.status_code, head.data, list(head.headers)) == (200, b"", list(got.headers))
        known = headers | {"If-None-Match": got.headers["ETag"]}
        assert client.get(url, headers=known).status_code == 304
        assert client.get(PAGE, headers=known).status_code == 200


def test_a_304_builds_no_chunk(
    open_store: connection.Store,
    client: FlaskClient,
    compacted_rows: dict[str, records.Comment],
    made: Iterator[list[bytes]],
) -> None:
    tag = client.get(ALL).headers["ETag"]
    pieces_made = next(made)
    pieces_made.clear()
    cache = responses.PAGES.of(open_store)
    for key in list(cache._kept):
        cache.drop(key)
    assert client.get(ALL, headers={"If-None-Match": tag}).status_code == 304
    assert pieces_made == []


@pytest.mark.parametrize(
    "more", ["order=recent", "order=best", "order=oldest", "parent=root", "cursor=x", "around="]
)
def test_limit_all_cannot_be_combined_with_a_cursor_or_a_choice(
    client: FlaskClient, compacted_rows: dict[str, records.Comment], more: str
) -> None:
    more += compacted_rows["1"].id if more == "around=" else ""
    for url in (
        f"{ALL}&{more}",
        f"/api/v1/comments/{compacted_rows['1'].id}/replies?limit=all&cursor=x",
    ):
        response = client.get(url)
        assert (response.status_code, response.json["field"]) == (400, "limit")


@pytest.mark.parametrize("limit", ["ALL", "al", "all%20", "0", "-1", "201", ""])
def test_other_words_are_not_a_limit(client: FlaskClient, limit: str) -> None:
    response = client.get(f"{PAGE}&limit={limit}")
    assert (response.status_code, response.json["field"]) == (400, "limit")
    assert client.get("/embed/demo?thread=page&limit=all").status_code == 400


@pytest.mark.parametrize("is_compacted", [True, False], ids=["folded", "floor"])
def test_a_thread_beyond_the_limit_of_one_response_is_refused(
    open_store: connection.Store,
    client: FlaskClient,
    site: records.Site,
    monkeypatch: pytest.MonkeyPatch,
    is_compacted: bool,
) -> None:
    with open_store.context():
        rows = sample_threads.grow(site, {"1": {"1.1": {}, "1.2": {}}, "2": {}})
        if is_compacted:
            compact(site)
    below = f"/api/v1/comments/{rows['1'].id}/replies?limit=all"
    monkeypatch.setattr(full_thread, "MOST", 1)
    assert client.get(below).json["field"] == "limit"
    monkeypatch.setattr(full_thread, "MOST", 3)
    assert client.get(ALL).json["field"] == "limit"
    assert len(client.get(below).json["comments"]) == 2
    monkeypatch.setattr(full_thread, "MOST", 4)
    assert len(client.get(ALL).json["comments"]) == 4


def test_an_empty_thread_is_an_empty_list(client: FlaskClient) -> None:
    assert api_requests.is_empty(client.get(ALL))


def _store(engine: inprocess.Engine) -> connection.Store:
    return connection.Store(inprocess.Channel(engine), project=loading.PROJECT)


@pytest.mark.embedded
@pytest.mark.slow
def test_a_whole_thread_of_1500_costs_its_directory_and_buckets(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()  # Restore the real bucket size
    path, order = (
        large_thread.copied(tmp_path_factory, 1_500),
        conversations.walk(large_thread.thread(1_500)),
    )
    with prepared_stores.opened(path) as engine, _store(engine).context():
        listing = full_thread.WholeThread(loading.NAME, SECRET)
        with testing.meter(engine) as cost:
            found = listing.page().json()
        keys = [key[-2] for key in cost.keys_read]
        assert cost.reads <= 1 + keys.count("Bucket")
        assert 5 <= keys.count("Bucket") <= 18
        assert [each["id"] for each in msgspec.json.decode(found)["comments"]] == order
        with testing.meter(engine) as cost:
            assert listing.page().json() == found
        assert cost.reads == 0


class _Everything:
    """A set that contains every chunk's mark."""

    def __contains__(self, mark: object) -> bool:
        return True


def test_a_chunks_mark_is_known_without_its_bucket(
    engine: inprocess.Engine,
    open_store: connection.Store,
    compacted_rows: dict[str, records.Comment],
    site: records.Site,
) -> None:
    with open_store.context():
        loading.cold()
        with testing.meter(engine) as cost:
            source = full_thread.WholeThread(sample_threads.name_of(site), SECRET)
            source.known = _Everything()
            found = source.page()
            marks = {piece.mark for piece in found.pieces}
        assert [key[-2] for key in cost.keys_read] == ["BucketDirectory"]
        assert len(marks) == 9
