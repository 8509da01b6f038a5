"""Sort the comments of an export into the order in which they are written (pure).

Comments are numbered in writing order, so this order becomes the order of the thread.

A comment is written after the comment that it replies to. Siblings (comments with the same parent
in the tree) are written in the order of their dates. If the dates are equal, the siblings are
written in the order of their source ids. A reply to a comment on the deepest level becomes a child
of that comment's parent (`tree`) and is sorted by its own date. There is one exception, for wrong
dates: if a reply on the deepest level is dated before the comment that it replies to, the reply is
written as early as its date allows, but after that comment. The comments of an export of Flatthread
keep the order of the file.

The comments are written in preorder. An interrupted import therefore leaves no gaps that a later
run would fill out of order.
"""

import dataclasses
import heapq
import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from comments.domain.records import Status

_LONGEST_NUMBER = 40


@dataclasses.dataclass(slots=True)
class Node:
    """A comment in the export, without its text.

    `place` is the comment's position in the spool. `answers` is the source id of the comment that
    this one replies to; None if that link was cut. Siblings are ordered by `rank` first.

    `number` and `above` are the number and the parent that the comment had in the Flatthread
    installation that exported it. If the number or parent does not fit the new order, the comment
    is `displaced`. `more` is the number of vote rows that are stored with the comment. `former` is
    the id that the comment had in that installation, or "".
    """

    id: str
    line: int
    thread: str
    answers: str | None
    created: datetime
    status: Status
    place: tuple[int, int]
    rank: int = 0
    number: int | None = None
    above: str | None = None
    more: int = 0
    displaced: bool = False
    former: str = ""

    @property
    def order(self) -> tuple[int, datetime, int, str]:
        """Return the sort key for siblings: rank, date, then the id (numerically if possible)."""
        is_number = self.id.isascii() and self.id.isdigit() and len(self.id) < _LONGEST_NUMBER
        return self.rank, self.created, int(self.id) if is_number else -1, self.id


def cycles(nodes: Mapping[str, Node]) -> Iterator[list[Node]]:
    """Yield the cycles of replies. Each node's `answers` must be None or a key of `nodes`."""
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
    """Return the nodes of one thread in writing order.

    The nodes must include every node that any `answers` names, and must not contain a cycle. If the
    numbers of some nodes do not fit this order, those nodes are marked as displaced. Then all nodes
    of the thread lose their numbers.
    """
    children = _by_tree_parent(nodes, levels)
    for parent, below in children.items():
        _mark_displaced(parent, below)
    if any(node.displaced for node in itertools.chain.from_iterable(children.values())):
        for node in itertools.chain.from_iterable(children.values()):
            node.number = None
    out: list[Node] = []
    stack = list(reversed(sort_siblings(children.pop(None, []))))
    while stack:
        node = stack.pop()
        out.append(node)
        stack.extend(reversed(sort_siblings(children.pop(node.id, []))))
    return out


def _by_tree_parent(nodes: Iterable[Node], levels: int) -> dict[str | None, list[Node]]:
    """Group nodes by the parent that `tree` will assign, following the same rule as `tree`."""
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


def _mark_displaced(parent: str | None, nodes: list[Node]) -> None:
    """Mark children that had another parent, and children whose numbers do not increase."""
    last = -1 if parent is None else 0
    for node in sort_siblings(nodes):
        number = node.number if node.above == parent else None
        node.displaced = number is None or number <= last
        last = last if node.displaced or number is None else number


def sort_siblings(nodes: Sequence[Node]) -> list[Node]:
    """Sort siblings by `order`, but never put a reply before the sibling that it replies to."""
    ids = {node.id for node in nodes}
    held: dict[str, list[Node]] = defaultdict(list)
    ready: list[tuple[tuple[int, datetime, int, str], Node]] = []
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
