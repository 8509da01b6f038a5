"""An import of a generated export into a new store (`import_speed`)."""

from collections.abc import Sequence
from pathlib import Path

from benchmarks import import_speed
from benchmarks.writing import checkouts, results

COMMENTS = 10_000
RATE, WORK = "import, comments/s", "import, comments per processor second"
_MOST_ROUNDS = 3  # An import takes much longer than the other measurements.


def measure(
    found: results.Results, trees: Sequence[checkouts.Checkout], folder: Path, *,
    rounds: int, comments: int,
) -> None:  # fmt: skip
    """Import with every checkout in turn."""
    file = folder / "export.xml"
    file.write_text("\n".join(import_speed.export(comments)), encoding="utf-8")
    for _ in range(min(rounds, _MOST_ROUNDS)):
        for each in trees:
            added, wall, used = import_speed.imported(each.root, "disqus", file)
            found.add(RATE, each.variant, added / wall)
            found.add(WORK, each.variant, added / used)
