"""Readers beside a merge or its undo see the threads as before or afterwards, never a mixture."""

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from flask.testing import FlaskClient

from comments.domain import records
from comments.reading.compaction import compactor
from comments.sites import site_settings
from comments.store import connection
from comments.transfer.moves import join_plan, move_journal, thread_joins, thread_moves
from tests.support import datastores
from tests.support.store_interceptors import InterceptorSlot
from tests.support.threads import sample_threads

pytestmark = pytest.mark.embedded  # Other stores cannot tell without a read that a site has changed

NOW = sample_threads.START
ADA = sample_threads.ADA
APART, MERGED = {"b2", "b4"}, {"a1", "b2", "a3", "b4", "a5"}


class Interruption:
    """An interceptor that runs a step in another process before the n-th of the next calls.

    The other process is a store of its own, in another thread.
    """

    def __init__(self, other: connection.Store, compacted: str) -> None:
        self._other, self._compacted = other, compacted
        self.left = 0
        self.step: Callable[[], None] = lambda: None

    def __call__(self, _method: str, _request: Any, proceed: Callable[[], Any]) -> Any:
        self.left -= 1
        if not self.left:
            with ThreadPoolExecutor(1) as pool:
                pool.submit(self.act).result()
        return proceed()

    def act(self) -> None:
        with self._other.context():
            self.step()
            site = site_settings.get("demo")
            for thread in self._compacted:
                compactor.compact(site.scheme, sample_threads.name_of(site, thread))


def merge() -> None:
    plan = join_plan.of_merge(site_settings.get("demo"), "b", "a")
    thread_moves.run_to_end(
        thread_joins.begin(site_settings.get("demo"), plan, ADA, now=NOW),
    )


def undo() -> None:
    (move,) = (m for m in move_journal.of_site("demo") if m.state is move_journal.MoveState.DONE)
    thread_moves.run_to_end(thread_moves.undo("demo", move.id, ADA, now=NOW))


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize("compacted", ["ab", ""])
@pytest.mark.parametrize("query", ["", "&order=newest", "&order=best", "&limit=all", "counts"])
def test_a_reader_interrupted_by_a_merge_or_its_undo_sees_no_mixture(
    site: records.Site, client: FlaskClient, datastore: datastores.Datastore,
    interceptor: InterceptorSlot, query: str, compacted: str,
) -> None:  # fmt: skip
    for minute, text in enumerate(("a1", "b2", "a3", "b4", "a5")):
        sample_threads.post(site, text, thread=text[0], now=NOW + timedelta(minutes=minute))
    interruption = interceptor.use(Interruption(datastore.connect(), compacted))

    def check() -> None:
        if query == "counts":
            answer = client.post("/api/v1/sites/demo/counts", json={"threads": ["b"]})
            assert answer.get_json()["counts"] in ([len(APART)], [len(MERGED)])
            return
        path = f"/api/v1/sites/demo/comments?thread=b{query}"
        shown = {comment["html"][3:5] for comment in client.get(path).get_json()["comments"]}
        assert shown in (APART, MERGED)

    for call in itertools.count(1):
        for interruption.step in (merge, undo):
            check()
            interruption.left = call
            check()
            if is_late := interruption.left > 0:  # The reader made fewer calls.
                interruption.left = 0
                interruption.act()
                check()
        if is_late:
            return
