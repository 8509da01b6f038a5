"""The checkouts that `benchmarks.writing` compares, each with its own data.

A checkout stores its data itself, with its own environment, because formats differ.
"""

import dataclasses
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlencode

from benchmarks.serving import gunicorn_process, served_pages
from benchmarks.writing import results

SITE = served_pages.SITE
SMALL, LARGE = 100, 10_000  # Comments in the threads whose pages are read.
QUICK_LARGE, QUICK_THREAD = 300, 150
THREAD = 1_000  # Comments in a thread that eight clients write to, and one more in each round.
OTHERS = served_pages.COUNTED - 1  # Small threads.
_STOCK = """
import pathlib, sys
from benchmarks.serving import served_pages
from benchmarks.threads import shapes
served_pages.stock(pathlib.Path(sys.argv[1]), shapes.grown(2_251), [*map(int, sys.argv[2:])])
"""


@dataclasses.dataclass(frozen=True, slots=True)
class Checkout:
    """A checkout with two copies of its data: for a server without post limits, and with them."""

    variant: str
    limited: str
    root: Path
    data: Path
    limited_data: Path


def stocked(folder: Path, beside: Path | None, sizes: Sequence[int]) -> list[Checkout]:
    """Store threads of these sizes, and 49 small ones, with each checkout."""
    roots = [(results.THIS, results.LIMITED, gunicorn_process.ROOT)]
    if beside is not None:
        roots.append((results.BESIDE, results.BESIDE_LIMITED, beside.resolve()))
    return [_stocked(folder, *each, sizes) for each in roots]


def _stocked(
    folder: Path, variant: str, limited: str, root: Path, sizes: Sequence[int]
) -> Checkout:
    data, copy = folder / variant, folder / limited
    command = [gunicorn_process.interpreter(root), "-c", _STOCK, str(data), *map(str, sizes)]
    subprocess.run(command, cwd=root, check=True)
    # Stocking counts only the threads.
    gunicorn_process.command(data, "recount", root=root).check_returncode()
    shutil.copytree(data, copy)
    return Checkout(variant, limited, root, data, copy)


def path(thread: str) -> str:
    """Return the path of a thread's comments."""
    return f"/api/v1/sites/{SITE}/comments?{urlencode({'thread': thread})}"


def other(number: int) -> str:
    """Return the id of a small thread."""
    return f"other {number % OTHERS}"
