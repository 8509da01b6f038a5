"""Define the kinds and keys of large sets of ids (`large_sets`).

The kinds are named after the first such sets, the followers of threads. Stored names never change,
so every set has these kinds.
"""

from comments.domain import records
from comments.store.models import schema

_GENERATION = 10  # Number of digits


class FollowerListRow(schema.StoredRow):
    """The head of a set. Only `set_compaction` writes this kind; see `segments`.

    The segments named in `content` include all marks of generations up to `folded`. New marks
    belong to `generation`. `version` is the token of the attempt that wrote the content.
    """

    version = schema.text(default="")
    generation = schema.integer(indexed=False, required=True)
    folded = schema.integer(indexed=False, required=True)
    content = schema.blob()


class FollowerMarkRow(schema.StoredRow):
    """An id that joined or left a set. Only `membership` writes this kind.

    `entry` consists of generation, sign and set. One keys-only query therefore returns, in order,
    the ids that joined in a generation. A mark with `asks` requests a compaction.
    """

    entry = schema.string(required=True)
    asks = schema.boolean(default=False)


class FollowerSegmentRow(schema.StoredRow):
    """A part of a set, written once by `set_compaction`; see `segments`."""

    content = schema.blob()


def set_key(name: records.SetName) -> schema.RowKey:
    return schema.RowKey(FollowerListRow, name.text)


def mark_key(name: records.SetName, generation: int, member: str) -> schema.RowKey:
    """Return the key of an id's mark in a generation. The empty id sorts before all other ids."""
    return schema.RowKey(FollowerMarkRow, f"{generation:010d}{member}", parent=set_key(name))


def mark_entry(name: records.SetName, generation: int, *, belongs: bool) -> str:
    """Return the `entry` of all marks with this set, generation and sign."""
    return f"{generation:010d}{'+' if belongs else '-'}{name.text}"


def segment_key(name: records.SetName, key: str) -> schema.RowKey:
    """Return the key of a segment of a set; `key` consists of generation, attempt and number."""
    return schema.RowKey(FollowerSegmentRow, key, parent=set_key(name))


def generation_of(key: str) -> int:
    """Return the generation at the beginning of a mark's or a segment's key name."""
    return int(key[:_GENERATION])


def member_of(key: str) -> str:
    """Return the id at the end of a mark's key name."""
    return key[_GENERATION:]
