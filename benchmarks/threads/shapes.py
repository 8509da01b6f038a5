"""Trees of realistic shape, for the benchmarks and for tests that need many comments.

A shape is a list of parents: `shape[i]` is the index of the comment that comment `i` answers, or
None for a root; parents come before their replies. `grown` generates a tree with the properties of
real discussions: most comments are in short chains below a few busy roots.
"""

import random

Shape = list[int | None]


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
