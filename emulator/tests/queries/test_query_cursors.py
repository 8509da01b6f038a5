"""Cursors: positions remain valid after changes, and invalid cursors are refused."""

from typing import Any

import pytest

from emulator.tests.support import service_calls
from emulator.tests.support.service_calls import assert_refused


@pytest.fixture
def ten(service: service_calls.Service) -> service_calls.Service:
    service.commit(
        *({"upsert": service.entity(service.key("T", n), a=n, x=1)} for n in range(1, 11))
    )
    return service


def names(results: Any) -> list[int]:
    return [each.entity.key.path[-1].id for each in results]


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"order": ["a"]},
        {"order": ["-a"]},
        {"order": ["-__key__"]},
        {"projection": ["a"]},
        {"keys_only": True},
        {"filters": [("a", "in", [2, 3, 5, 7, 9])]},
        {"filters": [("a", "in", [2, 3, 5, 7, 9])], "order": ["-a"]},
        {"filters": [("x", "in", [1, 2]), ("a", ">", 3)], "needs": "tag"},
    ],
)
def test_every_cursor_resumes_right_after_its_result(
    ten: service_calls.Service, asked: dict[str, Any]
) -> None:
    asked = dict(asked)
    filters = asked.pop("filters", [])
    if asked.pop("needs", None):
        filters = [("a", ">", 3)]
    everything = ten.batch(ten.query("T", *filters, **asked)).entity_results
    for place, result in enumerate(everything):
        resumed = ten.batch(ten.query("T", *filters, start_cursor=result.cursor, **asked))
        assert names(resumed.entity_results) == names(everything)[place + 1 :]
        before = ten.batch(ten.query("T", *filters, end_cursor=result.cursor, **asked))
        assert names(before.entity_results) == names(everything)[: place + 1]


def test_a_cursor_survives_inserts_before_it_and_the_deletion_of_its_entity(
    ten: service_calls.Service,
) -> None:
    cursor = ten.batch(ten.query(order=["a"])).entity_results[4].cursor
    ten.put(ten.key("T", 100), a=0)
    ten.delete(ten.key("T", 5))
    resumed = ten.batch(ten.query(order=["a"], start_cursor=cursor))
    assert names(resumed.entity_results) == [6, 7, 8, 9, 10]


def test_an_offset_counts_from_the_start_cursor(ten: service_calls.Service) -> None:
    cursor = ten.batch(ten.query(order=["a"])).entity_results[4].cursor
    resumed = ten.batch(ten.query(order=["a"], start_cursor=cursor, offset=2, limit=2))
    assert names(resumed.entity_results) == [8, 9]


def test_the_end_cursor_of_an_empty_batch_is_its_start(ten: service_calls.Service) -> None:
    cursor = ten.batch(ten.query(order=["a"])).end_cursor
    empty = ten.batch(ten.query(order=["a"], start_cursor=cursor))
    assert empty.end_cursor == cursor
    ten.put(ten.key("T", 11), a=11)
    assert names(ten.batch(ten.query(order=["a"], start_cursor=cursor)).entity_results) == [11]
    start = ten.batch(ten.query(order=["a"], limit=0)).end_cursor
    assert len(ten.batch(ten.query(order=["a"], start_cursor=start)).entity_results) == 11


def test_a_cursor_is_valid_only_for_its_query(ten: service_calls.Service) -> None:
    cursor = ten.batch(ten.query(order=["a"])).end_cursor
    for other in (
        ten.query(start_cursor=cursor),
        ten.query(order=["-a"], start_cursor=cursor),
        ten.query("T", ("a", ">", 1), start_cursor=cursor),
        ten.query(order=["a"], keys_only=True, start_cursor=cursor),
        ten.query("U", order=["a"], start_cursor=cursor),
    ):
        with assert_refused("INVALID_ARGUMENT", "Cursor does not match query"):
            ten.batch(other)
    with assert_refused("INVALID_ARGUMENT"):
        ten.batch(ten.query(order=["a"], start_cursor=cursor), namespace="other")


