"""The time index of a thread counts the comments before any time, like a plain sort."""

import bisect
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comments.domain import records
from comments.moderation import decisions
from comments.reading import listings
from comments.reading.compaction import compactor
from comments.reading.materialized import buckets, thread_view, time_index
from comments.reading.thread_pages import ListingOrder, PageRequest
from comments.store import connection
from comments.tree.lists import ordered_query
from comments.upkeep.integrity import repair
from tests.support.threads import compaction, sample_threads

START = datetime(2026, 1, 1, tzinfo=UTC)
# Few different times, so that many comments have the same time.
TIMES = st.integers(0, 30).map(lambda minute: START + timedelta(minutes=minute))


SCHEME, SECRET = sample_threads.SETTINGS.scheme, sample_threads.SETTINGS.secret
ACTOR = records.Actor("cli", "cli")


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    compaction.small_buckets(monkeypatch)
    monkeypatch.setattr(time_index, "LEAST_ROWS", 3)
    monkeypatch.setattr(time_index, "CHUNK_ROWS", 3)


@given(
    times=st.lists(TIMES, min_size=3, max_size=60),
    changes=st.lists(st.tuples(st.lists(TIMES, max_size=9), st.integers(0, 9)), max_size=6),
)
def test_every_start_has_the_number_of_comments_before_it(
    times: list[datetime], changes: list[tuple[list[datetime], int]]
) -> None:
    index = time_index.of_times(times)
    assert index is not None
    for new, removed in changes:
        old, times = times[:removed], times[removed:] + new
        index = time_index.update(
            index, [*((each, 1) for each in new), *((each, -1) for each in old)]
        )
        assert index == time_index.recount(index, times)
    ordered = sorted(times)
    for time, before in time_index.starts(index, newest_first=False)[1:]:
        assert time is not None
        assert before == bisect.bisect_left(ordered, time)
    for time, before in time_index.starts(index, newest_first=True)[1:]:
        assert time is not None
        assert before == len(ordered) - bisect.bisect_left(ordered, time)


@given(times=st.lists(TIMES, min_size=3, max_size=60), new=st.lists(TIMES, max_size=60))
def test_a_chunk_is_longer_than_its_limit_only_by_one_time_and_late_comments(
    times: list[datetime], new: list[datetime]
) -> None:
    index = time_index.of_times(times)
    assert index is not None
    index = time_index.update(index, ((each, 1) for each in new))
    same = max(Counter(times + new).values())
    assert max(chunk.count for chunk in index.chunks) < time_index.CHUNK_ROWS + same + index.late


def test_pages_by_time_equal_a_plain_sort_while_comments_come_and_go(
    open_store: connection.Store, site: records.Site
) -> None:
    name = sample_threads.name_of(site)

    def post(minute: int) -> records.Comment:
        return sample_threads.post(site, f"c{minute}", now=START + timedelta(minutes=minute))

    def moderate(comment: records.Comment, verb: str) -> None:
        decisions.decide("demo", comment.id, records.Verb(verb), ACTOR, now=START)

    def check() -> None:
        rows = ordered_query.thread(name)
        assert thread_view.view(name).times is not None
        for order in (ListingOrder.OLDEST, ListingOrder.NEWEST):
            newest_first = order is ListingOrder.NEWEST
            plain = sorted(rows, key=lambda row: (row.created, row.sort_hash), reverse=newest_first)
            for offset, row in enumerate(plain):
                page = listings.page(
                    SCHEME, name, PageRequest(1, None, SECRET, offset), order=order
                )
                assert f'"id":"{row.id}"'.encode() in page.json()
        assert repair.find_problems(SCHEME, name) == []

    with open_store.context():
        comments = [post(minute) for minute in range(6)]
        compaction.whole(name)
        check()
        comments += [post(minute) for minute in range(6, 12)]
        moderate(comments[1], "hide")
        check()
        assert compactor.compact(SCHEME, name) is not None  # The flags are not cleared yet
        check()
        for hidden, restored in ((7, 1), (2, 7)):
            moderate(comments[hidden], "hide")
            moderate(comments[restored], "restore")
            check()
            assert compactor.compact(SCHEME, name) is not None
            check()
        compaction.whole(name)
        compaction.forget_directory(name)  # As after the grace period
        check()


def test_an_index_is_made_for_a_long_thread_and_after_many_late_comments() -> None:
    assert time_index.of_times([START] * 2) is None
    assert not time_index.is_due(None, 2)
    assert time_index.is_due(None, 3)
    index = time_index.of_times([START] * 3)
    assert not time_index.is_due(index, 3)
    assert index is not None
    late = time_index.update(index, [(START, 1)] * (time_index.MOST_LATE + 1))
    assert time_index.is_due(late, 3)


def test_the_format_of_an_index_is_stable() -> None:
    """These stored bytes must stay readable."""
    later = START + timedelta(days=1, microseconds=5)
    index = time_index.TimeIndex(
        (time_index.TimeChunk(START, 1000), time_index.TimeChunk(later, 2)), later, 7
    )
    content = buckets.DirectoryContent(times=index)
    assert buckets.decode_content(bytes.fromhex(GOLDEN)) == content
    assert buckets.decode_content(buckets.encode_content(content)) == content


GOLDEN = (
    "789c9b3301080e1c38306102c382c993265dfb9f19ba93e12cf38b49d7ff3330f82964867335302198ec0051a8154f"
)
