"""The in-process channel, as the client libraries use it."""

# ruff: noqa: DTZ001 - protobuf and NDB take naive UTC

import datetime as dt
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import google.api_core.exceptions
import grpc
import pytest
from google.cloud import datastore, ndb

from datastore_emulator import errors, inprocess, protobufs, testing
from emulator.tests.support import service_calls
from emulator.tests.support.service_calls import assert_refused


class Part(ndb.Model):
    name = ndb.StringProperty()


class T(ndb.Model):
    a = ndb.IntegerProperty()
    b = ndb.StringProperty(repeated=True)
    when = ndb.DateTimeProperty()
    text = ndb.TextProperty()
    packed = ndb.BlobProperty(compressed=True)
    part = ndb.StructuredProperty(Part)
    data = ndb.JsonProperty()


@pytest.fixture
def context(channel: grpc.Channel | inprocess.Channel) -> Iterator[None]:
    with testing.ndb_client(channel).context(cache_policy=False):
        yield


def test_ndb_models_are_returned_as_stored(context: None) -> None:
    when = dt.datetime(2020, 1, 2, 3, 4, 5, 678)
    made = T(
        a=1, b=["x", "y"], when=when, text="t" * 2000, packed=b"z" * 5000,
        part=Part(name="p"), data={"k": [1]},
    )  # fmt: skip
    key = made.put()
    found = key.get()
    assert found is not made
    assert found.to_dict() == made.to_dict()
    assert T.query(T.part.name == "p").get().key == key
    assert T.query(T.when > dt.datetime(2020, 1, 1)).get(projection=[T.when]).when == when
    key.delete()
    assert key.get() is None


@pytest.mark.slow
def test_ndb_queries_pages_and_counts(context: None) -> None:
    ndb.put_multi([T(id=n, a=n, b=[str(n % 3), "all"]) for n in range(1, 321)])
    assert T.query().count() == 320
    assert [t.a for t in T.query().order(-T.a).fetch(3)] == [320, 319, 318]
    assert len(T.query(T.b == "all").fetch(keys_only=True)) == 320
    assert len(T.query(T.b.IN(["1", "2"])).fetch()) == 214
    assert [t.a for t in T.query(T.b.IN(["1", "2"], server_op=True)).fetch(limit=3)] == [1, 2, 4]
    page, cursor, more = T.query().order(T.a).fetch_page(10)
    assert more
    following, _, _ = T.query().order(T.a).fetch_page(2, start_cursor=cursor)
    assert [t.a for t in (*page, *following)] == list(range(1, 13))
    assert len(ndb.get_multi([ndb.Key("T", n) for n in range(1, 321)])) == 320
    ndb.delete_multi([ndb.Key("T", n) for n in range(1, 321)])
    assert T.query().get() is None


def test_ndb_transactions_retry_on_conflict(context: None) -> None:
    key = T(a=0).put()
    attempts = []

    def increment() -> None:
        made = key.get()
        attempts.append(made.a)
        if len(attempts) == 1:
            increment_elsewhere()
        made.a += 1
        made.put()
        T(parent=key, a=5).put()

    def increment_elsewhere() -> None:
        raw = inprocess_put
        raw(key)

    def inprocess_put(which: Any) -> None:
        stub = ndb.context.get_context().client.stub
        request = {
            "project_id": "test",
            "mode": 2,
            "mutations": [
                {
                    "upsert": {
                        "key": which._key.to_protobuf(),
                        "properties": {"a": {"integer_value": 10}},
                    }
                }
            ],
        }
        stub.commit(google.cloud.datastore_v1.CommitRequest(request))

    ndb.transaction(increment, retries=5)
    assert attempts == [0, 10]
    assert key.get().a == 11
    assert len(T.query(ancestor=key).fetch()) == 2
    assert ndb.Model.allocate_ids.__name__ == "_allocate_ids"
    assert len(T.allocate_ids(3)) == 3


def test_ndb_raises_the_error_of_a_missing_index(context: None) -> None:
    with pytest.raises(google.api_core.exceptions.FailedPrecondition, match="no matching index"):
        T.query(T.b == "x").order(T.when).fetch()


def test_google_cloud_datastore_reads_writes_and_counts(gcd_client: datastore.Client) -> None:
    key = gcd_client.key("T", "x")
    entity = datastore.Entity(key, exclude_from_indexes=("note",))
    entity.update(a=1, note="n", tags=["p", "q"], when=dt.datetime.now(dt.UTC))
    gcd_client.put(entity)
    assert gcd_client.get(key) == entity
    other = datastore.Entity(gcd_client.key("T"))
    other["a"] = 2
    gcd_client.put(other)
    assert other.key.id
    query = gcd_client.query(kind="T", order=["-a"])
    assert [each.key for each in query.fetch()] == [other.key, key]
    counted = gcd_client.aggregation_query(gcd_client.query(kind="T")).count(alias="all").fetch()
    assert [result.value for page in counted for result in page] == [2]
    with gcd_client.transaction() as transaction:
        found = gcd_client.get(key)
        found["a"] = 5
        transaction.put(found)
    assert gcd_client.get(key)["a"] == 5
    with (  # noqa: PT012 - the commit at the end raises
        pytest.raises(google.api_core.exceptions.Aborted),
        gcd_client.transaction() as transaction,
    ):
        found = gcd_client.get(key)
        gcd_client._datastore_api.commit(
            request={
                "project_id": "test", "mode": 2,
                "mutations": [{"upsert": datastore.helpers.entity_to_protobuf(entity)._pb}],
            }
        )  # fmt: skip
        transaction.put(found)
    assert len(gcd_client.allocate_ids(gcd_client.key("T"), 3)) == 3
    gcd_client.reserve_ids_multi([gcd_client.key("T", 77)])
    gcd_client.delete_multi([key, other.key])
    assert list(query.fetch()) == []


