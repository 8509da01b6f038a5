"""A writer whose commits can all be verified later, and the code that verifies them.

Owns the workload of the crash tests. A worker counts its commits in the store itself, and its data
after n commits is a function of n: two rings of entities from which old entities are deleted, slots
that are overwritten, and a growing log with automatic ids. Therefore the check finds every partial,
lost or duplicate commit, regardless of when the process died.

As a program, it writes to a data file forever and prints each acknowledgment. Each line contains
the worker, the number of the commit, and the allocated ids:

    python -m emulator.tests.support.ledger_writer FILE WORKER
"""

import functools
import sqlite3
import sys
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc

from datastore_emulator import inprocess, protobufs
from datastore_emulator.encoding import indexes, keys
from datastore_emulator.fault_injection import fault_plans
from datastore_emulator.storage import row_reader

say = functools.partial(print, flush=True)

RING = 7  # Number of entities kept in a ring
SLOTS = 5
PROJECT = "test"
INDEXES = """
indexes:
- kind: Left
  properties:
  - name: worker
  - name: n
    direction: desc
"""


@dataclass
class Acknowledged:
    """The acknowledgments to a worker."""

    commits: int = 0
    ids: list[int] = field(default_factory=list)

    def add(self, line: str) -> None:
        _, commit, *ids = line.split()
        self.commits = int(commit)
        self.ids += map(int, ids)


class Worker:
    """Writes data under its own name, through a channel."""

    def __init__(self, channel: grpc.Channel, name: str) -> None:
        self.name = name
        self._channel = channel

    def call(self, method: str, **fields: Any) -> Any:
        request = protobufs.REQUESTS[method](project_id=PROJECT, **fields)
        rpc = self._channel.unary_unary(
            f"/google.datastore.v1.Datastore/{method}",
            request_serializer=type(request).SerializeToString,
            response_deserializer=getattr(protobufs, f"{method}Response").FromString,
        )
        return rpc(request, timeout=60)

    def step(self) -> str:
        """Commit once and allocate ids; return the line to print."""
        number, given = self.commit()
        given += self.allocate(2)
        return " ".join(map(str, [self.name, number, *given]))

    def commit(self) -> tuple[int, list[int]]:
        """Commit once; return the number of the commit and the allocated ids."""
        begun = self.call("BeginTransaction").transaction
        number = self.count(transaction=begun) + 1
        answer = self.call(
            "Commit", mode=1, transaction=begun, mutations=list(self._mutations(number))
        )
        return number, [each.key.path[-1].id for each in answer.mutation_results if each.key.path]

    def allocate(self, wanted: int) -> list[int]:
        """Allocate and return new ids."""
        answer = self.call("AllocateIds", keys=[key("Log")] * wanted)
        return [each.path[-1].id for each in answer.keys]

    def count(self, **options: Any) -> int:
        """Return the number of this worker's commits, as the store counts them."""
        answer = self.call("Lookup", keys=[key("Counter", self.name)], read_options=options)
        return answer.found[0].entity.properties["n"].integer_value if answer.found else 0

    def _mutations(self, number: int) -> Iterator[Any]:
        yield {"upsert": self.entity(key("Counter", self.name), number)}
        for ring in ("Left", "Right"):
            yield {"insert": self.entity(self._numbered(ring, number), number)}
            if number > RING:
                yield {"delete": self._numbered(ring, number - RING)}
        yield {"upsert": self.entity(self._numbered("Slot", number % SLOTS), number)}
        yield {"insert": self.entity(key("Log"), number)}

    def _numbered(self, kind: str, number: int) -> Any:
        return key(kind, f"{self.name}{number:06}")

    def entity(self, of: Any, number: int) -> Any:
        entity = protobufs.Entity(key=of)
        entity.properties["n"].integer_value = number
        entity.properties["worker"].string_value = self.name
        tags = entity.properties["tags"].array_value.values
        tags.add().string_value = "all"
        tags.add().string_value = str(number % 3)
        text = entity.properties["text"]
        text.string_value = f"{number:03}" * (number % 400)
        text.exclude_from_indexes = True
        return entity

    def expected(self, number: int) -> dict[str, list[int]]:
        """Return the numbers that each kind's entities must have after a number of commits."""
        ring = list(range(max(1, number - RING + 1), number + 1))
        slots = list(range(max(1, number - SLOTS + 1), number + 1))
        log = list(range(1, number + 1))
        return {"Left": ring, "Right": ring, "Slot": slots, "Log": log}

    def found(self, kind: str, *, order: str = "") -> list[Any]:
        """Return a kind's entities, read through the index for an order."""
        query = protobufs.Query()
        query.kind.add(name=kind)
        mine = query.filter.property_filter
        mine.property.name, mine.op, mine.value.string_value = "worker", 5, self.name
        if order:
            query.order.add(property={"name": order}, direction=2)
        entities: list[Any] = []
        while True:
            batch = self.call("RunQuery", partition_id={"project_id": PROJECT}, query=query).batch
            entities += [each.entity for each in batch.entity_results]
            if batch.more_results != 1:
                return entities
            query.start_cursor = batch.end_cursor

    def check(self, acknowledged: Acknowledged) -> int:
        """Check that exactly a prefix of the commits is stored; return the prefix's length."""
        count = self.count()
        assert count >= acknowledged.commits, f"{self.name}: {acknowledged.commits} lost: {count}"
        for kind, numbers in self.expected(count).items():
            entities = self.found(kind)
            assert sorted(map(number_of, entities)) == numbers, (self.name, count, kind)
            for entity in entities:
                assert entity == self.entity(entity.key, number_of(entity)), entity.key
        ordered = [number_of(each) for each in self.found("Left", order="n")]
        assert ordered == self.expected(count)["Left"][::-1]
        return count


