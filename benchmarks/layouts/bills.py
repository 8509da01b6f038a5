"""Print what each layout bills, and what a comment with its page views bills.

    .venv/bin/python -m benchmarks.layouts.bills [--write]

The program reads docs/layouts/figures.json, which `benchmarks.layouts.comparison --write` writes.
`--write` writes the tables between the markers in docs/ideas/three-layouts.md.

The line `flat tree` is computed, not measured. It is the layout of docs/ideas/flat-trees.md, which
a test builds and meters.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from benchmarks.layouts import comparison, flatthread, layout_tables

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs" / "ideas" / "three-layouts.md"
FIGURES = ROOT / "docs" / "layouts" / "figures.json"
SIZES = (100, 10_000, 100_000)
VIEWS = (1, 10, 100, 1_000)
COLUMNS = {"page": "first page", "whole": "whole thread", "post": "reply", "edit": "edit"}
# The layouts that write a reply in the same way, and differ only in what a process has cached.
WRITES_AS = {flatthread.Warm.name: flatthread.Materialized.name}
OURS = {kind.name for kind in (flatthread.Floor, flatthread.Materialized, flatthread.Warm)}
FLAT_TREE = "flat tree"
# The prices of a write and of a delete in Google's price list, in reads.
WRITE, DELETE = 3.0, 1 / 3
PROBE = 1  # A probe without results, by the strict interpretation in docs/costs.md.
TOO_LARGE = "too large"


def flat_tree(size: int) -> Iterator[layout_tables.Figures]:
    """Compute what the plain flat tree bills: only the comments, and the parent of a reply."""
    bills = {
        "page": (min(size, comparison.PAGE), 0),
        "whole": (size, 0),
        "post": (1, 2),
        "edit": (1, 1),
    }
    for call, (reads, writes) in bills.items():
        yield layout_tables.Figures(FLAT_TREE, size, call, reads, writes, 0, 0, 1, 0, 0)


class Bills:
    """The figures of one run by thread size, layout and call."""

    def __init__(self, run: layout_tables.Run) -> None:
        self._threads = {thread.size: thread for thread in run.threads}
        computed = [each for size in self._threads for each in flat_tree(size)]
        figures = [*run.figures, *computed]
        self._figures = {(each.size, each.layout, each.call): each for each in figures}
        measured = list(dict.fromkeys(each.layout for each in run.figures))
        classic = [name for name in measured if name not in OURS]
        self.layouts = [*classic, FLAT_TREE, *measured[len(classic) :]]

    def operations(self, size: int, layout: str, call: str) -> str:
        """Return the billed operations of a call, with both interpretations of a probe's price."""
        figures = self._of(size, layout, call)
        if figures is None:
            return self.missing(size, layout, call)
        if call in {"page", "whole"} and is_probing(layout):
            return f"{figures.reads:,} / {figures.reads + PROBE:,}"
        return f"{figures.reads:,}" + (f" + {figures.writes:,} w" if figures.writes else "")

    def missing(self, size: int, layout: str, call: str = "post") -> str:
        """Return why a call has no bill: one commit cannot hold it, or no thread of this size."""
        return TOO_LARGE if (call, layout) in self._threads[size].refused else "-"

    def of_reply(self, size: int, layout: str, views: float) -> float | None:
        """Return the bill of one reply and `views` first pages, in reads; None if it is refused.

        Flatthread's replies include their share of the compaction that the run measured, and one
        more read of the changed row; its pages include a billed probe.
        """
        page, post = (self._of(size, layout, call) for call in ("page", "post"))
        if page is None or post is None:
            return None
        bill = views * page.reads + post.reads + WRITE * post.writes + DELETE * post.deletes
        if not is_probing(layout):
            return bill
        thread = self._threads[size]
        compaction = thread.folding_reads + WRITE * thread.folding_writes
        compaction += DELETE * thread.folding_deletes
        return bill + views * PROBE + 1 + compaction / thread.changes

    def _of(self, size: int, layout: str, call: str) -> layout_tables.Figures | None:
        own = self._figures.get((size, layout, call))
        return own or self._figures.get((size, WRITES_AS.get(layout, layout), call))


def is_probing(layout: str) -> bool:
    """Return whether readers of a layout probe for changes, which a compaction merges later."""
    return WRITES_AS.get(layout, layout) == flatthread.Materialized.name


def markdown(run: layout_tables.Run) -> str:
    """Return both tables."""
    bills = Bills(run)
    sizes = [size for size in SIZES if any(thread.size == size for thread in run.threads)]
    return "\n".join(
        [
            "### Reads and writes of one call",
            "",
            *_operations(bills, sizes),
            "",
            "### One reply and the page views until the next reply, in reads",
            "",
            *_choices(bills, sizes),
        ]
    )


def _operations(bills: Bills, sizes: Sequence[int]) -> Iterator[str]:
    yield f"| comments | layout | {' | '.join(COLUMNS.values())} |"
    yield "|---:|---|" + "---:|" * len(COLUMNS)
    for size in sizes:
        for layout in bills.layouts:
            cells = [bills.operations(size, layout, call) for call in COLUMNS]
            yield f"| {size:,} | {layout} | {' | '.join(cells)} |"


def _choices(bills: Bills, sizes: Sequence[int]) -> Iterator[str]:
    yield f"| comments | page views | {' | '.join(bills.layouts)} |"
    yield "|---:|---:|" + "---:|" * len(bills.layouts)
    for size in sizes:
        for views in VIEWS:
            found = [bills.of_reply(size, layout, views) for layout in bills.layouts]
            cheapest = min(bill for bill in found if bill is not None)
            cells = [
                bills.missing(size, layout) if bill is None else _cell(bill, cheapest)
                for layout, bill in zip(bills.layouts, found, strict=True)
            ]
            yield f"| {size:,} | {views:,} | {' | '.join(cells)} |"


def _cell(bill: float, cheapest: float) -> str:
    return f"**{bill:,.0f}**" if bill == cheapest else f"{bill:,.0f}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables, and write them if requested."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--document", type=Path, default=DOCUMENT)
    chosen = parser.parse_args(arguments)
    made = markdown(msgspec.json.decode(FIGURES.read_bytes(), type=layout_tables.Run))
    if chosen.write:
        layout_tables.insert(made, chosen.document)
    print(made)


if __name__ == "__main__":
    main()
