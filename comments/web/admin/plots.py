"""Plots as SVG: where the bars of a row of numbers stand (pure).

A plot repeats a table, which stands beside it; so it has a title and a description, and no word
that is only in it. It is drawn with attributes and classes, as no page allows a style of its own.
"""

from collections.abc import Sequence

import msgspec

WIDTH = 600
HEIGHT = 120
_GAP = 0.15  # of a bar's room


class Bar(msgspec.Struct, frozen=True):
    """A bar, in units of the drawing, from its lower edge up."""

    x: float
    y: float
    width: float
    height: float
    label: str
    value: int


class Plot(msgspec.Struct, frozen=True):
    """Bars side by side. `most` is the value of the highest."""

    bars: tuple[Bar, ...]
    most: int


def bars(values: Sequence[tuple[str, int]]) -> Plot:
    """A bar for each of some labelled numbers, the highest as high as the plot."""
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
