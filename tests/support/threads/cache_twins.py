"""Run two processes on one store: one has a response cache, the other always calls Flask.

This module owns the steps of both processes: request, write, compact, and count the calls to Flask.
"""

import random
from collections.abc import Callable

import flask
from werkzeug.test import TestResponse

from comments import app as apps
from comments import config
from comments.domain import records
from comments.reading.compaction import compactor
from comments.reading.materialized import view_cache
from tests.support import datastores
from tests.support.threads import sample_threads

SITE = "/api/v1/sites/demo/comments"
PAGE = f"{SITE}?thread=page"
OTHERS = ("other", "odd & even")
GZIP = {"Accept-Encoding": "gzip, br"}
Answer = tuple[str, list[tuple[str, str]], bytes]
Rows = dict[str, records.Comment]


def answer(response: TestResponse) -> Answer:
    """Return the parts of a response that tests compare: status, headers and body."""
    return response.status, list(response.headers), response.data


class Process:
    """An application with a separate store; it counts the requests that reach Flask."""

    def __init__(self, datastore: datastores.Datastore, settings: config.Settings) -> None:
        self.now = 0.0
        self.store = datastore.connect()
        view_cache.HOLDINGS.put(self.store, view_cache.Holdings(lambda: self.now))
        self.app = apps.create_app(settings, self.store)
        self.client = self.app.test_client()
        self.asked = 0
        self._count: Callable[..., None] = self._counted
        flask.request_started.connect(self._count, self.app)

    def _counted(self, *_arguments: object, **_named: object) -> None:
        self.asked += 1


def write(process: Process, rows: Rows, chance: random.Random) -> int:
    """Post below a comment, then perhaps edit or retract the post."""
    parent = rows[chance.choice(sorted(rows))].id
    posted = {"name": "Ann", "body": f"a reply {chance.random()}", "parent": parent}
    made = process.client.post(PAGE, json=posted).json
    assert made is not None
    one = f"/api/v1/comments/{made['comment']['id']}"
    token = {"Authorization": f"Bearer {made['token']}"}
    if chance.random() < 0.5:
        assert process.client.patch(one, json={"body": "other"}, headers=token).status_code == 200
    if chance.random() < 0.3:
        assert process.client.delete(one, headers=token).status_code == 200
    return 1


def compact(process: Process) -> None:
    """Compact the thread without clearing flags."""
    with process.store.context():
        compactor.compact(sample_threads.SETTINGS.scheme, records.ThreadName("demo", "page"))
