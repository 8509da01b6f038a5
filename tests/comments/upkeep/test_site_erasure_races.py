"""An erasure leaves nothing behind, even if people post, vote and follow while it runs."""

import json
import threading
from concurrent import futures
from datetime import UTC, datetime

import pytest

from comments import app as apps
from comments.domain import records
from comments.events import dispatcher
from comments.limits import usage
from comments.sites import site_deletion, site_settings
from comments.store import connection
from comments.upkeep import site_erasure, wiring
from tests.support import store_snapshot
from tests.support.threads import sample_threads

pytestmark = pytest.mark.slow

GONE, KEPT = "zebra-erased", "other"
ADA = records.Actor("cli", "Ada")
WRITERS = 4
ENOUGH = 3  # Posts of each writer before the deletion


def _write(store: connection.Store, number: int, ready: threading.Semaphore) -> int:
    """Post, vote and follow until the site is gone; return the number of posts."""
    client, base = (
        apps.create_app(sample_threads.SETTINGS, store).test_client(),
        f"/api/v1/sites/{GONE}",
    )
    headers: dict[str, str] = {}
    posts = 0
    while True:
        sent = {"name": f"Writer {number}", "body": f"Text {posts}"}
        where = f"?thread=page-{posts % 2}"
        answer = client.post(f"{base}/comments{where}", json=sent, headers=headers)
        if answer.status_code == 404:
            return posts
        assert answer.status_code == 201, answer.text
        made = json.loads(answer.text)
        headers = headers or {"Authorization": f"Bearer {made['token']}"}
        voted = client.put(f"/api/v1/comments/{made['comment']['id']}/vote", json={"value": 1})
        followed = client.put(f"{base}/following{where}", headers=headers)
        assert {voted.status_code, followed.status_code} <= {200, 404}, voted.text + followed.text
        posts += 1
        if posts == ENOUGH:
            ready.release()


def _deliver() -> None:
    now = datetime.now(UTC)
    while dispatcher.sweep_fresh(now=now, handlers=wiring.HANDLERS).delivered:
        pass


def test_nothing_is_left_of_a_site_that_was_erased_while_people_wrote(
    open_store: connection.Store,
) -> None:
    with open_store.context():
        now = datetime.now(UTC)
        for site in (GONE, KEPT):
            origins, scheme = ("http://localhost",), sample_threads.SETTINGS.scheme
            site_settings.add(site, origins, scheme=scheme, now=now)
        guard: dict[str, int | None] = {
            "posts_per_network": 10_000,
            "posts_per_author": 10_000,
            "posts_per_thread": 10_000,
        }
        site_settings.change(GONE, guard=guard)
        ready = threading.Semaphore(0)
        with futures.ThreadPoolExecutor(WRITERS) as pool:
            writers = [pool.submit(_write, open_store, each, ready) for each in range(WRITERS)]
            for _ in range(WRITERS):
                assert ready.acquire(timeout=30), "a writer did not post"
            site_deletion.delete(GONE, ADA, now=now)
            site_erasure.begin(GONE, now=now)
            for _ in range(3):
                site_erasure.go_on(GONE, now=now, steps=5)
                _deliver()
            assert min(writer.result() for writer in writers) >= ENOUGH
        _deliver()
        usage.settle(now=datetime.now(UTC))
        settled = now + site_erasure.SETTLING
        calls = 0
        while not site_erasure.go_on(GONE, now=settled).is_done:
            calls += 1
            assert calls < 100
        _deliver()
        rows = store_snapshot.everything()
        assert [key for key, row in rows.items() if GONE.encode() in key + row] == []
        assert [site.id for site in site_settings.every_kept()] == [KEPT]
