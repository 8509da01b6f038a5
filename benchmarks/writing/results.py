"""The results of `benchmarks.writing`: a value for each measurement, variant and round.

Bars compare medians, and a ratio is the median of the rounds' ratios, because its two values were
measured within seconds of each other.
"""

import dataclasses
import statistics
from collections.abc import Sequence

# The variants that take turns. `LIMITED` is this checkout with post limits and proofs of work.
THIS, LIMITED = "this", "with limits"
BESIDE, BESIDE_LIMITED = "beside", "beside, with limits"
FLASK, WSGI = "Flask floor", "WSGI floor"
FEWEST, MOST = "fewest posts of a client", "most posts of a client"
_WITHOUT_RATIO = (FEWEST, MOST)
VARIANTS = (THIS, LIMITED, BESIDE, BESIDE_LIMITED, FLASK, WSGI)


@dataclasses.dataclass(slots=True)
class Results:
    """The values of a run."""

    values: dict[tuple[str, str], list[float]] = dataclasses.field(default_factory=dict)

    def add(self, what: str, variant: str, *values: float) -> None:
        """Add the values of one or more rounds."""
        self.values.setdefault((what, variant), []).extend(values)

    def median(self, what: str, variant: str = THIS) -> float:
        """Return the median of the rounds."""
        return statistics.median(self.values[what, variant])

    def ratio(self, what: str, floor: str, variant: str = THIS) -> float:
        """Return the median of the rounds' ratios of a variant to a floor."""
        pairs = zip(self.values[what, variant], self.values[what, floor], strict=True)
        return statistics.median(one / other for one, other in pairs)

    def measured(self, what: str) -> list[str]:
        """Return the variants of a measurement."""
        return [variant for variant in VARIANTS if (what, variant) in self.values]


def table(results: Results) -> str:
    """Return all medians as Markdown; in parentheses, the ratios to the WSGI floor."""
    shown = [each for each in VARIANTS if any(variant == each for _, variant in results.values)]
    lines = [f"| | {' | '.join(shown)} |", f"|---|{'---:|' * len(shown)}"]
    for what in dict.fromkeys(what for what, _ in results.values):
        cells = (_cell(results, what, variant) for variant in shown)
        lines.append(f"| {what} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(results: Results, what: str, variant: str) -> str:
    there = results.measured(what)
    if variant not in there:
        return ""
    value = _number(results.median(what, variant))
    if WSGI not in there or variant == WSGI or what.endswith(_WITHOUT_RATIO):
        return value
    return f"{value} ({results.ratio(what, WSGI, variant):.2f} x)"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.2f}"


def chunks(values: Sequence[float], rounds: int) -> list[float]:
    """Return the medians of equal parts, one for each round."""
    size = len(values) // rounds
    return [statistics.median(values[n * size : (n + 1) * size]) for n in range(rounds)]
