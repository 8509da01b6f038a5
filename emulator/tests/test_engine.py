"""The whole service: message sizes, ignored metadata, and refusals."""

import grpc
import pytest

from datastore_emulator import inprocess, protobufs, testing
from datastore_emulator.transactions import commits
from emulator.tests.support import service_calls
from emulator.tests.support.service_calls import assert_refused

METADATA = (
    ("google-cloud-resource-prefix", "projects/elsewhere"),
    ("x-goog-request-params", "project_id=elsewhere&database_id=none"),
    ("x-goog-api-client", "gl-python/3"),
    ("authorization", "Bearer nobody"),
)


def test_every_rpc_answers(service: service_calls.Service) -> None:
    key = service.key("T", 1)
    transaction = service.begin()
    for method, fields in (
        ("Lookup", {"keys": [key]}),
        ("RunQuery", {"query": service.query()}),
        ("RunAggregationQuery", {"aggregation_query": {
            "nested_query": service.query(), "aggregations": [{"count": {}}]}}),
        ("BeginTransaction", {}),
        ("Commit", {"mode": 2, "mutations": [{"delete": key}]}),
        ("Rollback", {"transaction": transaction}),
        ("AllocateIds", {"keys": [service.key("T")]}),
        ("ReserveIds", {"keys": [key]}),
    ):  # fmt: skip
        assert service.call(method, **fields) is not None


def test_metadata_and_credentials_are_ignored(
    channel: grpc.Channel | inprocess.Channel, service: service_calls.Service
) -> None:
    service.put(service.key("T", 1), a=1)
    request = protobufs.LookupRequest(project_id="test", keys=[service.key("T", 1)])
    rpc = channel.unary_unary(
        "/google.datastore.v1.Datastore/Lookup",
        request_serializer=type(request).SerializeToString,
        response_deserializer=protobufs.LookupResponse.FromString,
    )
    response = rpc(request, metadata=METADATA)
    assert service.plain(response.found[0].entity) == {"a": 1}


def test_an_unparsable_request_is_refused_permanently(engine: inprocess.Engine) -> None:
    with (
        testing.running_server(engine) as address,
        grpc.insecure_channel(address) as channel,
        pytest.raises(grpc.RpcError) as caught,
    ):
        channel.unary_unary("/google.datastore.v1.Datastore/Lookup")(b"\xff\xff")  # type: ignore[arg-type]
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def test_a_client_with_the_default_limits_of_grpc_reads_everything(
    engine: inprocess.Engine, make_service: type[service_calls.Service]
) -> None:
    """Each commit has two megabytes, and the responses do not fit into 4 MiB."""
    with testing.running_server(engine) as address, grpc.insecure_channel(address) as channel:
        service = make_service(channel)
        text = service.value("x" * 39_000)
        text.exclude_from_indexes = True
        for start in range(1, 151, 50):
            service.commit(*(
                {"upsert": service.entity(service.key("T", n), text=text)}
                for n in range(start, start + 50)
            ))  # fmt: skip
        batch = service.batch(service.query(limit=140, offset=5))
        assert batch.more_results == 1
        assert batch.end_cursor
        assert service.names(limit=140, offset=5) == list(range(6, 146))
        keys = [service.key("T", n) for n in range(1, 151)]
        found = []
        while keys:
            response = service.lookup(*keys)
            found += [each.entity.key.path[0].id for each in response.found]
            keys = list(response.deferred)
        assert sorted(found) == list(range(1, 151))


def test_a_lookup_of_long_keys_is_answered_below_4_mib(
    near: service_calls.Service,
    unindexed: type[service_calls.Unindexed],
) -> None:
    def name(number: int) -> tuple[str, str]:
        return "k" * 1480, "n" * 1400 + str(number)

    for number in (1, 2):
        near.put(near.key(*name(number)), v=unindexed("x" * 1_000_000))
    asked = [near.key(*name(number)) for number in range(1, 1001)]
    answered = []
    while asked:
        response = near.lookup(*asked)
        assert response.ByteSize() < 4 * 1024 * 1024
        assert len(response.deferred) < len(asked)
        answered += [each.entity.key.path[0].name for each in (*response.found, *response.missing)]
        asked = list(response.deferred)
    assert len(set(answered)) == len(answered) == 1000
    asked = [near.key(*name(number), "T", "x" * 200) for number in range(1, 1001)]
    with assert_refused("INVALID_ARGUMENT", "3000000"):
        near.lookup(*asked)


def test_a_commit_or_allocation_with_too_large_a_response_changes_nothing(
    near: service_calls.Service,
    engine: inprocess.Engine,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(commits, "MAX_RESPONSE_BYTES", 400)
    entities = [{"upsert": near.entity(near.key("T", n))} for n in range(1, 21)]
    with assert_refused("INVALID_ARGUMENT", "Send a smaller request"):
        near.commit(*entities)
    assert near.names() == []
    near.commit(*entities[:5])
    assert len(near.names()) == 5
    with assert_refused("INVALID_ARGUMENT", "Send a smaller request"):
        near.call("AllocateIds", keys=[near.key("T")] * 20)
    assert len(near.call("AllocateIds", keys=[near.key("T")] * 5).keys) == 5


def test_errors_about_entities_name_them_as_datastore_does(service: service_calls.Service) -> None:
    key = service.key("T", "n", "U", 5)
    path = 'path < Element { type: "T" name: "n" } Element { type: "U" id: 5 } >'
    with assert_refused("NOT_FOUND", f'no entity to update: app: "dev~test" {path}'):
        service.commit({"update": service.entity(key)})
    service.put(key)
    with assert_refused("ALREADY_EXISTS", f'entity already exists: app: "dev~test" {path}'):
        service.commit({"insert": service.entity(key)})


@pytest.mark.parametrize("method", ["Lookup", "RunQuery", "RunAggregationQuery"])
def test_eventually_consistent_reads_get_the_latest_state(
    service: service_calls.Service, method: str
) -> None:
    service.put(service.key("T", 1))
    fields = {
        "Lookup": {"keys": [service.key("T", 1)]},
        "RunQuery": {"query": service.query()},
        "RunAggregationQuery": {
            "aggregation_query": {
                "nested_query": service.query(),
                "aggregations": [{"count": {}}],
            }
        },
    }[method]
    response = service.call(method, read_options={"read_consistency": 2}, **fields)
    if method == "Lookup":
        assert response.found
    elif method == "RunQuery":
        assert response.batch.entity_results
    else:
        counted = response.batch.aggregation_results[0].aggregate_properties["property_1"]
        assert counted.integer_value == 1


def test_request_tags_are_accepted_and_ignored(service: service_calls.Service) -> None:
    key = service.key("T", 1)
    service.put(key, a=1)
    request_options = {"request_tags": ["tag"]}
    found = service.call("Lookup", keys=[key], request_options=request_options).found
    assert service.plain(found[0].entity) == {"a": 1}
