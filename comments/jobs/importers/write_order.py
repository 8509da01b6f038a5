"""Which comment of an export is written after which (pure).

Numbers are handed out in the order of writing, so this order is the order of the thread:

- a comment is written after the one it answers;
- siblings of one tree parent are written by date, then by source id. A reply to a comment on the
  deepest level becomes a further child of that comment's parent (`tree`) and takes its place
  among those by its own date;
- the whole is preorder, so that an interrupted import has no hole that a later run would fill
  out of order.

Dates that lie are the one exception: a reply on the deepest level that is dated before what it
answers comes as soon after it as its date allows.
"""

import dataclasses
import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from comments.domain.records import Status

_LONGEST_NUMBER = 40


@dataclasses.dataclass(slots=True)
class Node:
    """One comment of the export, without what is heavy: `place` is where the spool has it.

    `answers` is the source id of the comment it answers; cutting a link sets it to None.
    """

    id: str
    line: int
    thread: str
    answers: str | None
    created: datetime
    status: Status
    place: tuple[int, int]

    @property
    def order(self) -> tuple[datetime, int, str]:
        """What siblings are sorted by: the date, then the id, as a number where it is one."""
        is_number = self.id.isascii() and self.id.isdigit() and len(self.id) < _LONGEST_NUMBER
        return self.created, int(self.id) if is_number else -1, self.id


def cycles(nodes: Mapping[str, Node]) -> Iterator[list[Node]]:
    """The circles of comments that answer one another; `answers` of each is in `nodes` or None."""
    finished: set[str] = set()
    for start in nodes:
        trail: dict[str, Node] = {}
        step: str | None = start
        while step is not None and step not in finished and step not in trail:
            trail[step] = nodes[step]
            step = nodes[step].answers
        if step is not None and step in trail:
            ids = list(trail)
            yield [trail[node_id] for node_id in ids[ids.index(step) :]]
        finished.update(trail)


def arrange(nodes: Iterable[Node], levels: int) -> list[Node]:
    """The nodes of one thread in the order of writing. Their links are whole and free of cycles."""
    children = _by_tree_parent(nodes, levels)
    out: list[Node] = []
    stack = list(reversed(_siblings(children.pop(None, []))))
    while stack:
        node = stack.pop()
        out.append(node)
        stack.extend(reversed(_siblings(children.pop(node.id, []))))
    return out


def _by_tree_parent(nodes: Iterable[Node], levels: int) -> dict[str | None, list[Node]]:
    """Where `tree` will put each node, by the same rule."""
    replies: dict[str | None, list[Node]] = defaultdict(list)
    for node in nodes:
        replies[node.answers].append(node)
    parent: dict[str | None, str | None] = {}
    level: dict[str | None, int] = {None: -1}
    children: dict[str | None, list[Node]] = defaultdict(list)
    waiting = replies.pop(None, [])
    while waiting:
        node = waiting.pop()
        is_deepest = level[node.answers] == levels - 1
        parent[node.id] = parent[node.answers] if is_deepest else node.answers
        level[node.id] = level[parent[node.id]] + 1
        children[parent[node.id]].append(node)
        waiting.extend(replies.pop(node.id, []))
    return children


def _siblings(nodes: list[Node]) -> list[Node]:
    """By `order`, but never before the sibling that is answered."""
    ids = {node.id for node in nodes}
    held: dict[str, list[Node]] = defaultdict(list)
    ready: list[tuple[tuple[datetime, int, str], Node]] = []
    for node in nodes:
        if node.answers in ids:
            held[node.answers or ""].append(node)
        else:
            ready.append((node.order, node))
    heapq.heapify(ready)
    out: list[Node] = []
    while ready:
        _, node = heapq.heappop(ready)
        out.append(node)
        for reply in held.pop(node.id, []):
            heapq.heappush(ready, (reply.order, reply))
    return out