def test_google_cloud_datastore_pages(gcd_client: datastore.Client) -> None:
    for start in (0, 500):
        gcd_client.put_multi(
            [datastore.Entity(gcd_client.key("T", n + 1)) for n in range(start, start + 500)]
        )
    pages = gcd_client.query(kind="T").fetch()
    sizes = [len(list(page)) for page in pages.pages]
    assert sizes == [300, 300, 300, 100]
    assert len(list(gcd_client.query(kind="T").fetch(offset=950))) == 50


def commit(service: service_calls.Service) -> Any:
    return service.put(service.key("T", 1), a=1)


def test_an_interceptor_can_refuse_before_and_after_the_call(
    engine: inprocess.Engine, make_service: type[service_calls.Service]
) -> None:
    seen = []

    def intercept(
        method: str, request: pytest.FixtureRequest, proceed: Callable[..., Any]
    ) -> bytes:
        seen.append((method, type(request).__name__))
        if method != "Commit":
            return proceed()
        if len(seen) == 1:
            raise errors.Unavailable("before")
        proceed()
        raise errors.DeadlineExceeded("after")

    service = make_service(inprocess.Channel(engine, interceptor=intercept))
    with assert_refused("UNAVAILABLE", "before"):
        commit(service)
    assert service.get(service.key("T", 1)) is None
    with assert_refused("DEADLINE_EXCEEDED", "after"):
        commit(service)
    assert service.get(service.key("T", 1)) == {"a": 1}
    assert seen[0] == ("Commit", "CommitRequest")


def test_the_version_of_an_entity_grows_with_every_change_of_it(
    engine: inprocess.Engine, make_service: type[service_calls.Service]
) -> None:
    channel = inprocess.Channel(engine)
    service = make_service(channel)
    one, two = service.key("T", "one"), service.key("T", "two")
    seen = [channel.version(one)]
    for number in (1, 1, 2):
        service.put(one, a=number)
        seen.append(channel.version(one))
        service.put(two, a=number)
        assert channel.version(one) == seen[-1]
    assert seen == sorted(set(seen))
    service.delete(one)
    assert channel.version(one) == seen[0] == 0
    service.put(one, a=1)
    assert channel.version(one) > seen[-1]
    with pytest.raises(inprocess.CallError, match="incomplete"):
        channel.version(service.key("T"))


def test_a_refusal_is_a_finished_call_and_an_error(engine: inprocess.Engine) -> None:
    with inprocess.Channel(engine) as channel:
        method = channel.unary_unary("/google.datastore.v1.Datastore/Commit")
        called = []
        future = method.future(protobufs.CommitRequest(), timeout=1, metadata=[("a", "b")])
        future.add_done_callback(called.append)
        assert called == [future]
        assert isinstance(future, grpc.RpcError)
        assert future.exception() is future
        assert (future.code(), future.done(), future.running()) == (
            grpc.StatusCode.INVALID_ARGUMENT, True, False,
        )  # fmt: skip
        assert future.traceback() is not None
        with pytest.raises(inprocess.CallError):
            future.result()
        with pytest.raises(inprocess.CallError):
            method.with_call(protobufs.CommitRequest())


def test_an_answer_is_a_finished_call(engine: inprocess.Engine) -> None:
    channel = inprocess.Channel(engine)
    method = channel.unary_unary(
        "/google.datastore.v1.Datastore/Lookup", protobufs.LookupRequest.SerializeToString
    )
    request = protobufs.LookupRequest(project_id="p")
    response, call = method.with_call(request, wait_for_ready=True, compression=None)
    assert isinstance(response, bytes)
    assert call.code() is grpc.StatusCode.OK
    assert [call.cancel(), call.cancelled(), call.is_active(), call.add_callback(print)] == [
        False
    ] * 4
    assert (call.details(), call.initial_metadata(), call.trailing_metadata()) == ("", (), ())
    assert (call.exception(), call.traceback(), call.time_remaining()) == (None, None, None)
    by_bytes = channel.unary_unary("/google.datastore.v1.Datastore/Lookup")
    answer = protobufs.LookupResponse.FromString(by_bytes(request.SerializeToString()))
    assert answer.read_time.seconds > 0


def test_a_channel_is_always_ready_and_has_no_streams(engine: inprocess.Engine) -> None:
    channel = inprocess.Channel(engine)
    states = []
    channel.subscribe(states.append)
    channel.unsubscribe(states.append)
    assert states == [grpc.ChannelConnectivity.READY]
    for kind in (channel.unary_stream, channel.stream_unary, channel.stream_stream):
        with pytest.raises(NotImplementedError):
            kind("/x")


def test_a_fault_of_the_engine_is_permanent_and_logged(
    engine: inprocess.Engine,
    monkeypatch: pytest.MonkeyPatch,
    make_service: type[service_calls.Service],
    caplog: pytest.LogCaptureFixture,
) -> None:
    service = make_service(inprocess.Channel(engine))
    monkeypatch.setitem(engine._methods, "Lookup", lambda _: 1 / 0)
    with pytest.raises(grpc.RpcError) as caught:
        service.get(service.key("T", 1))
    assert caught.value.code() is grpc.StatusCode.FAILED_PRECONDITION
    assert "Lookup failed" in caplog.text


def test_importing_the_channel_loads_only_what_every_application_needs() -> None:
    slow = (
        "google.cloud.ndb", "flask", "yaml", "google.cloud.datastore_admin_v1",
        "datastore_emulator.admin_api.admin_service",
    )  # fmt: skip
    program = (
        "import sys, datastore_emulator.inprocess\n"
        "print([m for m in sys.argv[1:] if m in sys.modules])"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program, *slow], capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "[]"
