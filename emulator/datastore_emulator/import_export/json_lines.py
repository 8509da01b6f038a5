"""Entities as lines of JSON, for moving them between engines or inspecting them.

Owns the line format: an EntityResult in proto3's JSON mapping. Values of every type survive a round
trip, and the key contains project, database and namespace.

    {"createTime": "...", "entity": {"key": {...}, "properties": {...}}, "updateTime": "...",
     "version": "1735786984000000"}

A line may also contain a bare entity, {"key": ..., "properties": ...}. The times and the version
are only informative. An import is a new write under the same rules as every write, and the imported
entities get the commit time of the import. (A backup keeps the times.)

An import is one commit, unless the caller requests batches. The error for an invalid line names the
file and the line number. Exports and imports keep at most one page of entities in memory.

Google's managed exports are not supported: they are LevelDB logs in the entity format of the
retired Datastore service.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from google.protobuf import json_format

from datastore_emulator import errors, protobufs
from datastore_emulator.encoding import entities, keys
from datastore_emulator.import_export import bulk_load
from datastore_emulator.storage import file_store, row_reader, row_writer

MAX_LINE = 32 * 1024 * 1024  # Bytes; 1 MiB of zero bytes takes 6 MiB as JSON.
_PAGE = 2000  # Maximum number of entities in memory.
_PAGE_BYTES = 8 * 1024 * 1024  # A page is full when its lines reach this size.
_SPOOLED = 16 * 1024 * 1024  # Maximum size of source data in memory.
_PART = 64 * 1024  # Minimum size of a piece of an export, in bytes.


@dataclass(frozen=True, slots=True)
class Selection:
    """The entities to export; None selects all."""

    project: str | None = None
    database: str | None = None
    namespace: str | None = None
    kind: str | None = None

    def contains(self, partition: keys.Partition) -> bool:
        """Return whether a partition is selected."""
        return (
            self.project in (None, partition.project)
            and self.database in (None, partition.database)
            and self.namespace in (None, partition.namespace)
        )

    def contains_kind(self, kind: str) -> bool:
        """Return whether a kind is selected."""
        return self.kind in (None, kind)


class Selected(Protocol):
    """Decides which entities an export contains."""

    def contains(self, partition: keys.Partition) -> bool:
        """Return whether a partition is selected."""

    def contains_kind(self, kind: str) -> bool:
        """Return whether a kind is selected."""


# A binary file that an import reads.
Lines = Any

# A function that may change a parsed entity, and returns whether to write the entity.
Adapt = Callable[[protobufs.Entity], bool]


def export(store: file_store.FileStore, selection: Selection) -> Iterator[bytes]:
    """Yield the lines of all selected entities in one snapshot, in pieces, in key order."""
    with store.read() as snapshot:
        yield from pieces(snapshot, selection)


def pieces(snapshot: row_reader.RowReader, selection: Selected) -> Iterator[bytes]:
    """Yield the lines of a snapshot's selected entities, in pieces, in key order."""
    piece: list[bytes] = []
    size = 0
    for line in _lines(snapshot, selection):
        piece.append(line)
        size += len(line)
        if size >= _PART:
            yield b"".join(piece)
            piece.clear()
            size = 0
    if piece:
        yield b"".join(piece)


def _lines(snapshot: row_reader.RowReader, selection: Selected) -> Iterator[bytes]:
    for partition in snapshot.partitions():
        if not selection.contains(partition):
            continue
        low = partition.encoded
        rows = snapshot.scan((low, None), low, low + keys.ABOVE, with_entities=True)
        for key, _, _, proto, meta, _ in rows:
            if selection.contains_kind(keys.kind_of(key[len(low) :])):
                yield _line((proto or b""), (meta or b""))


