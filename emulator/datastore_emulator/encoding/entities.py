"""Keys and entities: check them and convert them to their stored form.

Owns the limits of keys and entities. Pure. Sizes follow Datastore's storage size rules: a string
counts as its bytes plus 1, a number as 8, a key as 16 plus its path, and an entity as 32 plus its
key and properties.
"""

from __future__ import annotations

import functools
import re

from google.protobuf import message

from datastore_emulator import errors, protobufs
from datastore_emulator.encoding import keys

MAX_PATH = 100
MAX_NAME_BYTES = 1500
MAX_KEY_BYTES = 6 * 1024
MAX_ENTITY_BYTES = 1_048_572
MAX_UNINDEXED_BYTES = 1_048_487
MAX_INDEXED_BYTES = 1500
MAX_NESTING = 20
_ID_BYTES = 8  # Size of an id in a path.
_SURELY_PARSED = 15  # Depth of nesting; with each entity in an array, it makes 75 nested messages.

_DIMENSION = re.compile(r"[A-Za-z0-9.\-_]{1,100}")
_PROJECT = re.compile(r"[A-Za-z0-9.\-_:]{1,100}")  # Domain-scoped ids look like "example.com:name"
_RESERVED = re.compile(r"__.*__", re.DOTALL)


def request_partition(project: str, database: str) -> keys.Partition:
    """Return a request's default partition."""
    if not project:
        raise errors.InvalidArgument("The request names no project_id.")
    return checked_partition(project, database, "")


@functools.lru_cache(maxsize=64)
def checked_partition(project: str, database: str, namespace: str) -> keys.Partition:
    """Return a partition after checking its parts.

    Results are cached, because most requests name the same partition.
    """
    partition = keys.Partition(project, database, namespace)
    check_partition(partition)
    return partition


def check_partition(partition: keys.Partition) -> None:
    """Refuse a partition whose parts are not valid ids."""
    if partition.database == "(default)":
        raise errors.InvalidArgument('"(default)" is not allowed; leave database_id empty.')
    if not _PROJECT.fullmatch(partition.project):
        raise errors.InvalidArgument(f'"{partition.project}" is not a project id.')
    for text in (partition.database, partition.namespace):
        if text and not _DIMENSION.fullmatch(text):
            raise errors.InvalidArgument(f'"{text}" is not a database or namespace id.')


def check_key(
    key: protobufs.Key, default: keys.Partition, *, may_be_incomplete: bool = False
) -> keys.Partition:
    """Check a key that a request reads or writes, and return its partition."""
    partition = keys.partition_of(key, default)
    if partition is not default:
        check_partition(partition)
    if not 1 <= len(key.path) <= MAX_PATH:
        raise errors.InvalidArgument(f"A key path must have 1 to {MAX_PATH} elements.")
    size = 0
    for element in key.path[:-1]:
        size += _checked_size(key, element, may_be_incomplete=False)
    size += _checked_size(key, key.path[-1], may_be_incomplete=may_be_incomplete)
    if size > MAX_KEY_BYTES:
        raise errors.InvalidArgument(f"The key is longer than {MAX_KEY_BYTES} bytes.")
    return partition


def _checked_size(
    key: protobufs.Key, element: protobufs.PathElement, *, may_be_incomplete: bool
) -> int:
    """Check an element of a key's path and return its size in bytes."""
    size = _checked_length("kind", element.kind) + 1
    which = element.WhichOneof("id_type")
    if which == "name":
        return size + _checked_length("name", element.name) + 1
    if which is None:
        if not may_be_incomplete:
            raise errors.InvalidArgument(f"Key path is incomplete: {key_text(key)}")
    elif element.id == 0:
        raise errors.InvalidArgument("The id of a key path element must not be 0.")
    return size + _ID_BYTES


def _checked_length(what: str, text: str) -> int:
    size = len(text.encode())
    if not 1 <= size <= MAX_NAME_BYTES:
        raise errors.InvalidArgument(
            f"A key path element's {what} must be 1 to {MAX_NAME_BYTES} bytes long."
        )
    return size


def key_text(key: protobufs.Key) -> str:
    """Format a key for error messages."""
    parts = []
    for element in key.path:
        which = element.WhichOneof("id_type")
        name = f'"{element.name}"' if which == "name" else str(element.id) if which else "null"
        parts.append(f"{element.kind}: {name}")
    return f"[{', '.join(parts)}]"


