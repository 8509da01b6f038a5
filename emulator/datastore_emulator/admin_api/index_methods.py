"""The admin methods for composite indexes: list, get, create and delete.

Owns index ids and index messages, and decides when clients may change indexes. Indexes belong to
the data file, so all projects and databases share them. An index is READY or does not exist,
because the commit that defines an index also fills it. If an index.yaml defines the indexes, they
can be removed only from that file.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable

from datastore_emulator import engine as engines
from datastore_emulator import errors
from datastore_emulator.admin_api import admin_protobufs, list_filters, operations
from datastore_emulator.encoding import entities, index_yaml, indexes

Message = admin_protobufs.Message

_MAX_PROPERTIES = 100
_FIELDS = ("kind", "index_id", "state", "ancestor")
_READY, _ASCENDING, _DESCENDING, _NO_ANCESTORS, _ALL_ANCESTORS = 2, 1, 2, 1, 2


class IndexMethods:
    """Answers the index methods.

    Args:
        engine: The engine whose indexes are managed.
        running: The registry of the operations that build the indexes.
    """

    def __init__(self, engine: engines.Engine, running: operations.Operations) -> None:
        self._engine = engine
        self._operations = running

    def list_all(self, request: Message) -> Message:
        entities.request_partition(request.project_id, "")
        wanted = list_filters.parse(request.filter, _FIELDS)
        matches = [
            made
            for index in self._composites()
            if list_filters.matches(
                wanted, _fields_of(made := _message_of(request.project_id, index))
            )
        ]
        response = admin_protobufs.ListIndexesResponse()
        page, response.next_page_token = list_filters.page(
            matches,
            lambda made: str(made.index_id),
            size=request.page_size,
            token=request.page_token,
        )
        response.indexes.extend(page)
        return response

    def get(self, request: Message) -> Message:
        entities.request_partition(request.project_id, "")
        return _message_of(request.project_id, self._find(request.index_id))

    def _composites(self) -> tuple[indexes.Index, ...]:
        with self._engine.storage.read() as snapshot:
            return tuple(snapshot.definitions.composites)

    def _find(self, index_id: str) -> indexes.Index:
        for index in self._composites():
            if _id_of(index) == index_id:
                return index
        raise errors.NotFound(f"The index {index_id[:100]!r} does not exist.")

    def create(self, request: Message) -> Message:
        """Answer CreateIndex with the operation that fills the index."""
        entities.request_partition(request.project_id, "")
        index = _index_of(request.index)
        if index in self._composites():
            raise errors.AlreadyExists(f"The index already exists: {_id_of(index)}")
        defines = self._engine.auto_indexes
        if defines is None:
            raise errors.FailedPrecondition(
                "With --strict-indexes, only index.yaml defines indexes. Add this entry to it and "
                f"restart the emulator:\n{index_yaml.entry(index)}"
            )

        def work(_job: operations.Job) -> Message:
            defines.define(self._engine.storage, (index,))
            return _message_of(request.project_id, index)

        return self._start_index(request.project_id, "CREATE_INDEX", index, work)

    def delete(self, request: Message) -> Message:
        """Answer DeleteIndex with the operation that drops the index."""
        entities.request_partition(request.project_id, "")
        index = self._find(request.index_id)
        defines = self._engine.auto_indexes
        if defines is None or defines.has_file:
            raise errors.FailedPrecondition(
                "index.yaml defines the indexes. Remove this entry from it and restart the "
                f"emulator:\n{index_yaml.entry(index)}"
            )

        def work(_job: operations.Job) -> Message:
            with self._engine.storage.write() as writer:
                writer.define(other for other in writer.definitions.composites if other != index)
            return _message_of(request.project_id, index)

        return self._start_index(request.project_id, "DELETE_INDEX", index, work)

    def _start_index(
        self, project: str, kind: str, index: indexes.Index, work: operations.Work
    ) -> Message:
        metadata = admin_protobufs.IndexOperationMetadata(index_id=_id_of(index))
        metadata.common.operation_type = admin_protobufs.operation_type(kind)
        return self._operations.start(project, metadata, work)


def _id_of(index: indexes.Index) -> str:
    """Return the id of an index, which depends only on its definition."""
    return base64.urlsafe_b64encode(hashlib.blake2b(index.code, digest_size=12).digest()).decode()


def _message_of(project: str, index: indexes.Index) -> Message:
    made = admin_protobufs.Index(
        project_id=project,
        index_id=_id_of(index),
        kind=index.kind,
        ancestor=_ALL_ANCESTORS if index.has_ancestor else _NO_ANCESTORS,
        state=_READY,
    )
    key = ((indexes.KEY, True),) if index.is_key_descending else ()
    for name, is_descending in (*index.properties, *key):
        made.properties.add(name=name, direction=_DESCENDING if is_descending else _ASCENDING)
    return made


def _fields_of(made: Message) -> Callable[[str], str]:
    """Return a function that reads the fields in _FIELDS by name."""

    def field(name: str) -> str:
        kind = made.DESCRIPTOR.fields_by_name[name].enum_type
        value = getattr(made, name)
        return str(value if kind is None else kind.values_by_number[value].name)

    return field


def _index_of(given: Message) -> indexes.Index:
    """Return the composite index that a message defines."""
    entities.check_kind(given.kind, "index.kind")
    if given.ancestor not in (_NO_ANCESTORS, _ALL_ANCESTORS):
        raise errors.InvalidArgument("index.ancestor must be NONE or ALL_ANCESTORS.")
    if not 1 <= len(given.properties) <= _MAX_PROPERTIES:
        raise errors.InvalidArgument(f"index.properties must have 1 to {_MAX_PROPERTIES} items.")
    properties = []
    for part in given.properties:
        if part.direction not in (_ASCENDING, _DESCENDING):
            raise errors.InvalidArgument(
                "index.properties.direction must be ASCENDING or DESCENDING."
            )
        if part.name != indexes.KEY:
            entities.check_property_name(part.name)
        properties.append((part.name, part.direction == _DESCENDING))
    names = [name for name, _ in properties]
    if len(set(names)) < len(names) or indexes.KEY in names[:-1]:
        raise errors.InvalidArgument(
            "index.properties may name each property only once, and __key__ only as the last one."
        )
    is_key_descending = properties[-1] == (indexes.KEY, True)
    index = indexes.Index(
        given.kind,
        tuple(column for column in properties if column[0] != indexes.KEY),
        given.ancestor == _ALL_ANCESTORS,
        is_key_descending,
    )
    if index.is_builtin:
        raise errors.InvalidArgument("Single property indexes cannot be created or deleted.")
    return index