def _line(proto: bytes, meta: bytes) -> bytes:
    result = protobufs.EntityResult.FromString(protobufs.field(1, proto) + meta)
    shown = json_format.MessageToDict(result)  # type: ignore[arg-type]  # it is a message
    text = json.dumps(shown, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return text.encode() + b"\n"


def load(
    store: file_store.FileStore,
    lines: Iterable[bytes],
    *,
    source: str,
    batch: int | None = None,
    adapt: Adapt | None = None,
) -> int:
    """Import entities from lines, overwriting existing ones; return their number.

    Args:
        store: The data file to write to; other writers wait until the import ends.
        lines: Lines in the format of `export`.
        source: The name of the source, for errors.
        batch: Entities per commit. None imports all entities in one commit, so nothing is stored
            after an error.
        adapt: A function that is called with each entity; if it returns False, the entity is
            skipped.

    Raises:
        errors.InvalidArgument: A line is invalid. The message contains the number of entities that
            earlier batches stored.
    """
    numbered = enumerate(lines, start=1)
    stored = 0
    while True:
        try:
            with store.write() as writer:
                written = _write(writer, numbered, source, batch, adapt)
        except errors.InvalidArgument as error:
            if stored:
                error.message += f" ({stored} entities of earlier batches are stored.)"
                error.args = (error.message,)
            raise
        stored += written
        if batch is None or written < batch:
            return stored


def _write(
    writer: row_writer.RowWriter,
    numbered: Iterator[tuple[int, bytes]],
    source: str,
    most: int | None,
    adapt: Adapt | None,
) -> int:
    written = 0
    while page := _page(
        numbered, source, _PAGE if most is None else min(_PAGE, most - written), adapt
    ):
        bulk_load.put(writer, page)
        writer.flush()
        written += len(page)
    return written


def _page(
    numbered: Iterator[tuple[int, bytes]], source: str, most: int, adapt: Adapt | None
) -> list[bulk_load.Checked]:
    page: list[bulk_load.Checked] = []
    size = 0
    while len(page) < most and size < _PAGE_BYTES:
        number, line = next(numbered, (0, b""))
        if not number:
            break
        if not line.strip():
            continue
        try:
            entity = _parse(line)
            if adapt is None or adapt(entity):
                page.append(_check(entity))
        except errors.InvalidArgument as error:
            raise errors.InvalidArgument(f"{source}:{number}: {error.message}") from error
        size += len(line)
    return page


def _check(given: protobufs.Entity) -> bulk_load.Checked:
    named = given.key.partition_id
    default = entities.request_partition(named.project_id, named.database_id)
    partition = entities.check_written_key(given.key, default, may_be_incomplete=False)
    return partition, entities.normalize(given, partition, default)


def _parse(line: bytes) -> protobufs.Entity:
    if len(line) > MAX_LINE:
        raise errors.InvalidArgument(f"The line is longer than {MAX_LINE} bytes.")
    try:
        shown = json.loads(line, object_pairs_hook=_object)
        result = protobufs.EntityResult()
        if isinstance(shown, dict) and "entity" not in shown:
            shown = {"entity": shown}
        json_format.ParseDict(shown, result)  # type: ignore[type-var]  # it is a message
    except (ValueError, TypeError, AttributeError, RecursionError, json_format.ParseError) as error:
        raise errors.InvalidArgument(f"The line is not an entity: {error}") from error
    return result.entity


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("an object contains a name twice")
    return made


def read_lines(source: Any) -> Iterator[bytes]:
    """Yield the lines of a binary file.

    A line that is too long is cut just above the limit, and later refused.
    """
    while line := source.readline(MAX_LINE + 1):
        yield line


@contextlib.contextmanager
def spooling(source: Any) -> Iterator[Any]:
    """Read all data of a slow source before the import, and keep it on disk if it is large.

    An import holds the write lock, so it must not wait for a client that is still sending data.
    """
    with tempfile.SpooledTemporaryFile(_SPOOLED) as file:
        shutil.copyfileobj(source, file)
        file.seek(0)
        yield file


def source_name(path: str | os.PathLike[str]) -> str:
    """Return the name that errors use for a source."""
    return "standard input" if os.fspath(path) == "-" else os.fspath(path)
