"""The driver for @google-cloud/datastore: a Node process that reads JSON lines."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import grpc

from emulator.tests.clients import driver, node_values

FOLDER = Path(__file__).parent / "node"
_NAMES = {code.value[0]: code.name for code in grpc.StatusCode}


def is_installed() -> bool:
    """Return whether Node and its client library are installed."""
    return shutil.which("node") is not None and (FOLDER / "node_modules").is_dir()


class Process:
    """The running Node program, which can create clients for any address."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            ["node", "--no-warnings", "driver.mjs"],
            cwd=FOLDER,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def call(self, request: dict[str, Any]) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        if "message" not in answer:
            return answer["result"]
        raise driver.Refused(_NAMES.get(answer["code"], "no status"), answer["message"])

    def close(self) -> None:
        self._process.communicate()


class _Work:
    """A client's reads and writes, inside a transaction if one is open."""

    def __init__(self, process: Process, scope: dict[str, str], transaction: Any = None) -> None:
        self._process = process
        self._scope = scope
        self._transaction = transaction

    def call(self, operation: str, **fields: Any) -> Any:
        request = {"operation": operation, "scope": self._scope, "transaction": self._transaction}
        return self._process.call(request | fields)

    def get(self, *paths: tuple[Any, ...]) -> list[driver.Row]:
        return [_row(each) for each in self.call("get", paths=paths)]

    def put(self, path: tuple[Any, ...], /, **properties: Any) -> Any:
        return self.put_unindexed(path, (), **properties)

    def put_unindexed(
        self, path: tuple[Any, ...], names: Sequence[str], /, **properties: Any
    ) -> Any:
        made = {name: node_values.encoded(value) for name, value in properties.items()}
        return _path(self.call("put", path=path, properties=made, unindexed=names))

    def delete(self, *paths: tuple[Any, ...]) -> None:
        self.call("delete", paths=paths)

    def query(self, asked: driver.Asked) -> driver.Page:
        found = self.call("query", asked=_asked(asked))
        return driver.Page([_row(each) for each in found["rows"]], found["cursor"], found["isEnd"])


class Node(_Work):
    """A client that uses @google-cloud/datastore."""

    def __init__(
        self, process: Process, address: str, project: str, namespace: str, database: str
    ) -> None:
        super().__init__(
            process,
            {
                "address": address,
                "project": project,
                "namespace": namespace,
                "database": database,
            },
        )

    def insert(self, path: tuple[Any, ...], /, **properties: Any) -> Any:
        made = {name: node_values.encoded(value) for name, value in properties.items()}
        return _path(self.call("insert", path=path, properties=made))

    def update(self, path: tuple[Any, ...], /, **properties: Any) -> None:
        made = {name: node_values.encoded(value) for name, value in properties.items()}
        self.call("update", path=path, properties=made)

    def transform(
        self, path: tuple[Any, ...], transforms: Sequence[dict[str, Any]], /, **properties: Any
    ) -> None:
        made = {name: node_values.encoded(value) for name, value in properties.items()}
        self.call("transform", path=path, properties=made, transforms=transforms)

    def explain(self, asked: driver.Asked, *, is_run: bool) -> Any:
        """Return the number of results, and the library's metrics."""
        found = self.call("explain", asked=_asked(asked), analyze=is_run)
        return found["count"], found["metrics"]

    def aggregate(self, asked: driver.Asked, function: str, name: str = "") -> Any:
        found = self.call("aggregate", asked=_asked(asked), function=function, property=name)
        return node_values.decoded(found)

    def allocate(self, path: tuple[Any, ...], count: int) -> list[tuple[Any, ...]]:
        return [_path(each) for each in self.call("allocate", path=path, count=count)]

    def transaction(self, body: Callable[[driver.Work], Any], *, is_read_only: bool = False) -> Any:
        name = self.call("begin", readOnly=is_read_only)
        try:
            result = body(_Work(self._process, self._scope, name))
        except BaseException:
            self.call("rollback", transaction=name)
            raise
        self.call("commit", transaction=name)
        return result


def _path(given: Any) -> Any:
    return None if given is None else tuple(given)


def _row(given: dict[str, Any]) -> driver.Row:
    properties = {name: node_values.decoded(value) for name, value in given["properties"].items()}
    return driver.Row(tuple(given["path"]), properties)


def _filter(given: Any) -> dict[str, Any]:
    if isinstance(given, driver.Both):
        return {"all": [_filter(each) for each in given.filters]}
    if isinstance(given, driver.Either):
        return {"any": [_filter(each) for each in given.filters]}
    return {
        "name": given.name,
        "operator": given.operator,
        "value": node_values.encoded(given.value),
    }


def _asked(asked: driver.Asked) -> dict[str, Any]:
    return {
        "kind": asked.kind,
        "filter": None if asked.filter is None else _filter(asked.filter),
        "ancestor": asked.ancestor,
        "order": [(name.lstrip("-"), name.startswith("-")) for name in asked.order],
        "projection": asked.projection,
        "distinct": asked.distinct,
        "limit": asked.limit,
        "offset": asked.offset,
        "cursor": asked.cursor,
    }
