"""Post to the page "page" and change it from a process of its own, one step for each line of input.

    python -m tests.support.threads.page_writer FILE NAME

Reads lines from standard input and prints each after its step has been acknowledged. Step N edits
the first comment of NAME to "NAME N", or posts it; every fourth step also posts "gone NAME N" and
retracts it, and every fifth one compacts the thread.
"""

import sys
from pathlib import Path

import flask.testing

from comments import app as apps
from comments.domain import records
from comments.reading.compaction import compactor
from comments.store import connection
from datastore_emulator import inprocess
from tests.support import prepared_stores
from tests.support.people import api_requests
from tests.support.threads import sample_threads

PAGE = "/api/v1/sites/demo/comments?thread=page"


class PageWriter:
    """A person who writes, by a process's application."""

    def __init__(
        self, client: flask.testing.FlaskClient, store: connection.Store, name: str
    ) -> None:
        self._client = client
        self._store = store
        self._name = name
        self._said: dict[str, object] = {}

    def step(self, number: int) -> None:
        """Take a step; it has been acknowledged when this method returns."""
        text = f"{self._name} {number}"
        if self._said:
            self._patch(text)
        else:
            self._said = self._post(text)
        if number % 4 == 0:
            gone = self._post(f"gone {text}")
            address = f"{api_requests.ONE}{_id(gone)}"
            answer = self._client.delete(address, headers=api_requests.bearer(gone))
            assert answer.status_code == 200, answer.text
        if number % 5 == 0:
            with self._store.context():
                name = records.ThreadName("demo", "page")
                compactor.compact(sample_threads.SETTINGS.scheme, name)

    def _post(self, text: str) -> dict[str, object]:
        answer = self._client.post(PAGE, json={"name": self._name, "body": text})
        assert answer.status_code == 201, answer.text
        return api_requests.answer(answer)

    def _patch(self, text: str) -> None:
        headers = api_requests.bearer(self._said)
        address = f"{api_requests.ONE}{_id(self._said)}"
        answer = self._client.patch(address, json={"body": text}, headers=headers)
        assert answer.status_code == 200, answer.text


def _id(posted: dict[str, object]) -> str:
    comment = posted["comment"]
    assert isinstance(comment, dict)
    return str(comment["id"])


def main(path: str, name: str) -> None:
    with prepared_stores.opened(Path(path)) as engine:
        store = connection.Store(inprocess.Channel(engine), project="test")
        app = apps.create_app(sample_threads.SETTINGS, store)
        writer = PageWriter(app.test_client(), store, name)
        for line in sys.stdin:
            writer.step(int(line))
            sys.stdout.write(line)
            sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
