"""Queries in transactions: a change to their results aborts the transaction."""

from typing import Any

import pytest

from emulator.tests.support import service_calls
from emulator.tests.support.service_calls import assert_refused

TAGGED = ("or", ("a", "=", 1), ("tag", "=", "x"))
OR = ("or", ("a", "=", 1), ("b", "=", 9))
RANGES = (("a", ">", 1), ("b", "<", 3))


@pytest.fixture
def rows(near: service_calls.Service) -> service_calls.Service:
    """Store the entities 11, 12, ... 33: a is the first digit, and b is the second digit."""
    near.commit(
        *(
            {"upsert": near.entity(near.key("T", 10 * a + b), a=a, b=b)}
            for a in (1, 2, 3)
            for b in (1, 2, 3)
        )
    )
    return near


def touch(service: service_calls.Service, transaction: bytes) -> None:
    """Commit a change to data that no transaction has read."""
    service.commit({"upsert": service.entity(service.key("U", 1))}, transaction=transaction)


@pytest.mark.parametrize("keys_only", [False, True])
@pytest.mark.parametrize(
    "case",
    [
        ((OR,), {}, [11, 12, 13], {"b": 9}),
        ((OR,), {}, [11, 12, 13], {"a": 1}),
        ((TAGGED, ("a", ">", 0)), {}, [11, 12, 13], {"a": 1, "b": 0}),
        ((TAGGED, ("a", ">", 0)), {}, [11, 12, 13], {"a": 2, "tag": "x"}),
        ((("a", "!=", 2),), {}, [11, 12, 13, 31, 32, 33], {"a": 9}),
        ((("a", "!=", 2),), {}, [11, 12, 13, 31, 32, 33], {"a": None}),
        ((("a", "not in", [1, 2]),), {}, [31, 32, 33], {"a": "x"}),
        (RANGES, {}, [21, 22, 31, 32], {"a": 5, "b": 0}),
        (RANGES, {"order": ["-a"], "limit": 2}, [31, 32], {"a": 4, "b": 0}),
        (RANGES, {"offset": 4}, [], {"a": 2, "b": 0}),
        ((), {"distinct": ["a"]}, [11, 21, 31], {"a": 2.5}),
        ((), {"distinct": ["a"], "order": ["a", "b"], "limit": 2}, [11, 21], {"a": 1, "b": 0}),
        ((("a", ">", 1),), {"distinct": ["a"], "order": ["-a"]}, [31, 21], {"a": 7}),
    ],
)
def test_a_phantom_is_aborted(
    rows: service_calls.Service, case: tuple[Any, ...], keys_only: bool
) -> None:
    filters, options, found, phantom = case
    transaction = rows.begin()
    asked = dict(options, keys_only=keys_only)
    assert rows.names("T", *filters, transaction=transaction, **asked) == found
    rows.put(rows.key("T", 1), **phantom)
    with assert_refused("ABORTED"):
        touch(rows, transaction)


@pytest.mark.parametrize("filters", [(), (("a", ">", 1),)])
def test_a_key_filter_with_an_order_counts_as_read_even_if_the_key_is_missing(
    rows: service_calls.Service, filters: tuple[Any, ...]
) -> None:
    missing = ("__key__", "=", rows.key("T", 5))
    for change in (lambda: rows.put(rows.key("T", 5), a=7), lambda: rows.delete(rows.key("T", 5))):
        transaction = rows.begin()
        rows.names("T", missing, *filters, order=["a"], transaction=transaction)
        change()
        with assert_refused("ABORTED"):
            touch(rows, transaction)


def test_a_skipped_array_counts_as_read(rows: service_calls.Service) -> None:
    # The entity keeps its entry at a = 5 but loses its entry at a = 1.
    key = rows.key("T", 1)
    rows.put(key, a=[1, 5, 6])
    cursor = rows.batch(rows.query("T", ("a", ">", 0), limit=4)).end_cursor
    transaction = rows.begin()
    rest = rows.names("T", ("a", ">", 0), start_cursor=cursor, transaction=transaction)
    assert rest == [21, 22, 23, 31, 32, 33]
    rows.put(key, a=[5, 6])
    with assert_refused("ABORTED"):
        touch(rows, transaction)


def test_changes_outside_the_scanned_ranges_do_not_conflict(rows: service_calls.Service) -> None:
    transaction = rows.begin()
    rows.names("T", ("a", "!=", 2), transaction=transaction)
    rows.names("T", ("or", ("a", "=", 1), ("b", "=", 3)), transaction=transaction)
    rows.names("T", ("__key__", "=", rows.key("T", 11)), order=["a"], transaction=transaction)
    rows.names("T", distinct=["a"], limit=1, transaction=transaction)
    rows.put(rows.key("T", 24), a=2, b=4)
    rows.put(rows.key("T", 21), a=2, b=1, x="changed")
    touch(rows, transaction)


def test_a_key_of_another_kind_does_not_count_as_read(rows: service_calls.Service) -> None:
    other = rows.key("U", 9)
    rows.put(other, a=1)
    transaction = rows.begin()
    filters = (("__key__", "in", [rows.key("T", 11), other]), ("a", "<=", 1))
    assert rows.names("T", *filters, order=["a"], transaction=transaction) == [11]
    rows.delete(other)
    touch(rows, transaction)
