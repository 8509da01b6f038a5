"""The values of each measurement, variant and round.

Bars compare medians, and a ratio is the median of the rounds' ratios, because its two values were
measured within seconds of each other.
"""

import dataclasses
import statistics
from collections.abc import Sequence

# The variants that take turns. `LIMITED` is the product with post limits and proofs of work.
THIS, LIMITED, FLASK, WSGI = "this", "with limits", "Flask floor", "WSGI floor"


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


def chunks(values: Sequence[float], rounds: int) -> list[float]:
    """Return the medians of equal parts, one for each round."""
    size = len(values) // rounds
    return [statistics.median(values[n * size : (n + 1) * size]) for n in range(rounds)]
