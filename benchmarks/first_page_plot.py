"""The plot in README.md: the time of a first page, by layout and size of the thread.

It has separate colors for light and dark screens.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape

Line = Sequence[tuple[int, float]]  # Sizes and milliseconds.
# The layouts in the order of their colors, each with the label at the end of its line.
LABELS = {
    "adjacency": "one query for each parent",
    "embedded": "whole thread in one entity",
    "path": "one ordered query",
    "buckets": "buckets of comments",
    "materialized": "Flatthread, first read",
    "materialized, warm": "Flatthread, read before",
}
TITLE = "First page of 50 comments: processor time in ms"
NOTE = "by comments in the thread; both axes logarithmic; store calls only, without HTTP or network"

_WIDTH, _HEIGHT = 720, 400
_LEFT, _TOP, _RIGHT, _BOTTOM = 56, 72, 520, 352
_SIZES = 100, 100_000
_TIMES = 0.1, 20.0
_LABEL_STEP = 17.0  # Pixels between the baselines of two labels.
_LIGHT = ("#6b7280", "#8a4fa3", "#b45309", "#0f766e", "#2563eb", "#dc2626")
_DARK = ("#9ca3af", "#c99be0", "#f0a33f", "#4fc7ba", "#7fb0ff", "#ff8080")
_STYLE = """
rect{fill:#fff}text{font:13px system-ui,sans-serif;fill:#1f2328}
.t{font-size:16px;font-weight:600}.s{font-size:12px;fill:#59636e}.g{stroke:#d8dee4}
"""
_DARK_STYLE = "rect{fill:#0d1117}text{fill:#e6edf3}.s{fill:#9198a1}.g{stroke:#30363d}"


def draw(lines: Mapping[str, Line]) -> str:
    """Draw the plot as an SVG document, with a line for each layout in the order of `LABELS`."""
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
            f'width="{_WIDTH}" height="{_HEIGHT}" role="img">'
        ),
        f"<title>{escape(TITLE)}</title><style>{_style()}</style>",
        f'<rect width="{_WIDTH}" height="{_HEIGHT}"/>',
        f'<text class="t" x="16" y="28">{escape(TITLE)}</text>',
        f'<text class="s" x="16" y="48">{escape(NOTE)}</text>',
        *_grid(),
    ]
    for number, points in enumerate(lines.values()):
        path = "L".join(f"{_x(size):.1f} {_y(time):.1f}" for size, time in points)
        parts.append(f'<path class="c{number}" d="M{path}" fill="none" stroke-width="2.5"/>')
        parts += [
            f'<circle class="c{number} f{number}" cx="{_x(size):.1f}" cy="{_y(time):.1f}" r="3.5"/>'
            for size, time in points
        ]
    parts += _labels(list(lines.values()))
    return "\n".join([*parts, "</svg>", ""])


def _style() -> str:
    light, dark = (
        "".join(f".c{n}{{stroke:{color}}}.f{n}{{fill:{color}}}" for n, color in enumerate(colors))
        for colors in (_LIGHT, _DARK)
    )
    return f"{_STYLE}{light}\n@media(prefers-color-scheme:dark){{{_DARK_STYLE}{dark}}}"


def _grid() -> Iterator[str]:
    for size in (100, 1_000, 10_000, 100_000):
        yield f'<path class="g" d="M{_x(size):.1f} {_TOP}V{_BOTTOM}"/>'
        yield (
            f'<text class="s" x="{_x(size):.1f}" y="{_BOTTOM + 20}" text-anchor="middle">'
            f"{size:,}</text>"
        )
    for time in (0.1, 1.0, 10.0):
        yield f'<path class="g" d="M{_LEFT} {_y(time):.1f}H{_RIGHT}"/>'
        yield (
            f'<text class="s" x="{_LEFT - 8}" y="{_y(time) + 4:.1f}" text-anchor="end">'
            f"{time:g}</text>"
        )


def _labels(lines: Sequence[Line]) -> Iterator[str]:
    """Label each line at its end, and move overlapping labels apart."""
    ends = sorted((_y(points[-1][1]), number) for number, points in enumerate(lines))
    last: dict[float, float] = {}
    for end, number in ends:
        x = _x(lines[number][-1][0]) + 10
        y = max(end, last.get(x, -math.inf) + _LABEL_STEP)
        last[x] = y
        name = escape(list(LABELS.values())[number])
        yield f'<circle class="c{number} f{number}" cx="{x + 4:.1f}" cy="{y:.1f}" r="4"/>'
        yield f'<text x="{x + 14:.1f}" y="{y + 4:.1f}">{name}</text>'


def _x(size: float) -> float:
    return _LEFT + _share(size, *_SIZES) * (_RIGHT - _LEFT)


def _y(time: float) -> float:
    return _BOTTOM - _share(time, *_TIMES) * (_BOTTOM - _TOP)


def _share(value: float, low: float, high: float) -> float:
    return math.log(value / low) / math.log(high / low)
