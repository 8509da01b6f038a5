"""Posting under contention: the embedded engine's two concurrency modes under the real post.

Processes with several threads each post comments as fast as they are answered, for a while, through
`posting.post` with its lines and retries, on one file that is awaited (`durable`):

    one       all answer one comment
    roots     all start discussions on one page
    apart     each thread answers a comment of its own

Prints, for each mode, comments per second, the median and the 99th percentile of a post in ms, how
unequal the workers fared (most over least), and posts that gave up (`Overloaded`). The modes take
turns. Usage:

    python -m benchmarks.posting [--processes 2] [--threads 8] [--seconds 5] [--rounds 3]
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

from comments import config, errors
from comments.domain import records
from comments.posting import new_comment
from comments.sites import site_settings
from comments.sites.site_request import SiteRequest
from comments.store import connection
from emulator import inprocess

ROOT = Path(__file__).resolve().parent.parent
MODES = ("optimistic", "pessimistic")
CASES = ("one", "roots", "apart")
SETTINGS = config.Settings(secret="a secret of the benchmark")  # noqa: S106 - signs nothing


def opened(path: str, mode: str) -> connection.Store:
    """Open the file in a mode."""
    engine = inprocess.open_engine(path, indexes=ROOT / "index.yaml", concurrency=mode)
    return connection.Store(inprocess.Channel(engine), project="bench")


def post(site: records.Site, parent: str | None, author: str) -> str:
    """Post one comment; returns its id."""
    draft = new_comment.Submission("page", parent, records.Author(author), "a comment of this page")
    return new_comment.post(draft, SiteRequest(site, SETTINGS, datetime.now(UTC))).comment.id


def work(path: str, mode: str, parents: list[str], seconds: float) -> list[list[float]]:
    """Post from as many threads as there are parents ("" for none); the seconds of each post.

    A post that gave up counts as a negative time.
    """
    store = opened(path, mode)
    start = threading.Barrier(len(parents))

    def run(number: int) -> list[float]:
        times = []
        with store.context():
            site = site_settings.get("bench")
            start.wait()
            end = time.perf_counter() + seconds
            while (now := time.perf_counter()) < end:
                try:
                    post(site, parents[number] or None, f"worker {number}")
                except errors.Overloaded:
                    times.append(now - time.perf_counter())
                else:
                    times.append(time.perf_counter() - now)
        return times

    with ThreadPoolExecutor(len(parents)) as pool:
        return list(pool.map(run, range(len(parents))))


def measure(
    case: str, mode: str, processes: int, threads: int, seconds: float
) -> list[list[float]]:
    """Run one case in one mode; the times of each worker."""
    with tempfile.TemporaryDirectory(prefix="posting-") as folder:
        path = str(Path(folder) / "store")
        with opened(path, mode).context():
            now = datetime.now(UTC)
            site = site_settings.add(
                "bench", ["https://a.example"], scheme=SETTINGS.scheme, now=now
            )
            count = processes * threads
            one = post(site, None, "first")
            wanted = {
                "one": lambda: [one] * count,
                "roots": lambda: [""] * count,
                "apart": lambda: [post(site, None, "own") for _ in range(count)],
            }
            parents = wanted[case]()
        shares = [parents[n : n + threads] for n in range(0, count, threads)]
        jobs = [
            subprocess.Popen(
                [sys.executable, "-m", "benchmarks.posting", "--worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                cwd=ROOT,
            )
            for _ in shares
        ]
        with ThreadPoolExecutor(len(jobs)) as pool:
            asked = [json.dumps([path, mode, share, seconds]) for share in shares]
            answers = pool.map(
                lambda pair: pair[0].communicate(pair[1])[0], zip(jobs, asked, strict=True)
            )
            return [times for answer in answers for times in json.loads(answer)]


def row(case: str, mode: str, workers: list[list[float]], seconds: float) -> str:
    """Return a line of the table."""
    done = sorted(each for times in workers for each in times if each > 0)
    lost = sum(each < 0 for times in workers for each in times)
    counts = [len(times) for times in workers]
    p99 = done[int(len(done) * 0.99)] * 1000
    unequal = max(counts) / max(1, min(counts))
    return (
        f"| {case} | {mode} | {len(done) / seconds:.0f} | {statistics.median(done) * 1000:.1f} "
        f"| {p99:.0f} | {unequal:.1f} | {lost} |"
    )


def main() -> None:
    """Measure all cases in both modes and print the table."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--processes", type=int, default=2)
    options.add_argument("--threads", type=int, default=8)
    options.add_argument("--seconds", type=float, default=5.0)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.worker:
        print(json.dumps(work(*json.loads(sys.stdin.read()))))
        return
    found: dict[tuple[str, str], list[list[float]]] = {}
    for _ in range(chosen.rounds):
        for case in CASES:
            for mode in MODES:
                workers = measure(case, mode, chosen.processes, chosen.threads, chosen.seconds)
                kept = found.setdefault((case, mode), [[] for _ in workers])
                for times, more in zip(kept, workers, strict=True):
                    times.extend(more)
    print("| case | mode | posts/s | p50 ms | p99 ms | most/least | gave up |")
    print("|---|---|---|---|---|---|---|")
    for (case, mode), workers in found.items():
        print(row(case, mode, workers, chosen.seconds * chosen.rounds))


if __name__ == "__main__":
    main()
