"""The engine stores entities of this process as it stores them after all of its checks."""

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from google.cloud.datastore_v1.types import datastore as rpc_types
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from comments.store import connection
from comments.store.models import comment_rows, schema
from comments.store.wire import codec
from datastore_emulator import errors as engine_errors
from datastore_emulator import inprocess, protobufs
from tests.comments import kinds
from tests.comments.store.test_codec import values_of

pytestmark = pytest.mark.embedded

_INDEXES = Path(__file__).parents[3] / "index.yaml"
_TABLES = ("entities", "index_entries", "indexes", "history")
_Commit = rpc_types.CommitRequest.pb()
_Lookup = rpc_types.LookupRequest.pb()
_TRANSACTIONAL = int(rpc_types.CommitRequest.Mode.TRANSACTIONAL)


class Twins:
    """Two engines with equal files. One receives ordinary commits, the other one own commits."""

    def __init__(self, folder: Path) -> None:
        self._files = (folder / "ordinary", folder / "own")
        self.engines = [
            inprocess.open_engine(file, indexes=_INDEXES, durability="fast", clock=lambda: 1.8e9)
            for file in self._files
        ]

    def commit(self, mutations: Sequence[Any], *, reads: Sequence[Any] = ()) -> None:
        """Commit in both ways, after the same lookups, and check that answers and files agree."""
        answers = []
        for engine, is_own in zip(self.engines, (False, True), strict=True):
            request = _Commit(project_id="test", mode=_TRANSACTIONAL, mutations=mutations)
            if reads:
                lookup = _Lookup(project_id="test", keys=reads)
                lookup.read_options.new_transaction.SetInParent()
                answer = protobufs.RESPONSES["Lookup"].FromString(engine.call("Lookup", lookup))
                request.transaction = answer.transaction
            else:
                request.single_use_transaction.SetInParent()
            sent = request.SerializeToString(deterministic=True)
            run = (
                engine.commit_own if is_own else lambda it, engine=engine: engine.call("Commit", it)
            )
            answers.append(run(request))
            assert request.SerializeToString(deterministic=True) == sent, "the request has changed"
        assert answers[0] == answers[1]
        assert self.rows(0) == self.rows(1)

    def rows(self, number: int) -> dict[str, list[Any]]:
        file = sqlite3.connect(self._files[number])
        try:
            return {
                name: file.execute(f"SELECT * FROM {name}").fetchall()  # noqa: S608 - constants
                for name in _TABLES
            }
        finally:
            file.close()


@pytest.fixture
def twins(tmp_path: Path) -> Iterator[Twins]:
    made = Twins(tmp_path)
    yield made
    for engine in made.engines:
        engine.close()


def _message(row: schema.StoredRow) -> Any:
    return codec.message(row, connection.current().key(*row.key))


@pytest.mark.parametrize("kind", kinds.stored(), ids=lambda kind: kind.__name__)
@given(data=st.data())
@settings(max_examples=3, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_an_own_commit_stores_the_same_rows_and_answers_the_same(
    store: connection.Store, twins: Twins, kind: type[schema.StoredRow], data: st.DataObject
) -> None:
    key = schema.RowKey(kind, data.draw(st.sampled_from(["a", "b", "c"])))
    first, second, third = (_message(kind(key=key, **values_of(data, kind))) for _ in range(3))
    twins.commit([{"upsert": first}])
    twins.commit([{"upsert": second}], reads=[second.key])
    # The second mutation replaces what the first one has just stored.
    twins.commit([{"upsert": third}, {"upsert": first}], reads=[first.key])
    twins.commit([{"delete": first.key}, {"insert": second}], reads=[first.key])
    twins.commit([{"update": third, "property_mask": {"paths": []}}], reads=[first.key])


def _site(**values: Any) -> Any:
    key = comment_rows.site_key("demo")
    return _message(comment_rows.SiteRow(key=key, digits="AB", width=2, **values))


def test_an_entity_that_only_other_clients_make_is_refused_by_an_ordinary_commit(
    store: connection.Store, twins: Twins
) -> None:
    odd = _site()
    odd.properties["created"].timestamp_value.nanos = -1
    odd.properties["__name__"].string_value = "reserved"
    request = _Commit(project_id="test", mode=_TRANSACTIONAL, mutations=[{"upsert": odd}])
    request.single_use_transaction.SetInParent()
    for engine in twins.engines:
        with pytest.raises(engine_errors.InvalidArgument):
            engine.call("Commit", request)


@pytest.mark.parametrize("change", ["key", "size", "texts"])
def test_an_own_commit_checks_keys_and_sizes(
    store: connection.Store, twins: Twins, change: str
) -> None:
    odd = _site()
    if change == "key":
        odd.key.path[0].name = "__reserved__"
    elif change == "size":
        odd.properties["guard"].string_value = "a" * 1_048_500
    else:
        for name in ("guard", "budget", "turnstile"):
            odd.properties[name].string_value = "a" * 400_000
    request = _Commit(project_id="test", mode=_TRANSACTIONAL, mutations=[{"upsert": odd}])
    request.single_use_transaction.SetInParent()
    with pytest.raises(engine_errors.InvalidArgument):
        twins.engines[1].commit_own(request)
    assert twins.rows(1)["entities"] == []


def test_a_patch_in_an_own_commit_changes_only_its_properties(
    store: connection.Store, twins: Twins
) -> None:
    twins.commit([{"insert": _site(origins=["https://a.example"])}])
    patch = {"update": _site(cdn_seconds=5), "property_mask": {"paths": ["cdn_seconds"]}}
    twins.commit([patch])
    twins.commit([patch], reads=[_site().key])


def test_a_change_by_another_transaction_aborts_an_own_commit(
    store: connection.Store, twins: Twins
) -> None:
    engine = twins.engines[0]  # Without locks, the commit itself must find the change.
    twins.commit([{"insert": _site()}])
    lookup = _Lookup(project_id="test", keys=[_site().key])
    lookup.read_options.new_transaction.SetInParent()
    answer = protobufs.RESPONSES["Lookup"].FromString(engine.call("Lookup", lookup))
    twins.commit([{"upsert": _site(cdn_seconds=1)}])
    late = _Commit(project_id="test", mode=_TRANSACTIONAL, transaction=answer.transaction)
    late.mutations.add().upsert.CopyFrom(_site(cdn_seconds=2))
    with pytest.raises(engine_errors.Aborted):
        engine.commit_own(late)
    assert twins.rows(0) == twins.rows(1)


def test_the_store_uses_own_commits_where_the_channel_offers_them(
    store: connection.Store, twins: Twins
) -> None:
    channel = inprocess.Channel(twins.engines[1])
    assert connection.Store(channel, project="test").commit == channel.commit_own
