"""Make the figures and plots of docs/scaling.md.

    python -m benchmarks.scaling ranges [--shape FILE] [--quick] [--write]
    python -m benchmarks.scaling costs [--prices READ,WRITE,DELETE] [--write]
    python -m benchmarks.scaling large FOLDER [FOLDER] [--rounds 9] [--write]

`ranges` runs the product and the simulation, and `costs` uses the bill that the meter counted in
that run. `large` measures folders that `benchmarks.scaling.large_data` filled. Each part prints
Markdown; `--write` also writes the Markdown between its markers in docs/scaling.md, and the plots
and figures to docs/scaling/.
"""

import argparse
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from benchmarks.layouts import layout_tables
from benchmarks.scaling import large_figures, monthly_costs, range_figures
from benchmarks.serving import gunicorn_process

_PRICES = re.compile(r"\d+(\.\d+)?(,\d+(\.\d+)?){2}", re.ASCII)
DOCUMENT = gunicorn_process.ROOT / "docs" / "scaling.md"
COSTS = gunicorn_process.ROOT / "docs" / "costs.md"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one part."""
    chosen = parsed(arguments)
    folder: Path = chosen.document.with_suffix("")
    if chosen.part == "ranges":
        run = range_figures.measure(chosen.shape, quick=chosen.quick)
        made, plots = range_figures.markdown(run), range_figures.drawn(run)
        encoded = layout_tables.encoded(run)
    elif chosen.part == "costs":
        stored = (folder / "ranges.json").read_bytes()
        recording = msgspec.json.decode(stored, type=range_figures.Run).recording
        page = monthly_costs.reads(COSTS, "first page")
        made = monthly_costs.markdown(page, recording, chosen.prices)
        plots = list(monthly_costs.drawn(page, recording, chosen.prices))
        encoded = b""
    else:
        large = large_figures.measure(chosen.folders, chosen.rounds)
        made, plots, encoded = large_figures.markdown(large), [], layout_tables.encoded(large)
    if chosen.write:
        write(chosen.part, made, plots, encoded, chosen.document)
    print(made)


def write(
    part: str, made: str, plots: Iterable[tuple[str, str]], encoded: bytes, document: Path
) -> None:
    """Write a part's tables into the document, and its plots and figures next to it."""
    folder = document.with_suffix("")
    folder.mkdir(exist_ok=True)
    for name, drawn in plots:
        (folder / name).write_text(drawn, encoding="utf-8")
    if encoded:
        (folder / f"{part}.json").write_bytes(encoded)
    begin, end = f"<!-- {part} -->", f"<!-- end of {part} -->"
    layout_tables.insert(made, document, begin, end)


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scaling", description=__doc__.partition("\n")[0]
    )
    parts = parser.add_subparsers(dest="part", required=True)
    ranges = parts.add_parser("ranges", help="simulate key ranges")
    ranges.add_argument("--shape", type=Path, help="a file with rows of id;parent;time")
    ranges.add_argument("--quick", action="store_true", help="only show that it works")
    costs = parts.add_parser("costs", help="compute monthly costs")
    costs.add_argument(
        "--prices", type=_prices, default=monthly_costs.Prices(), metavar="READ,WRITE,DELETE",
        help="US dollars for 100,000 operations",
    )  # fmt: skip
    large = parts.add_parser("large", help="measure large data")
    large.add_argument("folders", type=Path, nargs="+", metavar="FOLDER")
    large.add_argument("--rounds", type=int, default=9)
    for part in (ranges, costs, large):
        part.add_argument("--write", action="store_true", help="write into docs/scaling.md")
        part.add_argument("--document", type=Path, default=DOCUMENT, help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def _prices(text: str) -> monthly_costs.Prices:
    if not _PRICES.fullmatch(text):
        raise argparse.ArgumentTypeError("give three numbers: READ,WRITE,DELETE")
    return monthly_costs.Prices(*map(float, text.split(",")))


if __name__ == "__main__":
    main()
