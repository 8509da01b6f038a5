"""On emulators, the store makes only calls that Google's emulators answer as Datastore does."""

import pytest

from comments.domain import records
from comments.domain.ids import sorthash
from comments.store import connection, ownership, reads, transactions
from comments.store.models import comment_rows
from comments.tree.schemes import scheme_change
from datastore_emulator import inprocess
from tests.support.store_interceptors import Calls, Faults, InterceptorSlot
from tests.support.threads import sample_threads


@pytest.fixture
def calls(interceptor: InterceptorSlot) -> Calls:
    return interceptor.use(Calls())


@pytest.fixture
def open_store(engine: inprocess.Engine, interceptor: InterceptorSlot) -> connection.Store:
    channel = inprocess.Channel(engine, interceptor)
    return connection.Store(channel, project="test", is_emulator=True)


def test_a_transaction_begins_with_a_call_of_its_own(
    store: connection.Store, site: records.Site, calls: Calls
) -> None:
    def write() -> None:
        row = reads.get(comment_rows.site_key("demo"))
        transactions.apply(ownership.Writes("site_settings", put=(row,)))

    calls.names.clear()
    transactions.transaction(write)
    assert calls.names == ["BeginTransaction", "Lookup", "Commit"]


def test_a_read_only_transaction_ends_with_a_rollback(
    store: connection.Store, site: records.Site, calls: Calls
) -> None:
    calls.names.clear()
    transactions.snapshot(lambda: reads.get(comment_rows.site_key("demo")))
    assert calls.names == ["BeginTransaction", "Lookup", "Rollback"]


def test_a_count_needs_no_aggregation_query(
    store: connection.Store, site: records.Site, calls: Calls
) -> None:
    for number in range(3):
        sample_threads.post(site, f"{number}")
    calls.names.clear()
    assert reads.count(reads.Query("Comment")) == 3
    assert reads.count(reads.Query("Comment", limit=2)) == 2
    assert calls.names == ["RunQuery", "RunQuery"]


def test_a_query_orders_equal_results_by_key(
    store: connection.Store, site: records.Site, interceptor: InterceptorSlot
) -> None:
    asked = interceptor.use(Faults()).requests
    list(reads.fetch(reads.Query("Comment", order=("-created",))))
    list(reads.fetch(reads.Query("Comment", order=("created",))))
    orders = [[each.property.name for each in request.query.order] for _, request in asked]
    assert orders == [["created", "__key__"], ["created"]]


def test_a_patch_contains_the_whole_entity(
    store: connection.Store, site: records.Site, interceptor: InterceptorSlot
) -> None:
    """Google's Datastore emulator ignores a mask, and would store only the patched properties."""
    sample_threads.post(site, "text")
    thread = sample_threads.name_of(site)
    asked = interceptor.use(Faults()).requests
    transactions.transaction(
        lambda: scheme_change.switch(thread, sorthash.Scheme(digits="01"), now=sample_threads.START)
    )
    (commit,) = [request for name, request in asked if name == "Commit"]
    (update,) = [each for each in commit.mutations if each.HasField("update")]
    assert not update.HasField("property_mask")
    assert update.update.properties["body"].string_value == "text"
    assert update.update.properties["sort_hash"].string_value == "00"
