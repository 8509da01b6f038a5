"""Responses are never outdated, even during writes, edits, retractions and compactions."""

import threading

import flask
import pytest

from comments.domain import presentation, records
from comments.posting import own_comment
from comments.reading.compaction import compactor
from comments.reading.materialized import view_cache
from comments.store import connection
from comments.tree.lists import ordered_query
from comments.web.http import page_members
from tests.support.people.page_request import PAGE, plain
from tests.support.threads import compaction, sample_threads


class Reader(threading.Thread):
    """A client that repeatedly requests one page, as a browser does, and records the responses."""

    def __init__(
        self, app: flask.Flask, states: list[bytes], done: threading.Event, *, coding: str
    ) -> None:
        super().__init__()
        self.client, self.states, self.done = app.test_client(), states, done
        self.headers = {"Accept-Encoding": coding}
        # Each response's ETag and body, with the number of states before its request.
        self.got: list[tuple[int, str, bytes]] = []
        self.failed: list[int] = []

    def run(self) -> None:
        known, body = "", b""
        while not self.done.is_set():
            before = len(self.states)
            response = self.client.get(
                f"{PAGE}&limit=200", headers=self.headers | {"If-None-Match": known}
            )
            if response.status_code == 200:
                known, body = response.headers["ETag"], plain(response)
            elif response.status_code != 304:
                self.failed.append(response.status_code)
            self.got.append((before, response.headers["ETag"], body))


@pytest.mark.slow
def test_every_response_during_writes_is_a_real_state_named_by_its_etag(
    app: flask.Flask,
    open_store: connection.Store,
    site: records.Site,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compaction.small_buckets(monkeypatch, 4, 3)
    now = [0.0]
    view_cache.HOLDINGS.put(open_store, view_cache.Holdings(lambda: now[0]))
    states: list[bytes] = []
    done = threading.Event()
    readers = [Reader(app, states, done, coding=("gzip", "identity")[n % 2]) for n in range(8)]
    with open_store.context():
        _write(site, states, now, readers, done)
    for reader in readers:
        reader.join()
    places = {state: place for place, state in enumerate(states)}
    assert len(places) == len(states)
    bodies: dict[str, bytes] = {}
    for reader in readers:
        assert reader.failed == []
        seen = [places[body] for _, _, body in reader.got]  # Each body is a state that existed.
        assert seen == sorted(seen)  # No response is older than its predecessor.
        for (before, tag, body), place in zip(reader.got, seen, strict=True):
            assert place >= before - 1  # It includes the last commit before its request
            assert bodies.setdefault(tag, body) == body
    assert len(set(bodies.values())) > 5


def _write(
    site: records.Site,
    states: list[bytes],
    now: list[float],
    readers: list[Reader],
    done: threading.Event,
) -> None:
    """Post, edit, retract and compact; after each change, record what readers must see."""
    name, mine = sample_threads.name_of(site), [sample_threads.post(site, "first")]
    folded = compactor.compact(sample_threads.SETTINGS.scheme, name)

    def note() -> None:
        found = ordered_query.page(
            name,
            order=ordered_query.QueryOrder.THREAD,
            parent=None,
            limit=200,
            cursor=None,
            secret=sample_threads.SETTINGS.secret,
        )
        members = page_members.of(site, name, "thread", page_members.Service())
        states.append(presentation.page(found, records.PinnedComments()).json(members))

    note()
    for reader in readers:
        reader.start()
    try:
        for step in range(40):
            target = mine[step * 7 % len(mine)]
            if step % 4 == 3:
                own_comment.edit(
                    target.id,
                    author_id=target.author.id,
                    body=f"edited at {step}",
                    revision=None,
                    settings=sample_threads.SETTINGS,
                    now=sample_threads.START,
                )
            elif step % 10 == 8:
                mine.remove(target)
                own_comment.retract(
                    target.id, author_id=target.author.id, revision=None, now=sample_threads.START
                )
            else:
                mine.append(
                    sample_threads.post(site, f"step {step}", target.id if step % 2 else None)
                )
            note()
            if step % 5 == 4:
                if folded is not None:
                    now[0] += compactor.GRACE
                    compactor.clear(folded)
                folded = compactor.compact(sample_threads.SETTINGS.scheme, name)
    finally:
        done.set()
