"""Trees of real shape for the benchmarks and the tests that need many comments.

A shape is a list of parents: `shape[i]` is the index of the comment that comment `i` answers, or
None for a root; parents come before their replies. Real shapes come from a file of
`id;parent;time` rows; without one, `grown` makes a tree with the same habits: most comments are
short chains below few busy roots.
"""

import csv
import random
from pathlib import Path

Shape = list[int | None]


def read(path: Path) -> Shape:
    """The shape of a file of `id;parent;time` rows, in order of time.

    A row whose parent is not in the file is a root.
    """
    with path.open(encoding="utf-8", newline="") as file:
        rows = sorted(csv.reader(file, delimiter=";"), key=lambda row: float(row[2]))
    places = {row[0]: place for place, row in enumerate(rows)}
    parents = [places.get(row[1]) for row in rows]
    # A clock that ran backwards may put a reply before what it answers: it becomes a root.
    return [p if p is not None and p < place else None for place, p in enumerate(parents)]


def repeated(shape: Shape, size: int) -> Shape:
    """`size` comments: the shape again and again, each time below new roots."""
    whole: Shape = []
    while len(whole) < size:
        start = len(whole)
        whole += [None if parent is None else parent + start for parent in shape]
    return whole[:size]


def grown(size: int, seed: int = 1) -> Shape:
    """A tree that grows as discussions do: one in five is a root, replies favour the recent."""
    chance = random.Random(seed)
    shape: Shape = []
    for place in range(size):
        if place == 0 or chance.random() < 0.2:
            shape.append(None)
        else:
            shape.append(max(0, place - 1 - int(chance.expovariate(1 / 15))))
    return shape
