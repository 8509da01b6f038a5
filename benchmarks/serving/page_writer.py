"""Writes to a served thread, and the page reads right after them.

The module contains the round that `served_pages` repeats: post a reply, read the first page, edit
the reply, read the page again. Each page must count the reply that was just acknowledged, even if a
different process accepted it. Each round opens new connections. Pages are read with `lean_client`,
because a client that parses headers takes longer.
"""

import contextlib
import http.client
import json
import time
from typing import Any

from benchmarks.serving import lean_client, page_figures

CALLS = ("post", "page after post", "edit", "page after edit")


class Writer:
    """A client that writes to a thread and reads its first page."""

    def __init__(self, port: int, page: str, parent: str) -> None:
        self._port = port
        self._path = page
        self._page = lean_client.Way(page, port, page_figures.request(page))
        self._parent = parent
        self._written = 0
        self.times: dict[str, list[float]] = {call: [] for call in CALLS}

    def round(self) -> None:
        """Post, read, edit, read."""
        self._written += 1
        with self._connected() as writing, lean_client.connected(self._port) as reading:
            before = json.loads(reading.fetch(self._page)[0])["total"]
            body = f"A reply, number {self._written}."
            reply = {"name": "a writer", "body": body, "parent": self._parent}
            made = self._timed("post", writing, "POST", self._path, reply)
            changes = {"Authorization": f"Bearer {made['token']}"}
            total = self._read("page after post", reading)["total"]
            if total != before + 1:
                raise SystemExit(f"a page counts {total} comments, not {before + 1}")
            path = f"/api/v1/comments/{made['comment']['id']}"
            self._timed("edit", writing, "PATCH", path, {"body": f"{body} Edited."}, changes)
            self._read("page after edit", reading)

    def _connected(self) -> "contextlib.closing[http.client.HTTPConnection]":
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        return contextlib.closing(connection)

    def _read(self, name: str, reading: lean_client.Connection) -> dict[str, Any]:
        body, seconds = reading.fetch(self._page)
        self.times[name].append(seconds)
        found: dict[str, Any] = json.loads(body)
        return found

    def _timed(self, name: str, *asked: Any) -> dict[str, Any]:
        answer, seconds = self._ask(*asked)
        self.times[name].append(seconds)
        return answer

    def _ask(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        path: str,
        body: dict[str, str],
        headers: dict[str, str] | None = None,
    ) -> tuple[dict[str, Any], float]:
        kind = {"Content-Type": "application/json"}
        sent = json.dumps(body)
        start = time.perf_counter()
        connection.request(method, path, body=sent, headers=kind | (headers or {}))
        answer = connection.getresponse()
        data = answer.read()
        seconds = time.perf_counter() - start
        if answer.status not in {200, 201}:
            raise SystemExit(f"{method} {path} answered {answer.status}: {data[:400]!r}")
        return json.loads(data), seconds
