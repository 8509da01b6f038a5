"""Sixty-four writers concurrently reply to different comments in one thread, over gRPC.

In pessimistic mode, conflicting transactions wait or are aborted; still, every post succeeds and
every counter is exact.
"""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest

from comments.sites import site_settings
from comments.store import connection, reads
from comments.store.models import comment_rows
from comments.tree.counters import sharding
from comments.tree.lists import ordered_query
from datastore_emulator import inprocess, testing
from tests.conftest import ROOT
from tests.support.histories import counter_oracle
from tests.support.threads import sample_threads

pytestmark = [pytest.mark.slow, pytest.mark.embedded]

WRITERS = 64
EACH = 2
DEADLINE = 120.0  # For one post; long, because the machine also does other work


@pytest.fixture
def open_store() -> Iterator[connection.Store]:
    """A store that connects to an engine through a gRPC port."""
    with (
        inprocess.open_engine(
            None, indexes=ROOT / "index.yaml", concurrency="pessimistic"
        ) as engine,
        testing.running_server(engine) as address,
        grpc.insecure_channel(address) as channel,
    ):
        yield connection.Store(channel, project="test", deadline=DEADLINE, rpc_timeout=DEADLINE)


@pytest.mark.parametrize("spread", [WRITERS, 1], ids=["spread", "at rest"])
def test_64_concurrent_replies_to_different_comments_all_succeed(
    store: connection.Store, spread: int
) -> None:
    site = site_settings.add(
        "demo", [], scheme=sample_threads.SETTINGS.scheme, now=sample_threads.START
    )
    parents = [sample_threads.post(site, f"comment {number}").id for number in range(WRITERS)]
    name = sample_threads.name_of(site)
    if spread > 1:
        sharding.spread(name, spread)
    start = threading.Barrier(WRITERS)

    def work(number: int) -> None:
        with store.context():
            start.wait(DEADLINE)
            for each in range(EACH):
                sample_threads.post(site, f"answer {number}.{each}", parents[number])

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(work, range(WRITERS)))  # Re-raises any writer's error
    rows = {row.id: row for row in ordered_query.thread(name)}
    assert len(rows) == WRITERS * (1 + EACH)
    assert {rows[parent].child_count for parent in parents} == {EACH}
    assert counter_oracle.of(name)["approved"] == len(rows)
    assert reads.get(comment_rows.thread_key(name)).shards >= spread
    counter_oracle.assert_counted()
