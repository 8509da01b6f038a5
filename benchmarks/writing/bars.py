"""Writing as fast as reading: replies, pages, starts and imports beside minimal servers.

The floors are bare handlers under gunicorn with the product's number of workers and threads: Flask
and WSGI, which return the same bytes for a page, and store a post with one durable INSERT. A bar on
posts per second compares the floor's with the product's, so less is better in every bar.
"""

import re
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks import exports, servers, stock
from benchmarks.bars import Bar
from benchmarks.writing import pages, posts, start_costs

SMALL, LARGE, QUICK_LARGE = 100, 10_000, 300  # Comments in the threads whose pages are read.
THREAD, QUICK_THREAD = 1_000, 150  # Comments in a thread that eight clients write to.
IMPORTED, QUICK_IMPORTED = 10_000, 100
_ADDED = re.compile(r"Added ([\d,]+) comments? ")
_IMPORT = 1_400  # Comments to import within a second.


def bars(*, quick: bool) -> Iterator[Bar]:
    """Measure all parts on the same data."""
    rounds, seconds = (1, 0.4) if quick else (5, 2.0)
    large, size = (QUICK_LARGE, QUICK_THREAD) if quick else (LARGE, THREAD)
    with tempfile.TemporaryDirectory(prefix="writing-") as name:
        folder = Path(name)
        data = folder / "data"
        sizes = [SMALL, large, *(size + number for number in range(rounds))]
        small, large_thread, *written = stock.store(data, sizes)
        servers.command(data, "recount").check_returncode()  # Stocking counts only the threads.
        yield from pages.bars(data, folder, [small, large_thread], rounds)
        yield from posts.bars(data, folder, written, seconds)
        yield from start_costs.bars(data, folder, small.path, rounds)
        yield _import(folder, QUICK_IMPORTED if quick else IMPORTED, min(rounds, 3))


def _import(folder: Path, count: int, rounds: int) -> Bar:
    """Import an export into new stores, each in a new process, from its start to its end."""
    file = folder / "export.xml"
    exports.write(file, "disqus", exports.falling_sizes(count))
    seconds = []
    for number in range(rounds):
        data = folder / f"import {number}"
        words = ("site", "add", stock.SITE, "--origin", exports.ORIGIN)
        servers.command(data, *words).check_returncode()
        start = time.perf_counter()
        done = servers.command(data, "import", "disqus", str(file), "--site", stock.SITE)
        seconds.append(time.perf_counter() - start)
        added = _ADDED.search(done.stdout)
        if added is None or int(added[1].replace(",", "")) != count:
            raise SystemExit(f"{done.stdout}{done.stderr}")
    rate = count / statistics.median(seconds)
    detail = f"for {_IMPORT:,} comments; {rate:,.0f}/s"
    return Bar("writing import", _IMPORT / rate, 1.0, detail, unit="s")
