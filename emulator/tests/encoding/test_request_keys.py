"""Remembered keys of requests: every answer is the same as for a key that is checked anew."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datastore_emulator import errors, protobufs
from datastore_emulator.encoding import entities, keys, request_keys
from emulator.tests.support import service_calls

PARTITIONS = (keys.Partition("p"), keys.Partition("p", "d"), keys.Partition("q"))

names = st.sampled_from(["", "n", "x\x00y", "__k__", "é" * 3])
elements = st.fixed_dictionaries({"kind": names}, optional={"name": names}) | st.fixed_dictionaries(
    {"kind": names, "id": st.integers(0, 3)}
)
requested = st.builds(
    lambda project, database, namespace, path: protobufs.Key(
        partition_id=protobufs.PartitionId(
            project_id=project, database_id=database, namespace_id=namespace
        ),
        path=path,
    ),
    st.sampled_from(["", "p", "q"]),
    st.sampled_from(["", "d"]),
    st.sampled_from(["", "n", "__n__"]),
    st.lists(elements, max_size=3),
)


def anew(key: Any, default: keys.Partition) -> object:
    """Check and encode a key with the functions that remember nothing."""
    try:
        partition = entities.check_key(key, default, may_be_incomplete=True)
    except errors.InvalidArgument as error:
        return error.message
    if not keys.is_complete(key):
        return partition, b"", b""
    return partition, keys.encode_path(key), keys.encode(partition, key)


def remembered(key: Any, default: keys.Partition) -> object:
    try:
        return request_keys.of(key, default)[:3]
    except errors.InvalidArgument as error:
        return error.message


@given(requested)
def test_a_remembered_key_equals_a_checked_one_in_every_default_partition(key: Any) -> None:
    expected = [anew(key, default) for default in PARTITIONS]
    for _ in range(2):
        assert [remembered(key, default) for default in PARTITIONS] == expected


@given(requested, st.booleans())
def test_a_written_key_is_refused_as_a_checked_one_is(key: Any, may_be_incomplete: bool) -> None:
    def outcome(check: Any) -> object:
        try:
            check(key, PARTITIONS[0], may_be_incomplete=may_be_incomplete)
        except errors.InvalidArgument as error:
            return error.message
        return "accepted"

    assert outcome(request_keys.of_mutation) == outcome(entities.check_written_key)


@pytest.mark.parametrize("name", ["__x__", "n"])
def test_a_key_that_was_read_is_still_checked_when_it_is_written(
    service: service_calls.Service, name: str
) -> None:
    key = service.key("T", name)
    assert service.get(key) is None
    if name == "n":
        service.put(key, a=1)
        assert service.get(key) == {"a": 1}
    else:
        with service_calls.assert_refused("INVALID_ARGUMENT", f'"{name}" is reserved'):
            service.put(key, a=1)


def test_equal_bytes_of_a_key_name_an_entity_of_each_project(
    service: service_calls.Service,
) -> None:
    """A key without a partition belongs to the project of its request."""
    bare = protobufs.Key(path=[{"kind": "T", "id": 1}])
    other = service_calls.Service(service.channel, "other")
    for number, each in enumerate((service, other)):
        each.commit({"upsert": protobufs.Entity(key=bare)})
        each.put(each.key("T", 1), a=number)
    assert [each.get(bare) for each in (service, other)] == [{"a": 0}, {"a": 1}]
