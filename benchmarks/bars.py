"""The result of a benchmark: measured values with their bars."""

import dataclasses
from collections.abc import Iterator
from typing import Protocol


@dataclasses.dataclass(frozen=True, slots=True)
class Bar:
    """A measured value and the highest acceptable value, in the same unit (`x` is a ratio)."""

    name: str
    measured: float
    most: float
    detail: str = ""
    unit: str = "x"

    @property
    def is_held(self) -> bool:
        """True if the value is within the bar."""
        return self.measured <= self.most

    def __str__(self) -> str:
        verdict = "held" if self.is_held else "MISSED"
        values = f"{self.measured:8.2f} {self.unit:<10} bar {self.most:6.2f}"
        return f"{self.name:<28} {values}  {verdict:<6}  {self.detail}".rstrip()


class Benchmark(Protocol):
    """A function that measures bars; `quick` takes a minute and only shows that it works."""

    def __call__(self, *, quick: bool) -> Iterator[Bar]:
        """Measure the bars."""
        ...