def test_a_cursor_requires_the_same_ancestor_projection_and_values(
    ten: service_calls.Service,
) -> None:
    def under(number: int) -> tuple[str, str, Any]:
        return ("__key__", "under", ten.key("T", number))

    for own, other in (
        (([under(1)], {}), ([under(2)], {})),
        (([under(1)], {}), ([], {})),
        (([], {"projection": ["a"]}), ([], {"projection": ["x"]})),
        (([("a", "=", 1)], {}), ([("a", "=", 2)], {})),
        (([("a", ">", 1)], {}), ([("a", ">=", 1)], {})),
    ):
        cursor = ten.batch(ten.query("T", *own[0], **own[1])).end_cursor
        assert not ten.batch(ten.query("T", *own[0], start_cursor=cursor, **own[1])).entity_results
        with assert_refused("INVALID_ARGUMENT", "Cursor does not match query"):
            ten.batch(ten.query("T", *other[0], start_cursor=cursor, **other[1]))


def test_limit_offset_and_end_can_change_between_pages(ten: service_calls.Service) -> None:
    pages = ten.batch(ten.query(order=["a"], limit=2, offset=1))
    asked = {"order": ["a"], "start_cursor": pages.end_cursor}
    end = ten.batch(ten.query(order=["a"])).entity_results[7].cursor
    assert names(ten.batch(ten.query(**asked)).entity_results) == [4, 5, 6, 7, 8, 9, 10]
    assert names(ten.batch(ten.query(limit=3, **asked)).entity_results) == [4, 5, 6]
    assert names(ten.batch(ten.query(offset=2, end_cursor=end, **asked)).entity_results) == [
        6,
        7,
        8,
    ]


def test_an_update_elsewhere_does_not_move_a_cursor(ten: service_calls.Service) -> None:
    cursor = ten.batch(ten.query(order=["a"])).entity_results[4].cursor
    ten.put(ten.key("T", 1), a=99)
    ten.put(ten.key("T", 9), a=0)
    resumed = ten.batch(ten.query(order=["a"], start_cursor=cursor))
    assert names(resumed.entity_results) == [6, 7, 8, 10, 1]


def test_an_array_is_not_returned_again_after_the_cursor(
    service: service_calls.Service,
) -> None:
    for number in (1, 2, 3):
        service.put(service.key("T", number), a=[number, number + 10])
    found, cursor = [], b""
    for _ in range(3):
        batch = service.batch(service.query(order=["a"], limit=1, start_cursor=cursor))
        found += names(batch.entity_results)
        cursor = batch.end_cursor
    assert found == [1, 2, 3]
    assert not service.batch(service.query(order=["a"], start_cursor=cursor)).entity_results


@pytest.mark.parametrize("junk", [b"x", b"\x01\x00short", b"\x02\x00" + b"x" * 20, b"\x01\x07" * 9])
def test_an_invalid_cursor_is_refused(ten: service_calls.Service, junk: bytes) -> None:
    with assert_refused("INVALID_ARGUMENT"):
        ten.batch(ten.query(start_cursor=junk))


def test_a_truncated_cursor_is_refused(ten: service_calls.Service) -> None:
    for order in (["a"], ["-a"], [], ["-__key__"]):
        cursor = ten.batch(ten.query(order=order)).entity_results[4].cursor
        for cut in range(11, len(cursor)):
            for torn in ("start_cursor", "end_cursor"):
                with assert_refused("INVALID_ARGUMENT", "cursor"):
                    ten.batch(ten.query(order=order, **{torn: cursor[:cut]}))


def test_a_reversed_query_with_a_final_key_order_accepts_the_cursor(
    ten: service_calls.Service,
) -> None:
    forward = ten.batch(ten.query(order=["__key__"]))
    cursor = forward.entity_results[4].cursor
    back = ten.batch(ten.query(order=["-__key__"], start_cursor=cursor))
    assert names(back.entity_results) == [5, 4, 3, 2, 1]
    there = ten.batch(ten.query(order=["__key__"], start_cursor=back.entity_results[1].cursor))
    assert names(there.entity_results) == [4, 5, 6, 7, 8, 9, 10]
    start = ten.batch(ten.query(order=["__key__"], limit=0)).end_cursor
    assert not ten.batch(ten.query(order=["-__key__"], start_cursor=start)).entity_results
