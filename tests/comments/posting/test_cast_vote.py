"""Test vote limits per voter and network, comments that accept no votes, and the cost of a vote."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import grpc
import pytest

from comments import errors
from comments.domain import records
from comments.domain.records import Status
from comments.posting import cast_vote
from comments.store import connection, reads
from datastore_emulator import inprocess, testing
from tests.support import datastores
from tests.support.store_interceptors import TRANSIENT, Calls, Faults
from tests.support.threads import sample_threads, sample_votes

NAME = records.ThreadName("demo", "page")
MOST = sample_threads.SETTINGS.voters_per_network


@pytest.fixture
def row(store: connection.Store, site: records.Site) -> records.Comment:
    return sample_threads.post(site, "text")


def _votes(comment: records.Comment) -> dict[str, int]:
    return sample_votes.cast().get(comment.id, {})


@pytest.mark.parametrize(
    ("values", "last"),
    [((1,), 1), ((1, 1), 1), ((1, -1), -1), ((-1, 0), None), ((0,), None), ((1, -1, 1), 1)],
)
def test_a_voters_last_vote_counts(
    row: records.Comment, values: tuple[int, ...], last: int | None
) -> None:
    for value in values:
        sample_votes.vote(row, "bob", value)
    assert _votes(row).get("g:bob") == last
    sample_votes.count_all()
    assert sample_votes.stored(row.id) == (int(last == 1), int(last == -1), last or 0)
    sample_votes.assert_counted()


def test_a_withdrawn_vote_leaves_nothing(row: records.Comment) -> None:
    sample_votes.vote(row, "bob")
    sample_votes.vote(row, "bob", 0)
    sample_votes.count_all()
    assert (_votes(row), sample_votes.networks()) == ({}, [])


def test_authors_cannot_vote_on_their_own_comment(row: records.Comment) -> None:
    with pytest.raises(errors.Forbidden) as refused:
        cast_vote.vote(row.id, row.author.id, 1, sample_threads.request(network="192.0.2.1"))
    assert refused.value.code == "own-comment"
    assert sample_votes.cast() == {}


def test_a_tombstone_takes_no_votes(site: records.Site, row: records.Comment) -> None:
    sample_threads.post(site, "reply", row.id)
    sample_threads.retract(row)
    with pytest.raises(errors.Conflict) as refused:
        sample_votes.vote(row, "bob")
    assert refused.value.code == "comment-retracted"


def test_a_retracted_comment_takes_no_votes(row: records.Comment) -> None:
    sample_threads.retract(row)
    with pytest.raises(errors.NotFound):
        sample_votes.vote(row, "bob")


@pytest.mark.parametrize("status", [Status.PENDING, Status.SPAM, Status.REJECTED])
def test_a_vote_on_a_hidden_comment_is_not_found(
    store: connection.Store, site: records.Site, status: Status
) -> None:
    held = sample_threads.node("held", None, status)
    sample_threads.store_imported(NAME, held)
    for value in (1, -1, 0):
        with pytest.raises(errors.NotFound):
            cast_vote.vote(held.id, "g:bob", value, sample_threads.request(network="192.0.2.1"))
    assert sample_votes.cast() == {}


@pytest.mark.parametrize(("comment", "site_id"), [("a" * 26, "demo"), ("", "other")])
def test_a_vote_on_an_unknown_or_foreign_comment_is_not_found(
    row: records.Comment, comment: str, site_id: str
) -> None:
    request = sample_threads.request(site_id, network="192.0.2.1")
    with pytest.raises(errors.NotFound):
        cast_vote.vote(comment or row.id, "g:bob", 1, request)
    assert sample_votes.cast() == {}


def test_a_network_counts_as_few_voters(row: records.Comment) -> None:
    for number in range(MOST):
        sample_votes.vote(row, f"bob {number}", network="cafe")
    with pytest.raises(errors.TooMany) as refused:
        sample_votes.vote(row, "one more", network="cafe")
    assert refused.value.code == "too-many-votes"
    assert 0 < refused.value.retry_after <= timedelta(days=30).total_seconds()
    sample_votes.vote(row, "elsewhere")
    sample_votes.vote(row, "bob 0", -1, network="cafe")
    sample_votes.vote(row, "bob 0", -1, network="cafe")
    assert len(_votes(row)) == MOST + 1
    # After one voter withdraws a vote, a different voter may vote.
    sample_votes.vote(row, "bob 0", 0, network="cafe")
    sample_votes.vote(row, "one more", network="cafe")
    assert len(_votes(row)) == MOST + 1


def test_a_network_is_limited_on_each_comment_and_cannot_be_tracked(
    site: records.Site, row: records.Comment
) -> None:
    other = sample_threads.post(site, "other")
    for comment in (row, other):
        for number in range(MOST):
            sample_votes.vote(comment, f"bob {number}", network="the cafe")
    keys = [message.key.path[-1].name for message in reads.fetch(
        reads.Query("VoterNetwork", keys_only=True)
    )]  # fmt: skip
    assert len(set(keys)) == 2
    known = [*keys, *(seat for seats in sample_votes.networks() for seat in seats)]
    assert len(set(known)) == 2 + 2 * MOST
    assert not any("the cafe" in text or "bob " in text for text in known)


def test_a_network_is_remembered_for_thirty_days(row: records.Comment) -> None:
    for number in range(MOST):
        day = sample_threads.START + timedelta(days=5 * number)
        sample_votes.vote(row, f"bob {number}", network="cafe", now=day)
    end = sample_threads.START + timedelta(days=30)
    assert cast_vote.expire(end - timedelta(seconds=1)) == 0
    with pytest.raises(errors.TooMany):
        sample_votes.vote(row, "late", network="cafe", now=end - timedelta(seconds=1))
    assert cast_vote.expire(end) == 1
    assert sample_votes.networks() == []
    sample_votes.vote(row, "late", network="cafe", now=end)
    assert len(_votes(row)) == MOST + 1


def test_an_expired_network_that_is_still_stored_does_not_count(row: records.Comment) -> None:
    for number in range(MOST):
        sample_votes.vote(row, f"bob {number}", network="cafe")
    sample_votes.vote(row, "late", network="cafe", now=sample_threads.START + timedelta(days=30))
    assert [len(seats) for seats in sample_votes.networks()] == [1]


def test_a_hundred_parallel_votes_of_one_voter_are_one(
    open_store: connection.Store, row: records.Comment
) -> None:
    gate = threading.Barrier(20)

    def work(number: int) -> None:
        with open_store.context():
            gate.wait(60)
            for step in range(5):
                sample_votes.vote(row, "bob", 1 if (number + step) % 4 else -1)
            sample_votes.vote(row, "bob")

    with ThreadPoolExecutor(20) as pool:
        list(pool.map(work, range(20)))
    assert _votes(row) == {"g:bob": 1}
    sample_votes.count_all()
    assert sample_votes.stored(row.id) == (1, 0, 1)
    sample_votes.assert_counted()


def test_of_fifty_concurrent_new_voters_of_one_network_only_the_limit_counts(
    open_store: connection.Store, row: records.Comment
) -> None:
    gate = threading.Barrier(10)

    def work(number: int) -> int:
        refused = 0
        with open_store.context():
            gate.wait(60)
            for step in range(5):
                try:
                    sample_votes.vote(row, f"bob {number} {step}", network="cafe")
                except errors.TooMany:
                    refused += 1
        return refused

    with ThreadPoolExecutor(10) as pool:
        assert sum(pool.map(work, range(10))) == 50 - MOST
    assert len(_votes(row)) == MOST


@pytest.mark.parametrize("status", TRANSIENT[:2])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("method", ["Lookup", "Commit"])
@pytest.mark.usefixtures("brief_doubt")
def test_a_vote_whose_store_call_fails_once_is_stored_once(
    row: records.Comment, faults: Faults, method: str, when: str, status: grpc.StatusCode
) -> None:
    for value in (1, -1, 0, 1):
        faults.lose(method, when, status)
        sample_votes.vote(row, "bob", value, network="cafe")
        assert _votes(row) == ({"g:bob": value} if value else {})
        assert list(map(len, sample_votes.networks())) == ([1] if value else [])
    sample_votes.count_all()
    sample_votes.assert_counted()


def test_a_vote_is_two_calls_four_reads_and_at_most_three_writes(
    engine: inprocess.Engine, row: records.Comment
) -> None:
    calls = Calls()
    store = datastores.Embedded(engine).connect(calls)

    def cost(voter: str, value: int) -> tuple[int, int, int]:
        calls.names.clear()
        with testing.meter(engine) as reading:
            sample_votes.vote(row, voter, value)
        assert calls.names == ["Lookup", "Commit"]
        assert "Comment" not in {path[-2] for path in reading.keys_written}
        return reading.reads, reading.writes, reading.deletes

    def work() -> None:
        with store.context():
            assert cost("ann", 1) == (4, 3, 0)  # The first vote also marks the comment for counting
            assert cost("bob", 1) == (4, 2, 0)
            assert cost("bob", -1) == (4, 1, 0)
            assert cost("bob", -1) == (4, 0, 0)
            assert cost("bob", 0) == (4, 0, 2)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result()


def test_votes_of_different_voters_write_no_row_in_common(
    engine: inprocess.Engine, row: records.Comment
) -> None:
    sample_votes.vote(row, "first")
    written = []
    for number in range(8):
        with testing.meter(engine) as cost:
            sample_votes.vote(row, f"{number}")
        written.append(cost.keys_written)
    assert len(frozenset().union(*written)) == sum(len(keys) for keys in written)


def test_a_first_time_voters_id_depends_on_key_network_and_comment() -> None:
    def make(comment: str = "c", network: str = "n", key: str | None = "k" * 16) -> str:
        return cast_vote.newcomer_id(comment, "", key, sample_threads.request(network=network))

    assert make() == make()
    made = {make(), make(comment="d"), make(network="m"), make(key="l" * 16), make(key=None)}
    assert len({*made, make(key=None)}) == 6


def test_a_voter_sees_their_own_votes_of_a_thread(
    site: records.Site, engine: inprocess.Engine, row: records.Comment
) -> None:
    rows = [row, *(sample_threads.post(site, f"{n}") for n in range(6))]
    elsewhere = sample_threads.post(site, "elsewhere", thread="page+")
    expected = {each.id: 1 if n % 2 else -1 for n, each in enumerate(rows[:5])}
    for each in rows[:5]:
        sample_votes.vote(each, "bob", expected[each.id])
    sample_votes.vote(elsewhere, "bob")
    sample_votes.vote(rows[6], "ann")
    sample_votes.vote(rows[5], "bob")
    sample_votes.vote(rows[5], "bob", 0)

    def own(voter: str, limit: int = 100, cursor: str | None = None) -> cast_vote.OwnVotesPage:
        return cast_vote.own_votes(NAME, voter, limit=limit, cursor=cursor, secret="s")

    sample_votes.count_waiting()
    with testing.meter(engine) as cost:
        assert own("g:bob") == cast_vote.OwnVotesPage(expected, None, {})
    assert (cost.reads, cost.writes) == (2, 0)
    assert own("g:nobody") == cast_vote.OwnVotesPage({}, None, {})
    for limit in (1, 2, 3, 5):
        found: dict[str, int] = {}
        page = own("g:bob", limit)
        while True:
            assert len(page.votes) <= limit
            assert not page.votes.keys() & found.keys()
            found |= page.votes
            if page.cursor is None:
                break
            page = own("g:bob", limit, page.cursor)
        assert found == expected
    cursor = own("g:bob", 1).cursor
    with pytest.raises(errors.BadCursor):
        own("g:ann", 1, cursor)


@pytest.mark.parametrize("limit", [0, 1001])
def test_a_limit_out_of_range_is_refused(store: connection.Store, limit: int) -> None:
    with pytest.raises(errors.BadInput):
        cast_vote.own_votes(NAME, "g:bob", limit=limit, cursor=None, secret="s")
