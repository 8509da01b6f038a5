"""Keys as bytes that sort in Datastore's key order.

Owns partitions, key paths and their stored form. Pure.

    text      UTF-8 with 00 written as 00 ff, then 00 01
    partition text(project) text(database) text(namespace)
    element   10 text(kind) (20 int64 | 30 text(name))      int64: 8 bytes, big-endian, sign flipped
    path      element... 00
    key       partition path

The byte order of paths is the key order: paths compare element by element, kinds by their bytes,
ids before names, and a parent before its children. The encoding is prefix-free, so other bytes may
follow a path, and complemented bytes sort in reverse. Changing this encoding makes every data file
unreadable.
"""

from __future__ import annotations

import functools
import struct
from dataclasses import dataclass, field

from datastore_emulator import errors, protobufs

ELEMENT = b"\x10"
PATH_END = b"\x00"
ABOVE = b"\xff"  # Sorts after every path
_ID = b"\x20"
_NAME = b"\x30"
_TEXT_END = b"\x00\x01"
_SIGN = 1 << 63
_int64 = struct.Struct(">Q")


@dataclass(frozen=True, slots=True)
class Partition:
    """One project, database and namespace, whose entities are separate from all others."""

    project: str
    database: str = ""
    namespace: str = ""
    encoded: bytes = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        parts = (self.project, self.database, self.namespace)
        object.__setattr__(self, "encoded", b"".join(map(encode_text, parts)))

    def __hash__(self) -> int:
        return hash(self.encoded)  # A bytes object caches its hash


def encode_text(text: str | bytes) -> bytes:
    """Encode text or raw bytes.

    The result sorts by bytes, and no encoded text is a prefix of another.
    """
    raw = text.encode() if isinstance(text, str) else text
    return raw.replace(b"\x00", b"\x00\xff") + _TEXT_END


def decode_text(encoded: bytes, position: int) -> tuple[bytes, int]:
    """Return the raw bytes at `position` and the position after them."""
    end = encoded.index(_TEXT_END, position)
    return encoded[position:end].replace(b"\x00\xff", b"\x00"), end + 2


def encode_int64(number: int) -> bytes:
    """Encode a signed 64-bit integer in 8 bytes that sort in numeric order."""
    return _int64.pack(number + _SIGN)


def decode_int64(encoded: bytes, position: int) -> int:
    """Return the integer at `position`."""
    number: int = _int64.unpack_from(encoded, position)[0]
    return number - _SIGN


def encode_path(key: protobufs.Key) -> bytes:
    """Encode the path of a complete key."""
    parts: list[bytes] = []
    for element in key.path:
        if element.name:
            parts += (name_prefix(element.kind), encode_text(element.name))
        else:
            parts += (ELEMENT, encode_text(element.kind), _ID, encode_int64(element.id))
    parts.append(PATH_END)
    return b"".join(parts)


@functools.lru_cache(maxsize=256)
def name_prefix(kind: str) -> bytes:
    """Return the bytes before the name in an encoded element."""
    return ELEMENT + encode_text(kind) + _NAME


def element(kind: str, name: str | int) -> bytes:
    if isinstance(name, str):
        return name_prefix(kind) + encode_text(name)
    return ELEMENT + encode_text(kind) + _ID + encode_int64(name)


def encode(partition: Partition, key: protobufs.Key) -> bytes:
    """Encode a complete key of `partition`."""
    return partition.encoded + encode_path(key)


def path_ends(path: bytes, position: int = 0) -> list[int]:
    """Return the end position of each element in an encoded path."""
    ends = []
    while path[position : position + 1] == ELEMENT:
        position = path.index(_TEXT_END, position + 1) + 2
        if path[position : position + 1] == _ID:
            position += 9
        else:
            position = path.index(_TEXT_END, position + 1) + 2
        ends.append(position)
    return ends


def kind_of(path: bytes) -> str:
    """Return the kind of an encoded path's last element."""
    ends = path_ends(path)
    start = ends[-2] if len(ends) > 1 else 0
    return decode_text(path, start + 1)[0].decode()


def partition_range(encoded: bytes) -> tuple[bytes, bytes]:
    """Return the range [low, high) that contains all keys of an encoded partition."""
    return encoded + ELEMENT, encoded + b"\x11"


def ancestors(path: bytes) -> list[bytes]:
    """Return the encoded paths of all ancestors, followed by the path itself."""
    return [path[:end] + PATH_END for end in path_ends(path)]


def descendants(path: bytes) -> tuple[bytes, bytes]:
    """Return the range [low, high) that contains a key's path and the paths of its descendants."""
    return path, path[:-1] + b"\x11"


def key_bytes(partition: Partition, path: bytes) -> bytes:
    """Serialize the Key message of an encoded path."""
    parts = [protobufs.field(1, partition_bytes(partition))]
    position = 0
    while path[position : position + 1] == ELEMENT:
        kind, position = decode_text(path, position + 1)
        if path[position : position + 1] == _ID:
            number = decode_int64(path, position + 1)
            last = b"\x10" + protobufs.varint(number & 0xFFFF_FFFF_FFFF_FFFF)
            position += 9
        else:
            name, position = decode_text(path, position + 1)
            last = protobufs.field(3, name)
        parts.append(protobufs.field(2, protobufs.field(1, kind) + last))
    return b"".join(parts)


@functools.lru_cache(maxsize=256)
def partition_bytes(partition: Partition) -> bytes:
    """Serialize a PartitionId message."""
    texts = ((2, partition.project), (3, partition.database), (4, partition.namespace))
    return b"".join(protobufs.field(number, text.encode()) for number, text in texts if text)


def decode(encoded: bytes) -> tuple[Partition, bytes]:
    """Split an encoded key into its partition and its path."""
    project, position = decode_text(encoded, 0)
    database, position = decode_text(encoded, position)
    namespace, position = decode_text(encoded, position)
    return Partition(project.decode(), database.decode(), namespace.decode()), encoded[position:]


def is_complete(key: protobufs.Key) -> bool:
    """Return whether the last path element has an id or a name."""
    return key.path[-1].WhichOneof("id_type") is not None


def partition_of(key: protobufs.Key, default: Partition) -> Partition:
    """Return a key's partition; the request supplies the parts that the key does not set.

    Raises:
        errors.InvalidArgument: The key belongs to a different project or database.
    """
    given = key.partition_id
    project = given.project_id or default.project
    if project != default.project:
        raise errors.InvalidArgument(
            f"mismatched projects within request: {default.project} and {project}"
        )
    if given.database_id != default.database and (given.database_id or given.project_id):
        raise errors.InvalidArgument(
            f'mismatched databases within request: "{default.database}" and "{given.database_id}"'
        )
    if given.namespace_id == default.namespace:
        return default
    return Partition(project, default.database, given.namespace_id)