def entity_text(key: protobufs.Key, partition: keys.Partition) -> str:
    """Format an entity's key as Datastore does in its error messages."""
    elements = []
    for element in key.path:
        which = element.WhichOneof("id_type")
        name = f'name: "{element.name}"' if which == "name" else f"id: {element.id}"
        elements.append(f'Element {{ type: "{element.kind}" {name} }}')
    return f'app: "dev~{partition.project}" path < {" ".join(elements)} >'


def check_written_key(
    key: protobufs.Key, default: keys.Partition, *, may_be_incomplete: bool
) -> keys.Partition:
    """Check the key of a mutation: reserved names are read-only."""
    partition = check_key(key, default, may_be_incomplete=may_be_incomplete)
    refuse_reserved(reserved_name(key, partition))
    return partition


def reserved_name(key: protobufs.Key, partition: keys.Partition) -> str:
    """Return the first reserved name in a key, or an empty text if no name is reserved."""
    names = [partition.namespace]
    for element in key.path:
        names += (element.kind, element.name)
    return next(filter(is_reserved, names), "")


def refuse_reserved(name: str) -> None:
    """Raise an error if `name`, the reserved name in a written key, is not empty."""
    if name:
        raise errors.InvalidArgument(f'The name "{name}" is reserved.')


def normalize(
    entity: protobufs.Entity, partition: keys.Partition, default: keys.Partition
) -> protobufs.Entity:
    """Return a checked copy of an entity in its stored form."""
    stored = protobufs.Entity()
    stored.CopyFrom(entity)
    fill_partition(stored.key, partition)
    check = _Check(default)
    size = 32 + key_size(stored.key) + check.properties(stored, depth=1, is_indexed=True)
    if size > MAX_ENTITY_BYTES:
        raise errors.InvalidArgument(
            f"entity is too big: {size} bytes, the limit is {MAX_ENTITY_BYTES}"
        )
    if check.unindexed_bytes > MAX_UNINDEXED_BYTES:
        raise errors.InvalidArgument(
            f"The values of the unindexed properties are longer than {MAX_UNINDEXED_BYTES} bytes."
        )
    if check.deepest > _SURELY_PARSED:
        _check_can_be_answered(stored)
    return stored


def _check_can_be_answered(entity: protobufs.Entity) -> None:
    """Refuse an entity with more than 100 nested messages, which protobuf cannot parse again."""
    result = protobufs.field(2, protobufs.field(1, entity.SerializeToString()))
    try:
        protobufs.RunQueryResponse.FromString(protobufs.field(1, result))
    except message.DecodeError:
        raise errors.InvalidArgument("The entity nests arrays and entities too deeply.") from None


def normalize_value(name: str, value: protobufs.Value, default: keys.Partition) -> None:
    """Check a single value and convert it to its stored form."""
    _Check(default).value(name, value, depth=1, is_indexed=False)


def is_reserved(name: str) -> bool:
    """Return whether Datastore reserves a kind, name, namespace or property name."""
    return name.startswith("__") and _RESERVED.fullmatch(name) is not None


def check_kind(kind: str, field: str) -> None:
    """Refuse a text that is not a valid kind; `field` names the request's field in the error."""
    if not 1 <= len(kind.encode()) <= MAX_NAME_BYTES or is_reserved(kind):
        raise errors.InvalidArgument(f'{field}: "{kind[:100]}" is not the name of a kind.')


def check_property_name(name: str) -> int:
    """Check a property name or aggregation alias; return its size in bytes."""
    raw = len(name.encode())
    if not 1 <= raw <= MAX_NAME_BYTES:
        raise errors.InvalidArgument(f"A property name must be 1 to {MAX_NAME_BYTES} bytes long.")
    if is_reserved(name):
        raise errors.InvalidArgument(f'The property name "{name}" is reserved.')
    return raw


def fill_partition(key: protobufs.Key, partition: keys.Partition) -> None:
    """Set all parts of a key's partition."""
    key.partition_id.project_id = partition.project
    key.partition_id.database_id = partition.database
    key.partition_id.namespace_id = partition.namespace