def number_of(entity: Any) -> int:
    return entity.properties["n"].integer_value


def key(kind: str, name: str = "") -> Any:
    made = protobufs.Key()
    made.partition_id.project_id = PROJECT
    made.path.add(kind=kind)
    if name:
        made.path[0].name = name
    return made


def open_engine(path: Path) -> inprocess.Engine:
    """Open a data file with the indexes that the check needs."""
    index_yaml = path.with_name("index.yaml")
    if not index_yaml.exists():
        index_yaml.write_text(INDEXES)
    return inprocess.open_engine(path, indexes=index_yaml)


def worker(engine: inprocess.Engine, name: str) -> Worker:
    return Worker(inprocess.Channel(engine), name)


def assert_file_matches(path: Path, acknowledged: dict[str, Acknowledged]) -> dict[str, int]:
    """Open a data file after a crash and check all its data; return each worker's commits."""
    with open_engine(path) as engine:
        assert engine.storage.lost is None, "commits are reported as lost"
        workers = [Worker(inprocess.Channel(engine), name) for name in acknowledged]
        counts = {each.name: each.check(acknowledged[each.name]) for each in workers}
        given = [number for each in acknowledged.values() for number in each.ids]
        for worker in workers:
            given += worker.allocate(3)
        assert len(set(given)) == len(given), "an id was handed out twice"
    assert index_faults(path) == []
    return counts


def index_faults(path: Path | str) -> list[str]:
    """Compare the file's index rows with the rows that its entities should have."""
    connection = sqlite3.connect(path)
    try:
        ask = lambda text: connection.execute(text).fetchall()  # noqa: E731 - used four times below
        damage = [line for (line,) in ask("PRAGMA integrity_check") if line != "ok"]
        composites = [indexes.decode(code) for (code,) in ask("SELECT code FROM composites")]
        built_ins = _maintained_built_ins(connection)
        wanted = set()
        for entity_id, encoded, proto in ask("SELECT id, key, proto FROM entities"):
            wanted |= {
                each
                for each in _entries(entity_id, encoded, proto, composites)
                if not _is_property_index(each[1]) or each[1] in built_ins
            }
        stored = set(
            ask(
                "SELECT partition, code, entry, entity_id, is_multiple FROM index_entries "
                "JOIN indexes ON indexes.id = index_id"
            )
        )
        rows_in_all = ask("SELECT count(*) FROM index_entries")[0][0]
    finally:
        connection.close()
    damage += [f"missing: {each}" for each in wanted - stored]
    damage += [f"left over: {each}" for each in stored - wanted]
    return damage + (["rows of no index"] if rows_in_all != len(stored) else [])


def _maintained_built_ins(connection: sqlite3.Connection) -> Container[bytes]:
    """Return the built-in indexes that the file must contain; each must be complete."""
    if connection.execute("SELECT is_eager FROM engine_state").fetchone()[0]:
        return indexes.EVERY
    found = connection.execute("SELECT code, filled_to FROM built_ins").fetchall()
    return {code for code, filled_to in found if filled_to is None}


def _is_property_index(code: bytes) -> bool:
    index = indexes.decode(code)
    return index.is_builtin and bool(index.properties)


def _entries(
    entity_id: int, encoded: bytes, proto: bytes, composites: list[indexes.Index]
) -> Iterator[tuple[bytes, bytes, bytes, int, int]]:
    partition, path = keys.decode(encoded)
    entity = row_reader.parse(proto)
    kind = entity.key.path[-1].kind
    mine = [index for index in composites if index.kind == kind]
    for code, entries in indexes.membership(entity, partition, path, mine).items():
        for entry in entries:
            yield partition.encoded, code, entry, entity_id, int(len(entries) > 1)


def main() -> None:
    path, name, *plan = sys.argv[1:]
    engine = inprocess.open_engine(path)
    if plan:
        engine.install_faults(fault_plans.Plan.parse(plan[0]))
    own = worker(engine, name)
    say("opened")
    while True:
        say(own.step())


if __name__ == "__main__":
    main()
