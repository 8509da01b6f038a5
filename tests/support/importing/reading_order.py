"""Compute the reading order of a thread from its definition, without code of the importer."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import NamedTuple


class Entry(NamedTuple):
    """A comment. The order of `id` as a text decides between siblings of the same time."""

    created: datetime
    id: str
    parent: str | None


def in_order(entries: Iterable[Entry], levels: int) -> list[str]:
    """Return the ids of a thread: compute each comment's place in the tree, then walk the tree.

    No comment may be older than the one that it replies to. A parent that is missing counts as
    none.
    """
    by_id = {each.id: each for each in entries}

    def place(entry: Entry) -> tuple[str | None, int]:
        above = by_id.get(entry.parent or "")
        if above is None:
            return None, 0
        parent, level = place(above)
        return (parent, level) if level == levels - 1 else (above.id, level + 1)

    below: dict[str | None, list[Entry]] = defaultdict(list)
    for entry in by_id.values():
        below[place(entry)[0]].append(entry)

    def walk(parent: str | None) -> Iterator[str]:
        for entry in sorted(below[parent]):
            yield entry.id
            yield from walk(entry.id)

    return list(walk(None))
