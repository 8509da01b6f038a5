"""Imports of 100,000 comments: time, memory, and what readers and posters notice.

Exports of 10,000 and of 100,000 comments, as Disqus XML and as JSON lines, are each imported in a
new process with a new store. Times are processor seconds of three phases: reading and checking the
file (the first pass), storing the comments, and verifying them. The parser is that of Python, which
reads every value and drops it. Then the command imports beside a server, while one client reads
first pages of the imported threads and one posts to them.
"""

import json
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree as ET

from benchmarks import exports, measuring, servers
from benchmarks.bars import Bar
from benchmarks.threads import loading
from comments.cli import import_files
from comments.sites import site_settings
from comments.transfer.checking import checked_import
from comments.transfer.formats import format_registry
from comments.transfer.importing import import_writer
from comments.transfer.verification import import_verification

SITE = "bench"
# The first pass / the parser. Python's JSON parser is much faster than its XML parser.
READING = {"disqus": 12.0, "generic": 45.0}
LINEAR, VERIFYING, MEMORY, WAITING = 1.5, 0.5, 2.0, 8.0
Costs = dict[str, float]
Waits = dict[str, list[float]]  # The seconds of each client's requests.


def bars(*, quick: bool) -> Iterator[Bar]:
    """Compare imports of two sizes, and the waits beside an import with those before it."""
    sizes = (100, 400) if quick else (10_000, 100_000)
    for system in exports.WRITERS:
        yield from _phases(system, *(measure(system, size) for size in sizes))
    with tempfile.TemporaryDirectory(prefix="import-") as folder:
        count, seconds = (300, 1.0) if quick else (20_000, 20.0)
        before, during = beside(Path(folder), count, seconds)
    for name, waits in during.items():
        p99 = measuring.p99(waits)
        detail = f"p99 {p99 * 1e3:.0f} ms, longest {max(waits) * 1e3:.0f} ms"
        yield Bar(f"import beside {name}", p99 / measuring.p99(before[name]), WAITING, detail)


def _phases(system: str, small: Costs, large: Costs) -> Iterator[Bar]:
    count, more = large["comments"], large["comments"] - small["comments"]
    each = f"{large['read'] * 1e6 / count:.0f} us of a comment"
    yield Bar(f"{system} first pass", large["read"] / large["parse"], READING[system], each)
    whole, whole_small = (costs["read"] + costs["write"] for costs in (large, small))
    growth = whole / whole_small * small["comments"] / count
    detail = f"{count:,.0f} / {small['comments']:,.0f} comments, {count / whole:,.0f}/s"
    yield Bar(f"{system} linear", growth, LINEAR, detail)
    yield Bar(f"{system} verify", large["verify"] / whole, VERIFYING, f"{large['verify']:.1f} s")
    grown = (large["peak"] - small["peak"]) * 1e3 / more
    detail = f"{small['peak']:.0f} and {large['peak']:.0f} MB"
    yield Bar(f"{system} memory", grown, MEMORY, detail, unit="kB")


def measure(system: str, count: int) -> Costs:
    """Import an export of `count` comments in a new process; return the costs of its phases."""
    with tempfile.TemporaryDirectory(prefix="import-") as folder:
        file, database = Path(folder) / "export", Path(folder) / "store.db"
        exports.write(file, system, exports.even_sizes(count))
        found: Costs = measuring.result(measuring.started(phases, system, file, database))
    return found


def phases(system: str, file: str, database: str) -> Costs:
    """Return the processor seconds of each phase, and the peak memory before the plain parser."""
    path, now, chosen = Path(file), datetime.now(UTC), format_registry.get(system)
    found: Costs = {}

    def timed(name: str, phase: Callable[[], Any]) -> Any:
        since = time.process_time()
        result = phase()
        found[name] = time.process_time() - since
        return result

    with measuring.stored(Path(database)), import_files.rare_collections():
        scheme, secret = loading.SCHEME, servers.SECRET
        site = site_settings.add(SITE, [exports.ORIGIN], scheme=scheme, now=now)
        plan = timed(
            "read",
            lambda: checked_import.plan(
                chosen.read, path, site=site, scheme=scheme, secret=secret, unit=chosen.unit
            ),
        )
        with plan:
            stored = timed("write", lambda: import_writer.write(plan, scheme=scheme, now=now))
            same = timed("verify", lambda: import_verification.verify(plan))
        found |= {"comments": stored.added, "peak": measuring.peak_memory()}
    if stored.added != plan.report.comments or same.differences:
        raise SystemExit(f"{stored} {same.differences}")
    timed("parse", lambda: parse(system, path))
    return found


def parse(system: str, path: Path) -> None:
    """Read every value in the file with the parser of the standard library."""
    if system == "disqus":
        for _, element in ET.iterparse(path):  # noqa: S314 - our own file
            if element.tag.endswith("post"):
                element.clear()
        return
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            json.loads(line)


def beside(folder: Path, count: int, seconds: float) -> tuple[Waits, Waits]:
    """Import beside a server; return the waits for `seconds` before, and during the import."""
    data, file = folder / "data", folder / "export.xml"
    exports.write(file, "disqus", exports.even_sizes(count))
    servers.command(data, "site", "add", SITE, "--origin", exports.ORIGIN).check_returncode()
    pages = range(1, len(list(exports.even_sizes(count))) + 1)
    names = [quote(f"blog.example/posts/{page}", "") for page in pages]
    paths = [f"/api/v1/sites/{SITE}/comments?thread={name}" for name in names]
    with servers.product(data, "/healthz") as server:
        for path in paths:
            _post(server, path, "first")
        server.settle()
        until = time.perf_counter() + seconds
        before = _waits(server, paths, lambda: time.perf_counter() < until)
        with servers.started(data, "import", str(file), "--site", SITE) as process:
            during = _waits(server, paths, lambda: process.poll() is None)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, "import")
    return before, during


def _waits(server: servers.Server, paths: list[str], goes_on: Callable[[], bool]) -> Waits:
    """Let a reader and a poster send requests in turn to all paths."""
    steps = {"reader": _read, "poster": _post}
    found: Waits = {name: [] for name in steps}
    failed: list[BaseException] = []

    def client(name: str) -> None:
        try:
            while goes_on():
                number, since = len(found[name]), time.perf_counter()
                steps[name](server, paths[number % len(paths)], f"{number}")
                found[name].append(time.perf_counter() - since)
        except BaseException as error:  # noqa: BLE001 - raised below, in the main thread
            failed.append(error)

    threads = [threading.Thread(target=client, args=(name,)) for name in steps]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    for error in failed:
        raise error
    return found


def _read(server: servers.Server, path: str, _text: str) -> None:
    _check(server.ask(path)[0], 200)


def _post(server: servers.Server, path: str, text: str) -> None:
    body = json.dumps({"name": "Ann", "body": f"I have read this: {text}"})
    _check(server.ask(path, {"Content-Type": "application/json"}, body)[0], 201)


def _check(status: int, expected: int) -> None:
    if status != expected:
        raise SystemExit(f"the server answered {status}")
