"""Batches: limits, offsets, sizes, and the reported reason for the end of each batch."""

from typing import Any

from emulator.tests.support import service_calls
from emulator.tests.support.service_calls import assert_refused, put_all


def test_limit_and_offset_select_results(service: service_calls.Service) -> None:
    put_all(service, *((n, {"a": n}) for n in range(1, 11)))
    assert service.names(order=["a"], limit=3, offset=2) == [3, 4, 5]
    assert service.names(order=["a"], limit=0) == []
    assert service.names(order=["a"], offset=20) == []
    bad_paging: list[dict[str, Any]] = [{"limit": -1}, {"offset": -1}]
    for bad in bad_paging:
        with assert_refused("INVALID_ARGUMENT"):
            service.names(**bad)


def test_more_results_states_why_a_batch_ended(service: service_calls.Service) -> None:
    put_all(service, *((n, {"a": n}) for n in range(1, 6)))
    batch = service.batch(service.query(order=["a"]))
    assert batch.more_results == 3
    assert batch.end_cursor == batch.entity_results[-1].cursor
    limited = service.batch(service.query(order=["a"], limit=5))
    assert limited.more_results == 2
    assert service.batch(service.query(order=["a"], limit=0)).more_results == 2
    ended = service.batch(service.query(order=["a"], end_cursor=batch.entity_results[1].cursor))
    assert ended.more_results == 4
    assert len(ended.entity_results) == 2
    empty = service.batch(service.query("T", ("a", ">", 9)))
    assert empty.more_results == 3
    assert empty.end_cursor
    assert batch.snapshot_version > 0
    assert batch.read_time.seconds > 0


def test_many_results_come_in_batches_of_300_and_offsets_skip_1000_a_call(
    service: service_calls.Service,
) -> None:
    put_all(service, *((n, {"a": n}) for n in range(1, 1501)))
    batch = service.batch(service.query(order=["a"]))
    assert (len(batch.entity_results), batch.more_results) == (300, 1)
    assert service.names(order=["a"]) == list(range(1, 1501))
    skipping = service.batch(service.query(order=["a"], offset=1200, limit=5))
    assert (skipping.skipped_results, skipping.more_results) == (1000, 1)
    assert skipping.skipped_cursor == skipping.end_cursor
    assert service.names(order=["a"], offset=1200, limit=5) == [1201, 1202, 1203, 1204, 1205]
    assert service.count(service.query(), None, 0, 7) == [1500, 0, 7]


def test_a_batch_stays_below_4_mib(
    service: service_calls.Service, unindexed: type[service_calls.Unindexed]
) -> None:
    blob = unindexed(b"x" * 900_000)
    for n in range(1, 7):
        service.put(service.key("T", n), v=blob)
    batch = service.batch(service.query())
    assert batch.more_results == 1
    assert batch.ByteSize() < 4 * 1024 * 1024
    assert service.names() == [1, 2, 3, 4, 5, 6]
