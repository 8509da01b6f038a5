"""What a benchmark reports: measured values, each beside its bar."""

import dataclasses
from collections.abc import Iterator
from typing import Protocol


@dataclasses.dataclass(frozen=True, slots=True)
class Bar:
    """A measured value and the highest one that is good, in the same unit (`x`: a ratio)."""

    name: str
    measured: float
    most: float
    detail: str = ""
    unit: str = "x"

    @property
    def is_held(self) -> bool:
        """Whether the value is good."""
        return self.measured <= self.most

    def __str__(self) -> str:
        verdict = "held" if self.is_held else "MISSED"
        values = f"{self.measured:8.2f} {self.unit:<10} bar {self.most:6.2f}"
        return f"{self.name:<28} {values}  {verdict:<6}  {self.detail}".rstrip()


class Benchmark(Protocol):
    """Something that measures bars; `quick` shows in a minute that it works, and proves nothing."""

    def __call__(self, *, quick: bool) -> Iterator[Bar]:
        """Measure."""
        ...
