"""Test what rate-limit journals store and for how long."""

from datetime import UTC, datetime, timedelta

import pytest

from comments.limits import rate_limits
from comments.store import connection, reads, transactions

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
LIMIT = rate_limits.Limit("tests", 10_000, timedelta(minutes=10), timedelta(hours=1))


def digest(number: int) -> bytes:
    return number.to_bytes(8)


def journal(store: connection.Store, now: datetime = NOW) -> rate_limits.RateLimitJournal:
    made = rate_limits.RateLimitJournal(LIMIT, "somebody", "a secret")
    made.fill(reads.get(made.key), now=now)
    return made


def noted(store: connection.Store, count: int, *, has_proof: bool, now: datetime = NOW) -> None:
    def body() -> None:
        made, writes = journal(store, now), None
        for number in range(1, count + 1):
            proof = digest(number) if has_proof else rate_limits.NOTHING
            mark = rate_limits.CountedItem(int(now.timestamp()), digest(number), digest(7), proof)
            writes = made.note_writes(mark)
            made.fill(writes.put[0], now=now)  # type: ignore[arg-type]
        assert writes is not None
        transactions.apply(writes)

    transactions.transaction(body)


def test_proofs_are_remembered_while_they_are_valid(store: connection.Store) -> None:
    noted(store, 200, has_proof=True)
    late = journal(store, NOW + timedelta(minutes=59))
    assert all(late.is_spent(digest(number)) for number in range(1, 201))
    assert not late.is_spent(digest(201))
    assert not late.is_spent(rate_limits.NOTHING)
    assert not journal(store, NOW + timedelta(minutes=61)).is_spent(digest(200))


def test_a_proof_is_remembered_despite_many_posts_without_one(store: connection.Store) -> None:
    noted(store, 1, has_proof=True)
    noted(store, 200, has_proof=False)
    assert journal(store).is_spent(digest(1))


def test_only_the_newest_entries_without_a_proof_are_remembered(store: connection.Store) -> None:
    noted(store, 200, has_proof=False)
    found = journal(store)
    assert [found.knows(digest(number)) for number in (136, 137, 200)] == [False, True, True]
    assert found.times(digest(7)) == 64
    assert found.times(rate_limits.NOTHING) == 0


@pytest.mark.slow
def test_a_journal_full_of_proofs_refuses_more(store: connection.Store) -> None:
    noted(store, 499, has_proof=True)
    assert not journal(store).is_empty
    noted(store, 1, has_proof=True)
    assert journal(store).is_empty
    (row,) = reads.fetch(reads.Query("RateBucket"))
    assert len(row.properties["recent"].blob_value) == 500 * 28
    assert not journal(store, NOW + timedelta(hours=1)).is_empty


def test_the_stored_form_of_an_entry_is_stable(store: connection.Store) -> None:
    noted(store, 1, has_proof=True)
    (row,) = reads.fetch(reads.Query("RateBucket"))
    # A change to this value would lose the record of used proofs.
    wanted = "695735a5000000000000000100000000000000070000000000000001"
    assert row.properties["recent"].blob_value.hex() == wanted


def test_entries_of_a_clock_far_ahead_are_forgotten(store: connection.Store) -> None:
    noted(store, 1, has_proof=True, now=NOW + timedelta(days=9))
    assert not journal(store).is_spent(digest(1))


def test_a_bucket_that_was_used_meanwhile_is_not_deleted(store: connection.Store) -> None:
    noted(store, 1, has_proof=True)
    later = NOW + timedelta(hours=9)
    assert rate_limits.expire(NOW + timedelta(minutes=59)) == 0
    name = journal(store).key.id()
    noted(store, 1, has_proof=True, now=later)
    assert transactions.transaction(lambda: rate_limits._delete([name], later)) == 0
    assert journal(store, later).is_spent(digest(1))


def test_the_number_of_rows_is_limited_for_any_number_of_subjects(
    store: connection.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Subjects that share a row also share its limit, so they cannot exceed it."""
    monkeypatch.setattr(rate_limits, "SLOTS", 16)
    limit = rate_limits.Limit("a purpose of a test", 3, timedelta(hours=1))
    taken = [
        rate_limits.take(limit, f"2001:db8:{number:x}::/64", "secret", now=NOW)
        for number in range(400)
    ]
    rows = list(reads.fetch(reads.Query("RateBucket")))
    assert len(rows) == 16
    assert sum(taken) == 16 * limit.most
    assert max(row.ByteSize() for row in rows) < 300


def test_a_limit_ends_after_its_window_despite_wrong_clocks(store: connection.Store) -> None:
    limit = rate_limits.Limit("test", 2, timedelta(hours=1))
    now = datetime(2026, 1, 2, tzinfo=UTC)

    def taken(moment: datetime) -> bool:
        return rate_limits.take(limit, "somebody", "a secret", now=moment)

    assert [taken(now) for _ in range(3)] == [True, True, False]
    assert taken(now + timedelta(minutes=59)) is False
    assert taken(now + timedelta(hours=1)) is True
    # A clock that is far ahead does not use up a rate limit for years.
    assert [taken(now + timedelta(days=999)) for _ in range(3)] == [True, True, False]
    assert taken(now + timedelta(hours=2)) is True


def _of_networks(limit: rate_limits.Limit, names: list[str]) -> list[bool]:
    def take(name: str) -> bool:
        bucket = rate_limits.Network(limit, name, "a secret")
        rate_limits.read(bucket, now=NOW)
        if bucket.is_empty:
            assert bucket.wait(NOW) == 600
            return False
        transactions.apply(bucket.count_writes())
        return True

    return [transactions.transaction(lambda name=name: take(name)) for name in names]  # type: ignore[misc]


def test_an_ipv6_network_is_limited_with_the_wider_ones_around_it(store: connection.Store) -> None:
    limit = rate_limits.Limit("tests of networks", 1, timedelta(minutes=10))
    of_one_56 = [f"2001:db8:0:{number:x}::/64" for number in range(6)]
    assert _of_networks(limit, of_one_56) == [True] * 4 + [False] * 2
    of_one_48 = [f"2001:db8:0:{256 * number:x}::/64" for number in range(1, 15)]
    assert _of_networks(limit, of_one_48) == [True] * 12 + [False] * 2
    assert _of_networks(limit, ["2001:db8:1::/64"]) == [True]


def test_an_ipv4_network_is_limited_alone(store: connection.Store) -> None:
    limit = rate_limits.Limit("tests of networks", 1, timedelta(minutes=10))
    assert _of_networks(limit, ["192.0.2.1", "192.0.2.1", "192.0.2.2"]) == [True, False, True]
