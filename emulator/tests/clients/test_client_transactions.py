"""Transactions and conditional writes, with every client library and both transports."""

from typing import Any

import pytest

from emulator.tests.clients import datastore_driver, ndb_driver
from emulator.tests.clients.conftest import only
from emulator.tests.clients.driver import (
    Asked,
    Row,
    Where,
    assert_refused,
    status_of,
)
from emulator.tests.support import service_calls


def test_a_transaction_changes_all_or_nothing(
    client: datastore_driver.Datastore | ndb_driver.Ndb,
) -> None:
    def change(work: Any) -> None:
        work.put(("T", "a"), v=1)
        work.put(("T", "b"), v=2)

    def fail(work: Any) -> None:
        work.put(("T", "a"), v=9)
        work.delete(("T", "b"))
        raise LookupError

    client.transaction(change)
    with pytest.raises(LookupError):
        client.transaction(fail)
    found = sorted(client.get(("T", "a"), ("T", "b")))
    assert found == [Row(("T", "a"), {"v": 1}), Row(("T", "b"), {"v": 2})]


def test_a_retried_transaction_counts_correctly(
    client: datastore_driver.Datastore | ndb_driver.Ndb, near: service_calls.Service
) -> None:
    client.put(("T", "a"), v=0)
    attempts = []

    def increment(work: Any) -> None:
        (row,) = work.get(("T", "a"))
        if not attempts:
            near.put(near.key("T", "a"), v=10)
        attempts.append(row.properties["v"])
        work.put(("T", "a"), v=row.properties["v"] + 1)

    with assert_refused("ABORTED"):
        client.transaction(increment)
    client.transaction(increment)
    assert attempts == [0, 10]
    assert client.get(("T", "a"))[0].properties == {"v": 11}


def test_a_phantom_aborts_a_transaction(
    client: datastore_driver.Datastore | ndb_driver.Ndb, near: service_calls.Service
) -> None:
    def change(work: Any) -> None:
        found = work.query(Asked("T", Where("v", "=", 1)))
        if not found.rows:
            near.put(near.key("T", "new"), v=1)
        work.put(("Sum", "s"), v=len(found.rows))

    with assert_refused("ABORTED"):
        client.transaction(change)
    client.transaction(change)
    assert client.get(("Sum", "s"))[0].properties == {"v": 1}


def test_a_transaction_reads_one_snapshot(
    client: datastore_driver.Datastore | ndb_driver.Ndb, near: service_calls.Service
) -> None:
    for name in "ab":
        client.put(("T", name), v=0)

    def read(work: Any) -> tuple[int, int, int]:
        (first,) = work.get(("T", "a"))
        near.put(near.key("T", "a"), v=1)
        near.put(near.key("T", "b"), v=1)
        (second,) = work.get(("T", "b"))
        return first.properties["v"], second.properties["v"], len(work.query(Asked("T")).rows)

    assert client.transaction(read, is_read_only=True) == (0, 0, 2)


def test_a_read_only_transaction_cannot_write(
    client: datastore_driver.Datastore | ndb_driver.Ndb,
) -> None:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - some libraries refuse on their own
        client.transaction(lambda work: work.put(("T", "a"), v=1), is_read_only=True)
    if not isinstance(caught.value, (ValueError, RuntimeError)):
        assert status_of(caught.value) in ("INVALID_ARGUMENT", "no status")
    assert client.get(("T", "a")) == []


@only("node")  # The other libraries can only upsert complete keys
def test_inserts_and_updates_check_for_an_existing_entity(client: Any) -> None:
    with assert_refused("NOT_FOUND"):
        client.update(("T", "a"), v=1)
    client.insert(("T", "a"), v=1)
    with assert_refused("ALREADY_EXISTS"):
        client.insert(("T", "a"), v=2)
    client.update(("T", "a"), v=3)
    assert client.get(("T", "a"))[0].properties == {"v": 3}
