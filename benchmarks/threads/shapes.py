"""Trees of realistic shape, for the benchmarks and for tests that need many comments.

A shape is a list of parents: `shape[i]` is the index of the comment that comment `i` answers, or
None for a root; parents come before their replies. Real shapes come from a file with rows of
`id;parent;time`. If there is no file, `grown` generates a tree with the same properties: most
comments are in short chains below a few busy roots.
"""

import csv
import random
from pathlib import Path

Shape = list[int | None]


def read(path: Path) -> Shape:
    """Return the shape in a file with rows of `id;parent;time`, in order of time.

    A row whose parent is not in the file is a root.
    """
    with path.open(encoding="utf-8", newline="") as file:
        rows = sorted(csv.reader(file, delimiter=";"), key=lambda row: float(row[2]))
    places = {row[0]: place for place, row in enumerate(rows)}
    parents = [places.get(row[1]) for row in rows]
    # If a clock ran backward, a reply can be older than its parent. Such a reply becomes a root.
    return [p if p is not None and p < place else None for place, p in enumerate(parents)]


def repeated(shape: Shape, size: int) -> Shape:
    """Return a shape of `size` comments: the same shape repeated below new roots."""
    whole: Shape = []
    while len(whole) < size:
        start = len(whole)
        whole += [None if parent is None else parent + start for parent in shape]
    return whole[:size]


def grown(size: int, seed: int = 1) -> Shape:
    """Generate a tree like a real discussion: one in five is a root; replies favor new comments."""
    chance = random.Random(seed)
    shape: Shape = []
    for place in range(size):
        if place == 0 or chance.random() < 0.2:
            shape.append(None)
        else:
            shape.append(max(0, place - 1 - int(chance.expovariate(1 / 15))))
    return shape
