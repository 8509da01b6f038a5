"""Plots as hand-written SVG: lines over logarithmic axes, one panel per call.

Values of 0 are drawn on the floor of a panel, where the axis says 0. A line ends where a layout
cannot store the thread. Lines differ in both color and mark, so they can be distinguished without
color.
"""

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape

_PANEL = 300, 230  # Width and height of the drawn area.
_LEFT, _TOP, _GAP_X, _GAP_Y = 62, 46, 84, 78
_COLUMNS = 3
_LEGEND_ROW = 22
_COLOURS = ("#0b6e99", "#c4501b", "#5b8c2a", "#8a4fa3", "#777777", "#111111", "#b8860b", "#c2185b")
_MARKS = ("circle", "square", "up", "down", "diamond", "cross", "ring", "plus")
_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#222}.h{font-weight:600;font-size:13px}"
    ".t{font-size:15px;font-weight:600}.s{fill:#666;font-size:11px}.g{stroke:#e4e4e4}"
    ".a{stroke:#888;fill:none}"
)

# Points (size, value) of each line, in the order of the legend.
Lines = Mapping[str, Sequence[tuple[float, float]]]


@dataclasses.dataclass(frozen=True)
class Panel:
    """One drawing: its title, its lines, and the label of its horizontal axis."""

    title: str
    lines: Lines
    across: str = "comments"


@dataclasses.dataclass(frozen=True)
class _Axis:
    """A logarithmic axis over `pixels`, with a floor for 0 if needed."""

    low: int
    high: int
    pixels: float
    has_zero: bool = False

    def at(self, value: float) -> float:
        """Return the position of a value on the axis."""
        start = self.pixels / 12 if self.has_zero else 0.0
        if value <= 0:
            return 0.0
        share = (math.log10(value) - self.low) / max(1, self.high - self.low)
        return start + share * (self.pixels - start)

    def ticks(self) -> Iterator[tuple[float, str]]:
        """Yield the powers of ten, and 0 if needed."""
        if self.has_zero:
            yield 0.0, "0"
        for power in range(self.low, self.high + 1):
            yield 10.0**power, _written(power)


def draw(title: str, note: str, panels: Sequence[Panel]) -> str:
    """Draw panels of the same lines as one SVG."""
    names = list(dict.fromkeys(name for panel in panels for name in panel.lines))
    looks = {name: (_COLOURS[n % 8], _MARKS[n % 8]) for n, name in enumerate(names)}
    columns = min(_COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    width = _LEFT + columns * (_PANEL[0] + _GAP_X) - _GAP_X + 24
    legend_top = 76 + _TOP + rows * (_PANEL[1] + _GAP_Y) - 20
    height = legend_top + -(-len(names) // columns) * _LEGEND_ROW + 12
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" role="img">'
        ),
        f"<title>{escape(title)}</title><style>{_STYLE}</style>",
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        f'<text class="t" x="16" y="28">{escape(title)}</text>',
        f'<text class="s" x="16" y="48">{escape(note)}</text>',
    ]
    for number, panel in enumerate(panels):
        x = _LEFT + number % columns * (_PANEL[0] + _GAP_X)
        y = 60 + _TOP + number // columns * (_PANEL[1] + _GAP_Y)
        parts.append(f'<g transform="translate({x},{y})">')
        parts += [*_panel(panel, looks), "</g>"]
    for number, name in enumerate(names):
        x = _LEFT + number % columns * (_PANEL[0] + _GAP_X)
        y = legend_top + number // columns * _LEGEND_ROW
        color, mark = looks[name]
        parts.append(f'<path d="M{x} {y}h32" stroke="{color}" stroke-width="2"/>')
        parts.append(_mark(mark, x + 16, y, color))
        parts.append(f'<text x="{x + 42}" y="{y + 4}">{escape(name)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _panel(panel: Panel, looks: Mapping[str, tuple[str, str]]) -> Iterator[str]:
    wide, high = _PANEL
    points = [point for line in panel.lines.values() for point in line]
    across = _axis([x for x, _ in points], wide)
    up = _axis([y for _, y in points], high)
    yield f'<text class="h" x="0" y="-14">{escape(panel.title)}</text>'
    for value, text in up.ticks():
        y = _shown(high - up.at(value))
        yield f'<path class="g" d="M0 {y}h{wide}"/>'
        yield f'<text class="s" x="-8" y="{y}" dy="4" text-anchor="end">{text}</text>'
    for value, text in across.ticks():
        x = _shown(across.at(value))
        yield f'<path class="g" d="M{x} 0v{high}"/>'
        yield f'<text class="s" x="{x}" y="{high + 18}" text-anchor="middle">{text}</text>'
    yield f'<path class="a" d="M0 0V{high}H{wide}"/>'
    yield (
        f'<text class="s" x="{wide}" y="{high + 34}" text-anchor="end">'
        f"{escape(panel.across)}</text>"
    )
    for name, line in panel.lines.items():
        color, mark = looks[name]
        drawn = [(across.at(x), high - up.at(y)) for x, y in line]
        path = "L".join(f"{_shown(x)} {_shown(y)}" for x, y in drawn)
        yield f'<path d="M{path}" fill="none" stroke="{color}" stroke-width="2"/>'
        yield from (_mark(mark, x, y, color) for x, y in drawn)


def _axis(values: Sequence[float], pixels: float) -> _Axis:
    known = [value for value in values if value > 0] or [1.0]
    low, high = math.floor(math.log10(min(known))), math.ceil(math.log10(max(known)))
    return _Axis(low, max(high, low + 1), pixels, has_zero=min(values) <= 0)


def _mark(mark: str, x: float, y: float, color: str) -> str:
    shapes = {
        "circle": "m-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
        "ring": "m-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
        "square": "m-4-4h8v8h-8z",
        "up": "m0-5l5 9h-10z",
        "down": "m0 5l5-9h-10z",
        "diamond": "m0-5l5 5-5 5-5-5z",
        "cross": "m-4-4l8 8m0-8l-8 8",
        "plus": "m-5 0h10m-5-5v10",
    }
    fill = "#fff" if mark == "ring" else color
    place = f"M{_shown(x)} {_shown(y)}{shapes[mark]}"
    return f'<path d="{place}" fill="{fill}" stroke="{color}" stroke-width="1.5"/>'


def _shown(pixels: float) -> str:
    return f"{pixels:.1f}"


def _written(power: int) -> str:
    units = ((6, "M"), (3, "k"), (0, ""))
    for least, unit in units:
        if power >= least:
            return f"{10 ** (power - least)}{unit}"
    return f"{10.0**power:.{-power}f}"
