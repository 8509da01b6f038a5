"""Compute the positions of the bars in SVG bar plots (pure).

A plot shows the same numbers as the table next to it. Each plot has a title and a description.
Plots are drawn with attributes and classes, because the Content Security Policy forbids inline
styles.
"""

from collections.abc import Sequence

import msgspec

WIDTH = 600
HEIGHT = 120
_GAP = 0.15  # The share of a bar's width that stays empty.
_TOPS = (2, 4, 6, 10)  # Times a power of ten. The number at half of the height is whole too.


class Bar(msgspec.Struct, frozen=True):
    """A bar, in units of the SVG drawing."""

    x: float
    y: float
    width: float
    height: float
    label: str
    value: int


class Plot(msgspec.Struct, frozen=True):
    """A row of bars. `most` is the highest value, and `top` the number at the upper edge."""

    bars: tuple[Bar, ...]
    most: int
    top: int


def bars(values: Sequence[tuple[str, int]]) -> Plot:
    """Return a bar for each labeled number, scaled to a round number at the upper edge."""
    most = max((value for _, value in values), default=0)
    top = _top(most)
    room = WIDTH / max(1, len(values))
    drawn = []
    for place, (label, value) in enumerate(values):
        height = HEIGHT * max(0, value) / top
        x = place * room + room * _GAP / 2
        drawn.append(
            Bar(round(x, 2), round(HEIGHT - height, 2), round(room * (1 - _GAP), 2),
                round(height, 2), label, value)
        )  # fmt: skip
    return Plot(tuple(drawn), most, top)


def _top(most: int) -> int:
    scale = 1
    while most > _TOPS[-1] * scale:
        scale *= 10
    return next(top * scale for top in _TOPS if top * scale >= most)