class _Check:
    """Checks the values of one entity and truncates its timestamps to microseconds."""

    def __init__(self, default: keys.Partition) -> None:
        self._default = default
        self.unindexed_bytes = 0
        self.deepest = 0

    def properties(self, entity: protobufs.Entity, *, depth: int, is_indexed: bool) -> int:
        size = 0
        for name, value in entity.properties.items():
            raw = check_property_name(name)
            size += raw + 1 + self.value(name, value, depth=depth, is_indexed=is_indexed)
        return size

    def value(self, name: str, value: protobufs.Value, *, depth: int, is_indexed: bool) -> int:
        is_indexed = is_indexed and not value.exclude_from_indexes
        kind = value.WhichOneof("value_type")
        if kind == "string_value":
            size = len(value.string_value.encode())
            self._check_text(name, value, size, is_indexed=is_indexed)
            return size + 1
        if kind == "blob_value":
            size = len(value.blob_value)
            self._check_text(name, value, size, is_indexed=is_indexed)
            return size
        if kind == "array_value":
            return self._array(name, value, depth=depth, is_indexed=is_indexed)
        if kind == "entity_value":
            if depth > MAX_NESTING:
                raise errors.InvalidArgument(
                    f"The property {name} nests entities deeper than {MAX_NESTING}."
                )
            self.deepest = max(self.deepest, depth)
            inner = value.entity_value
            return 32 + self.properties(inner, depth=depth + 1, is_indexed=is_indexed)
        return self._scalar(name, kind, value)

    def _check_text(
        self, name: str, value: protobufs.Value, size: int, *, is_indexed: bool
    ) -> None:
        # The value's own setting decides the limit, even if the value is in an unindexed entity.
        limit = MAX_UNINDEXED_BYTES if value.exclude_from_indexes else MAX_INDEXED_BYTES
        if size > limit:
            raise errors.InvalidArgument(
                f'The value of property "{name}" is longer than {limit} bytes.'
            )
        if not is_indexed:
            self.unindexed_bytes += size

    def _array(self, name: str, value: protobufs.Value, *, depth: int, is_indexed: bool) -> int:
        if value.exclude_from_indexes:
            raise errors.InvalidArgument(
                f"The array {name} must not set exclude_from_indexes; its elements may."
            )
        size = 0
        for element in value.array_value.values:
            if element.WhichOneof("value_type") == "array_value":
                raise errors.InvalidArgument(f"The array {name} must not contain an array.")
            size += self.value(name, element, depth=depth, is_indexed=is_indexed)
        return size

    def _scalar(self, name: str, kind: str | None, value: protobufs.Value) -> int:
        match kind:
            case "null_value" | "boolean_value":
                return 1
            case "timestamp_value":
                _check_timestamp(name, value.timestamp_value)
                return 8
            case "geo_point_value":
                _check_point(name, value.geo_point_value)
                return 16
            case "key_value":
                return self._reference(value.key_value)
            case None:
                raise errors.InvalidArgument(f"The property {name} holds no value.")
        return 8

    def _reference(self, key: protobufs.Key) -> int:
        if not key.path:
            raise errors.InvalidArgument("A key value has no path.")
        if not key.partition_id.project_id:
            given = key.partition_id
            fill_partition(
                key,
                keys.Partition(
                    self._default.project,
                    given.database_id or self._default.database,
                    given.namespace_id,
                ),
            )
        given = key.partition_id
        own = keys.Partition(given.project_id, given.database_id, given.namespace_id)
        check_key(key, own)
        return key_size(key)


def _check_timestamp(name: str, timestamp: protobufs.Timestamp) -> None:
    # The years 1 to 9999.
    if not -62_135_596_800 <= timestamp.seconds <= 253_402_300_799:  # noqa: PLR2004
        raise errors.InvalidArgument(f"The timestamp {name} is outside the years 1 to 9999.")
    if not 0 <= timestamp.nanos < 1_000_000_000:  # noqa: PLR2004
        raise errors.InvalidArgument(
            f"The timestamp {name} has nanos outside the range 0 to 999999999."
        )
    timestamp.nanos -= timestamp.nanos % 1000


def _check_point(name: str, point: protobufs.LatLng) -> None:
    if not (-90 <= point.latitude <= 90 and -180 <= point.longitude <= 180):  # noqa: PLR2004
        raise errors.InvalidArgument(f"The geo point {name} is not on the globe.")


def path_size(key: protobufs.Key) -> int:
    """Return the size of a key's path in bytes."""
    return sum(
        (len(element.name.encode()) + 1 if element.name else _ID_BYTES)
        + (len(element.kind.encode()) + 1)
        for element in key.path
    )


def key_size(key: protobufs.Key) -> int:
    """Return the size in bytes of a key inside an entity or a value."""
    namespace = key.partition_id.namespace_id
    return 16 + path_size(key) + (len(namespace.encode()) + 1 if namespace else 0)
