"""The order `best` follows the formula, its pages join, and its cursors keep their ranking."""

import hashlib
from datetime import UTC, datetime, timedelta

import flask.testing
import pytest
from hypothesis import given
from hypothesis import strategies as st

from comments import errors
from comments.domain import presentation, records
from comments.moderation import decisions
from comments.posting import own_comment
from comments.reading import listings, thread_pages
from comments.reading.compaction import compactor, leftovers
from comments.reading.materialized import buckets, directories, ranking, view_cache
from comments.reading.thread_pages import ListingOrder
from comments.store import connection, reads
from comments.store.models import comment_rows
from comments.tree.lists import ordered_query
from comments.upkeep import scheduler
from datastore_emulator import inprocess, testing
from tests.support.threads import compaction, sample_threads

SECRET = sample_threads.SETTINGS.secret
SCHEME = sample_threads.SETTINGS.scheme
# These stored bytes must stay readable. To change the format, add a new format instead.
GOLDEN_RANKING = "789c9b347991a313330390746462040022ad0408"
GOLDEN_TOP = "789c9b3869ca2247c75d893801e311a6ea5a2600480e0f31"
# Each discussion's upvotes and downvotes, in posting order.
VOTES = [(0, 0), (1, 0), (90, 10), (0, 9), (3, 3), (1, 0), (0, 0), (40, 1), (0, 0)]
LONG_AFTER = datetime(2100, 1, 1, tzinfo=UTC)
BEST = [7, 2, 1, 5, 4, 0, 3, 6, 8]


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make sizes so small that a short thread has several buckets and rows beyond the top."""
    compaction.small_buckets(monkeypatch)
    monkeypatch.setattr(ranking, "TOP_ROWS", 6)


def _id(text: str) -> str:
    return comment_rows.comment_id(hashlib.sha256(text.encode()).digest())


def _import(
    site: records.Site, text: str, votes: tuple[int, int] = (0, 0), parent: str | None = None
) -> str:
    up, down = votes
    node = records.ImportedComment(
        id=_id(text),
        reply_to=parent,
        author=records.Author("Ann"),
        body=text,
        html=f"<p>{text}</p>",
        renderer="test",
        status=records.Status.APPROVED,
        created=sample_threads.START,
        source=f"test:{text}",
        up=up,
        down=down,
    )
    sample_threads.store_imported(sample_threads.name_of(site), node)
    return node.id


@pytest.fixture
def name(store: connection.Store, site: records.Site) -> records.ThreadName:
    """An uncompacted thread with votes and two replies in each discussion."""
    for place, votes in enumerate(VOTES):
        root = _import(site, f"{place}", votes)
        reply = _import(site, f"{place}.1", (5, 0), root)
        _import(site, f"{place}.1.1", (0, 0), reply)
    return sample_threads.name_of(site)


def _compact(name: records.ThreadName) -> None:
    compaction.whole(name)
    compaction.forget()


def _page(
    name: records.ThreadName, limit: int = 4, cursor: str | None = None
) -> presentation.ThreadPage:
    asked = thread_pages.PageRequest(limit, cursor, SECRET)
    return listings.page(SCHEME, name, asked, order=ListingOrder.BEST)


def _from(name: records.ThreadName, cursor: str | None, limit: int) -> list[tuple[bytes, int]]:
    """Return all rows from a cursor onwards, with their reply counts."""
    found: list[tuple[bytes, int]] = []
    while True:
        page = _page(name, limit, cursor)
        found += zip(page.comments, page.replies, strict=True)
        assert len(found) <= page.total, "paging does not end"
        cursor = page.cursor
        if cursor is None:
            return found


def _expected(name: records.ThreadName, roots: list[str]) -> list[tuple[bytes, int]]:
    """Return the discussions with these roots as the ordered query returns them."""
    rows = ordered_query.thread(name)
    return [
        (presentation.fragment(row), sum(o.sort_hash.startswith(row.sort_hash) for o in rows) - 1)
        for root in roots
        for row in rows
        if row.sort_hash.startswith(next(r.sort_hash for r in rows if r.id == _id(root)))
    ]


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_a_score_is_between_0_and_1_and_votes_move_it_their_way(up: int, down: int) -> None:
    found = ranking.score(up, down)
    assert 0 <= found <= 1
    assert ranking.score(up + 1, down) >= found
    assert ranking.score(up, down + 1) <= found
    assert (found > 0) == (up > 0)


def test_many_votes_rank_above_a_higher_share_of_few_votes() -> None:
    assert ranking.score(90, 10) > ranking.score(1, 0)
    # Published example values for the formula: 1 of 1 and 90 of 100.
    assert round(ranking.score(1, 0), 4) == 0.2065
    assert round(ranking.score(90, 10), 4) == 0.8256


def test_the_format_of_a_ranking_is_stable() -> None:
    made = ranking.Ranking(
        (ranking.RankedDiscussion("AB", 3, 0), ranking.RankedDiscussion("AA", 2, 1))
    )
    assert ranking.decode(ranking.encode(made)) == made
    top = (ranking.TopRow(buckets.ListedEntry("AA", "a" * 26, 1, b"{}"), 2),)
    assert ranking.decode_top(ranking.encode_top(top)) == top
    assert ranking.decode(bytes.fromhex(GOLDEN_RANKING)) == made
    assert ranking.decode_top(bytes.fromhex(GOLDEN_TOP)) == top


@pytest.mark.slow
@pytest.mark.parametrize("limit", [1, 4, 7, 200])
def test_pages_of_best_join_to_the_discussions_by_score(
    name: records.ThreadName, site: records.Site, limit: int
) -> None:
    best = [str(place) for place in BEST]
    assert _from(name, None, limit) == _expected(name, [str(n) for n in range(len(VOTES))])
    _compact(name)
    assert _from(name, None, limit) == _expected(name, best)
    # The order is the same with replies in the delta, in the tail and in buckets.
    for step in range(6):
        sample_threads.post(site, f"late {step}", _id(f"{BEST[step]}.1"))
        assert _from(name, None, limit) == _expected(name, best)
        if step % 2:
            _compact(name)
            assert _from(name, None, limit) == _expected(name, best)


def test_unranked_discussions_follow_at_the_end(
    name: records.ThreadName, site: records.Site
) -> None:
    _compact(name)
    first = _page(name)
    _import(site, "newest", (99, 0))
    order = [*map(str, BEST), "newest"]
    assert [*first.comments, *(row for row, _ in _from(name, first.cursor, 5))] == [
        row for row, _ in _expected(name, order)
    ]


@pytest.mark.parametrize("is_compacted", [False, True])
def test_a_discussion_shown_again_returns_to_its_place(
    store: connection.Store, site: records.Site, *, is_compacted: bool
) -> None:
    name, texts = sample_threads.name_of(site), ["ranked", *map(str, range(9))]
    for text in texts:
        _import(site, text, (int(text == "ranked"), 0))
    answer = sample_threads.post(site, "an answer", _id("2")).id
    away = [answer, _id("2"), _id("1")]
    for each in away:
        _judge(each, records.Verb.HOLD)
    _compact(name)
    assert _from(name, None, 3) == _expected(name, [each for each in texts if each not in "12"])
    while away:
        _judge(away.pop(), records.Verb.APPROVE)
        if is_compacted:
            _compact(name)
        roots = [text for text in texts if _id(text) not in away]
        assert _from(name, None, 3) == _expected(name, roots)


def _judge(comment_id: str, verb: records.Verb) -> None:
    decisions.decide(
        "demo", comment_id, verb, records.Actor("cli", "a test"), now=sample_threads.START
    )


def test_a_cursor_keeps_its_ranking_until_that_is_deleted(
    name: records.ThreadName, site: records.Site
) -> None:
    _compact(name)
    cursor = _page(name).cursor
    _import(site, "newest", (99, 0))
    _compact(name)
    assert _from(name, None, 5) == _expected(name, ["newest", *map(str, BEST)])
    assert _from(name, cursor, 5) == _expected(name, [*map(str, BEST), "newest"])[4:]
    assert len(_stored_rankings()) == 2
    assert leftovers.expire(LONG_AFTER) == 1
    assert _stored_rankings() == {_named_ranking(name)}
    compaction.forget()
    with pytest.raises(errors.CursorExpired) as refusal:
        _page(name, cursor=cursor)
    assert (refusal.value.field, refusal.value.code) == ("cursor", "cursor-expired")
    assert _from(name, None, 5) == _expected(name, ["newest", *map(str, BEST)])


def test_upkeep_deletes_a_ranking_once_its_cursors_have_expired(
    name: records.ThreadName, site: records.Site
) -> None:
    def keeper(seconds: float) -> scheduler.Scheduler:
        """Return the scheduler of a new process, which has no state."""
        return scheduler.Scheduler(now=lambda: sample_threads.START + timedelta(seconds=seconds))

    keeper(0).round([name])
    _import(site, "newest", (99, 0))
    keeper(0).round([name])
    term = ranking.KEPT + ranking.SKEW
    for age, left in ((ranking.KEPT, 2), (term - 1, 2), (term, 1)):
        keeper(age).expire()
        assert len(_stored_rankings()) == left
    assert _stored_rankings() == {_named_ranking(name)}


def test_a_compaction_deletes_expired_rankings(
    name: records.ThreadName, site: records.Site
) -> None:
    term = timedelta(seconds=ranking.KEPT + ranking.SKEW)
    kept = []
    for age in range(4):
        _import(site, f"newest {age}", (99 + age, 0))
        compaction.whole(name, now=sample_threads.START + age * term / 2)
        kept.append(len(_stored_rankings()))
    assert kept == [1, 2, 3, 3]
    assert leftovers.expire(sample_threads.START + 2 * term) == 1
    assert leftovers.expire(sample_threads.START + 2 * term) == 0
    # The next compaction's directory does not name deleted rankings.
    _import(site, "newest of all", (999, 0))
    assert compactor.compact(SCHEME, name, now=sample_threads.START + 2 * term) is not None
    named = {each.ranking for each in directories.load_directory(name).content.replaced}
    assert _stored_rankings() == {*named, _named_ranking(name)}


def test_a_ranking_that_no_directory_names_is_deleted_as_an_orphan(
    name: records.ThreadName, site: records.Site
) -> None:
    _compact(name)
    _import(site, "newest", (99, 0))
    left = compactor.prepare(SCHEME, name)
    assert left is not None
    assert len(_stored_rankings()) == 2
    found = leftovers.orphans(name)
    assert {left.token} < set(found)
    leftovers.delete_orphans(name, found)
    assert _stored_rankings() == {_named_ranking(name)}
    assert compactor.switch(left) is None


def _stored_rankings() -> set[str]:
    stored = reads.fetch(reads.Query("Ranking", keys_only=True))
    return {message.key.path[-1].name for message in stored}


def _named_ranking(name: records.ThreadName) -> str:
    best = directories.load_directory(name).content.best
    return "" if best is None else best.ranking


def test_a_retracted_text_leaves_the_ranking_and_every_stored_form(
    name: records.ThreadName, site: records.Site
) -> None:
    said = sample_threads.post(site, "canary", _id("7.1"))
    _compact(name)
    cursor = _page(name, 1).cursor
    later = sample_threads.START + timedelta(days=1)
    own_comment.retract(said.id, author_id=said.author.id, revision=None, now=later)
    for _ in range(2):
        assert _from(name, None, 3) == _expected(name, [str(place) for place in BEST])
        assert _from(name, cursor, 3) == _expected(name, [str(place) for place in BEST])[1:]
        _compact(name)
    stored = list(reads.fetch(reads.Query("Bucket", ancestor=comment_rows.thread_key(name))))
    best = directories.load_directory(name).content.best
    assert best is not None
    assert best.top in {message.key.path[-1].name for message in stored}
    assert all(
        b"canary" not in row.entry.json
        for row in view_cache.HOLDINGS.get().load_top(name, best.top)
    )
    named = {line.key for line in directories.load_directory(name).lines}
    assert {message.key.path[-1].name for message in stored} == {*named, best.top}


def test_without_votes_nothing_is_ranked(store: connection.Store, site: records.Site) -> None:
    sample_threads.grow(site, sample_threads.TREE)
    name = sample_threads.name_of(site)
    _compact(name)
    assert directories.load_directory(name).content.best is None
    assert _stored_rankings() == set()
    rows = [presentation.fragment(row) for row in ordered_query.thread(name)]
    assert [row for row, _ in _from(name, None, 3)] == rows


def test_an_unchanged_ranking_is_not_written_again(
    name: records.ThreadName, site: records.Site
) -> None:
    _compact(name)
    before = directories.load_directory(name).content.best
    _import(site, "without votes")
    _compact(name)
    assert directories.load_directory(name).content.best == before
    sample_threads.post(site, "an answer", _id("7"))
    _compact(name)
    after = directories.load_directory(name).content.best
    assert before is not None
    assert after is not None
    assert (after.ranking == before.ranking, after.top == before.top) == (True, False)


def test_a_first_page_of_best_costs_two_reads_cold_and_none_warm(
    name: records.ThreadName, engine: inprocess.Engine
) -> None:
    _compact(name)
    with testing.meter(engine) as cost:
        page = _page(name, 5)
    assert len(page.comments) == 5
    assert (cost.reads, cost.writes) == (2, 0)
    with testing.meter(engine) as cost:
        _page(name, 5)
    assert (cost.reads, cost.writes, cost.small) == (0, 0, 0)


def test_a_ranking_that_the_directory_does_not_list_costs_one_more_read(
    name: records.ThreadName, engine: inprocess.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranking, "MOST_LISTED", 1)
    _compact(name)
    with testing.meter(engine) as cost:
        page = _page(name, 5)
    assert (cost.reads, len(page.comments)) == (3, 5)


def test_the_api_ranks_and_reports_an_expired_cursor(
    name: records.ThreadName, site: records.Site, client: flask.testing.FlaskClient
) -> None:
    _compact(name)
    url = "/api/v1/sites/demo/comments?thread=page&order=best&limit=1"
    first = client.get(url).get_json()
    assert first["comments"][0]["id"] == _id("7")
    _import(site, "newest", (99, 0))
    _compact(name)
    leftovers.expire(LONG_AFTER)
    compaction.forget()
    answer = client.get(f"{url}&cursor={first['cursor']}")
    assert answer.status_code == 410
    assert (answer.get_json()["code"], answer.get_json()["field"]) == ("cursor-expired", "cursor")


def test_an_expired_cursor_is_410_even_if_its_page_is_cached(
    name: records.ThreadName, site: records.Site, client: flask.testing.FlaskClient
) -> None:
    _compact(name)
    url = "/api/v1/sites/demo/comments?thread=page&order=best&limit=1"
    page = f"/embed/demo?thread=page&order=best&limit=1&cursor={client.get(url).json['cursor']}"
    api = page.replace("/embed/demo", "/api/v1/sites/demo/comments")
    _import(site, "newest", (99, 0))
    _compact(name)
    tags = {path: client.get(path).headers["ETag"] for path in (api, page)}
    for path, tag in tags.items():
        assert client.get(path, headers={"If-None-Match": tag}).status_code == 304
    leftovers.expire(LONG_AFTER)
    held = view_cache.HOLDINGS.get()
    later = held.clock() + view_cache.CACHE_MAX_AGE
    held.clock = lambda: later
    for path, tag in tags.items():
        for headers in ({}, {"If-None-Match": tag}, {"If-None-Match": "*"}):
            answer = client.get(path, headers=headers)
            assert (answer.status_code, "cursor-expired" in answer.text) == (410, True)


def test_a_cached_ranking_is_read_again_after_it_was_replaced(
    name: records.ThreadName, site: records.Site, engine: inprocess.Engine
) -> None:
    _compact(name)
    cursor = _page(name).cursor
    held = view_cache.HOLDINGS.get()
    now = held.clock()
    held.clock = lambda: now

    def reads() -> int:
        with testing.meter(engine) as cost:
            _page(name, cursor=cursor)
        return cost.reads

    reads()
    assert reads() == 0
    _import(site, "newest", (99, 0))
    compaction.whole(name)
    held.cache.drop(("directory", name))
    reads()
    assert reads() == 0
    now += view_cache.CACHE_MAX_AGE
    assert reads() == 2  # Reads the directory and the ranking
