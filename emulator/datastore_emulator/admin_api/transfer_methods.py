"""Exports and imports of entities as long-running operations.

Owns the selection of entities to export and import. `export_folder` owns the location of the files,
and `json_lines` owns the line format.

An export contains the entities as they were when the export was requested. An import is one commit.
Exports and imports use the project's default database, because the API cannot name a different one.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from datastore_emulator import engine as engines
from datastore_emulator import errors, protobufs
from datastore_emulator.admin_api import admin_protobufs, operations
from datastore_emulator.encoding import entities, indexes, keys, values
from datastore_emulator.import_export import export_files, export_folder, json_lines
from datastore_emulator.storage import row_reader

Message = admin_protobufs.Message

_MAX_LABELS = 64
_MAX_LABEL = 63  # Maximum number of characters in a name or value.
_STEP = 500  # Number of imported entities between two checks for cancellation.


@dataclass(frozen=True, slots=True)
class _Filter:
    """Selects entities of a project's default database to transfer; an empty filter selects all."""

    project: str
    kinds: frozenset[str]
    namespaces: frozenset[str]

    def contains(self, partition: keys.Partition) -> bool:
        """Return whether a partition is selected."""
        is_of_database = (partition.project, partition.database) == (self.project, "")
        return is_of_database and (not self.namespaces or partition.namespace in self.namespaces)

    def contains_kind(self, kind: str) -> bool:
        """Return whether a kind is selected."""
        return not self.kinds or kind in self.kinds


class TransferMethods:
    """Answers the export and import methods.

    Args:
        engine: The engine whose entities are exported and imported.
        folder: The folder for exports; None disables exports and imports.
        running: The registry of the operations that run the exports and imports.
    """

    def __init__(
        self, engine: engines.Engine, folder: Path | None, running: operations.Operations
    ) -> None:
        self._engine = engine
        self._folder = export_folder.Folder(folder)
        self._operations = running

    def export(self, request: Message) -> Message:
        chosen = _filter_of(request.project_id, request.entity_filter)
        field = "output_url_prefix"
        parent = self._folder.place(request.output_url_prefix, field)
        metadata = admin_protobufs.ExportEntitiesMetadata(
            entity_filter=request.entity_filter, output_url_prefix=request.output_url_prefix
        )
        _describe(metadata, "EXPORT_ENTITIES", request.labels)
        stamp = dt.datetime.fromtimestamp(self._engine.clock(), dt.UTC).strftime("%Y-%m-%dT%H%M%S")
        name = f"{stamp}_{secrets.token_hex(4)}"
        url = f"{request.output_url_prefix.removesuffix('/')}/{name}/{name}{export_files.SUFFIX}"
        self._folder.place(url, field)  # Refuse a URL that the added names make too long.
        lent = self._engine.storage.read()  # Take the snapshot now, before the thread starts.

        def work(job: operations.Job) -> Message:
            with lent as snapshot:
                self._write_export(snapshot, chosen, self._folder.writing(parent, name), job)
            return admin_protobufs.ExportEntitiesResponse(output_url=url)

        try:
            return self._operations.start(request.project_id, metadata, work)
        except BaseException:
            with lent:
                pass
            raise

    def _write_export(
        self,
        snapshot: row_reader.RowReader,
        chosen: _Filter,
        writing: contextlib.AbstractContextManager[export_files.ExportDraft],
        job: operations.Job,
    ) -> None:
        job.estimate(entities=_count(snapshot, chosen))
        digest = export_files.Digest()
        with writing as draft:
            with draft.entities() as file:
                for lines in json_lines.pieces(snapshot, chosen):
                    file.write(lines)
                    job.advance(entities=digest.add(lines), size=len(lines))
            read_time = dt.datetime.fromtimestamp(snapshot.version / 1_000_000, dt.UTC)
            contents = export_files.Contents(
                project=chosen.project,
                kinds=tuple(sorted(chosen.kinds)),
                namespaces=tuple(sorted(chosen.namespaces)),
                read_time=read_time.isoformat(),
                entities=digest.entities,
                bytes=digest.bytes,
                sha256=digest.sha256,
            )
            draft.describe(contents)
        self._engine.meter.count(reads=digest.entities)

    def load(self, request: Message) -> Message:
        chosen = _filter_of(request.project_id, request.entity_filter)
        export = self._folder.find(request.input_url, "input_url")
        _check_subset("kinds", chosen.kinds, export.contents.kinds)
        _check_subset("namespace_ids", chosen.namespaces, export.contents.namespaces)
        metadata = admin_protobufs.ImportEntitiesMetadata(
            entity_filter=request.entity_filter, input_url=request.input_url
        )
        _describe(metadata, "IMPORT_ENTITIES", request.labels)

        def work(job: operations.Job) -> Message:
            job.estimate(entities=export.contents.entities, size=export.contents.bytes)
            with _open(export, request.input_url) as file:
                stored = json_lines.load(
                    self._engine.storage,
                    _checked_lines(json_lines.read_lines(file), export.contents, job),
                    source=request.input_url,
                    adapt=_Adapter(chosen, export.contents.project).adapt,
                )
            self._engine.meter.count(writes=stored)
            return admin_protobufs.Empty()

        return self._operations.start(request.project_id, metadata, work)


