"""Writes to a served thread, and what a reader waits for right after one.

Owns the round that `benchmarks.serving` repeats: a reply is posted, the first page is read, the
reply is edited, the page is read again. Each page has to count the reply that was just
acknowledged, though another process may have taken it. Each round asks on new connections.
"""

import contextlib
import http.client
import json
import time
from typing import Any

CALLS = ("post", "page after post", "edit", "page after edit")


class Writer:
    """Somebody who writes to a thread and reads its first page."""

    def __init__(self, port: int, page: str, parent: str) -> None:
        self._port = port
        self._page = page
        self._parent = parent
        self._written = 0
        self.times: dict[str, list[float]] = {call: [] for call in CALLS}

    def round(self) -> None:
        """Post, read, edit, read."""
        self._written += 1
        with self._connected() as writing, self._connected() as reading:
            before = self._ask(reading, "GET", self._page)[0]["total"]
            body = f"A reply, number {self._written}."
            reply = {"name": "a writer", "body": body, "parent": self._parent}
            made = self._timed("post", writing, "POST", self._page, reply)
            changes = {"Authorization": f"Bearer {made['token']}"}
            page = self._timed("page after post", reading, "GET", self._page)
            if page["total"] != before + 1:
                raise SystemExit(f"a page counts {page['total']} comments, not {before + 1}")
            path = f"/api/v1/comments/{made['comment']['id']}"
            self._timed("edit", writing, "PATCH", path, {"body": f"{body} Edited."}, changes)
            self._timed("page after edit", reading, "GET", self._page)

    def _connected(self) -> "contextlib.closing[http.client.HTTPConnection]":
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        return contextlib.closing(connection)

    def _timed(self, name: str, *asked: Any) -> dict[str, Any]:
        answer, seconds = self._ask(*asked)
        self.times[name].append(seconds)
        return answer

    def _ask(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        path: str,
        body: dict[str, str] | None = None,
        headers: dict[str, str] | None = None,
    ) -> tuple[dict[str, Any], float]:
        sent = None if body is None else json.dumps(body)
        kind = {} if body is None else {"Content-Type": "application/json"}
        start = time.perf_counter()
        connection.request(method, path, body=sent, headers=kind | (headers or {}))
        answer = connection.getresponse()
        data = answer.read()
        seconds = time.perf_counter() - start
        if answer.status not in {200, 201}:
            raise SystemExit(f"{method} {path} answered {answer.status}: {data[:400]!r}")
        return json.loads(data), seconds
