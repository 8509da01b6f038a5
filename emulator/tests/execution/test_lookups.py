"""Lookups: keys are returned as they were sent, and large responses are split."""

from emulator.tests.support import service_calls
from emulator.tests.support.service_calls import assert_refused


def test_a_looked_up_key_is_returned_byte_for_byte(service: service_calls.Service) -> None:
    named = service.key("T", "x", "U", 5, namespace="n")
    service.put(named)
    bare = service.key("T", 1)
    service.put(bare)
    bare.ClearField("partition_id")
    for key in (named, bare):
        response = service.lookup(key)
        assert response.found[0].entity.key == key
        assert response.found[0].entity.key.SerializeToString() == key.SerializeToString()
    bare.path[0].id = 2
    missing = service.lookup(bare).missing[0]
    assert missing.entity.key == bare
    assert missing.version > 0


def test_a_lookup_of_a_key_twice_finds_it_once(service: service_calls.Service) -> None:
    service.put(service.key("T", 1))
    assert len(service.lookup(service.key("T", 1), service.key("T", 1)).found) == 1


def test_a_lookup_takes_1000_keys_and_no_more(service: service_calls.Service) -> None:
    asked = [service.key("T", n + 1) for n in range(1001)]
    assert len(service.lookup(*asked[:1000]).missing) == 1000
    with assert_refused("INVALID_ARGUMENT"):
        service.lookup(*asked)


def test_a_large_lookup_is_deferred_in_parts(
    service: service_calls.Service, unindexed: type[service_calls.Unindexed]
) -> None:
    names = range(1, 7)
    for n in names:
        service.put(service.key("T", n), v=unindexed(b"x" * 900_000))
    response = service.lookup(*(service.key("T", n) for n in names))
    assert response.ByteSize() < 4 * 1024 * 1024
    assert len(response.found) + len(response.deferred) == 6
    assert response.deferred