def _filter_of(project: str, given: Message) -> _Filter:
    """Return the filter of an export or import request."""
    entities.request_partition(project, "")
    for kind in given.kinds:
        entities.check_kind(kind, "entity_filter.kinds")
    for namespace in given.namespace_ids:
        entities.checked_partition(project, "", namespace)
    for field in ("kinds", "namespace_ids"):
        listed = list(getattr(given, field))
        if len(set(listed)) < len(listed):
            raise errors.InvalidArgument(f"entity_filter.{field} contains a duplicate.")
    return _Filter(project, frozenset(given.kinds), frozenset(given.namespace_ids))


def _check_subset(field: str, wanted: frozenset[str], exported: tuple[str, ...]) -> None:
    missing = sorted(wanted - set(exported)) if exported else []
    if missing:
        raise errors.FailedPrecondition(
            f"entity_filter.{field}: the export does not contain {missing[0]!r}."
        )


def _describe(metadata: Message, kind: str, labels: dict[str, str]) -> None:
    if len(labels) > _MAX_LABELS or any(
        len(text) > _MAX_LABEL for pair in labels.items() for text in pair
    ):
        raise errors.InvalidArgument(
            f"labels: at most {_MAX_LABELS} are allowed, with up to {_MAX_LABEL} characters in a "
            "name or value."
        )
    metadata.common.operation_type = admin_protobufs.operation_type(kind)
    for name, text in labels.items():
        metadata.common.labels[name] = text


def _count(snapshot: row_reader.RowReader, chosen: _Filter) -> int:
    """Count the entities that a filter selects, without reading them."""
    total = 0
    for partition in filter(chosen.contains, snapshot.partitions()):
        low = partition.encoded
        if not chosen.kinds:
            total += snapshot.count((low, None), low, low + keys.ABOVE, None)
        for kind in chosen.kinds:
            name = (low, indexes.builtin(kind).code)
            total += snapshot.count(name, b"", values.ABOVE, None)
    return total


@contextlib.contextmanager
def _open(export: export_folder.Export, url: str) -> Iterator[json_lines.Lines]:
    try:
        with export_files.reading(export.entities) as file:
            yield file
    except FileNotFoundError:
        raise errors.FailedPrecondition(f"{url}: {export.entities.name} is missing.") from None
    except OSError as error:
        raise errors.Unavailable(f"{url}: {export.entities.name}: {error.strerror}") from error


def _checked_lines(
    lines: Iterator[bytes], contents: export_files.Contents, job: operations.Job
) -> Iterator[bytes]:
    """Yield the lines of an export; raise after the last line if they do not match the metadata."""
    digest = export_files.Digest()
    reported = 0
    for line in lines:
        digest.add(line)
        if digest.entities % _STEP == 0:
            job.advance(entities=_STEP, size=digest.bytes - reported)
            reported = digest.bytes
        yield line
    job.advance(entities=digest.entities % _STEP, size=digest.bytes - reported)
    actual = (digest.entities, digest.bytes, digest.sha256)
    if actual != (contents.entities, contents.bytes, contents.sha256):
        raise errors.FailedPrecondition(
            "The export is damaged: its entities do not match its metadata. Nothing was imported."
        )


class _Adapter:
    """Filters entities and moves their keys from the exported project to the importing project.

    Keys in property values move too; otherwise they would refer to entities in the exported
    project.
    """

    def __init__(self, chosen: _Filter, exported: str) -> None:
        self._chosen = chosen
        self._exported = exported

    def adapt(self, entity: protobufs.Entity) -> bool:
        """Move an entity's keys; return whether the filter selects the entity."""
        named = entity.key.partition_id
        if named.project_id != self._exported:
            raise errors.InvalidArgument("The entity does not belong to the exported project.")
        if self._exported != self._chosen.project:
            self._move(entity)
        partition = keys.Partition(named.project_id, named.database_id, named.namespace_id)
        kind = entity.key.path[-1].kind if entity.key.path else ""
        return self._chosen.contains(partition) and self._chosen.contains_kind(kind)

    def _move(self, entity: protobufs.Entity) -> None:
        self._move_key(entity.key)
        for value in entity.properties.values():
            self._move_value(value)

    def _move_value(self, value: protobufs.Value) -> None:
        match value.WhichOneof("value_type"):
            case "key_value":
                self._move_key(value.key_value)
            case "entity_value":
                self._move(value.entity_value)
            case "array_value":
                for element in value.array_value.values:
                    self._move_value(element)

    def _move_key(self, key: protobufs.Key) -> None:
        if key.partition_id.project_id == self._exported:
            key.partition_id.project_id = self._chosen.project
