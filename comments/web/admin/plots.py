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


class Bar(msgspec.Struct, frozen=True):
    """A bar, in units of the SVG drawing."""

    x: float
    y: float
    width: float
    height: float
    label: str
    value: int


class Plot(msgspec.Struct, frozen=True):
    """A row of bars. `most` is the highest value."""

    bars: tuple[Bar, ...]
    most: int


def bars(values: Sequence[tuple[str, int]]) -> Plot:
    """Return a bar for each labeled number, scaled so that the highest bar fills the plot."""
    most = max((value for _, value in values), default=0)
    room = WIDTH / max(1, len(values))
    drawn = []
    for place, (label, value) in enumerate(values):
        height = HEIGHT * max(0, value) / most if most else 0.0
        x = place * room + room * _GAP / 2
        drawn.append(
            Bar(round(x, 2), round(HEIGHT - height, 2), round(room * (1 - _GAP), 2),
                round(height, 2), label, value)
        )  # fmt: skip
    return Plot(tuple(drawn), most)
