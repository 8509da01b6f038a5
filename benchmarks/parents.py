"""Replies to different parents of one thread, beside replies in different threads.

64 writers in one process post through the gRPC door of an engine in a process of its own
(pessimistic, on disk), as fast as they are answered:

    one thread   each answers a comment of its own, all in one thread, whose counters have spread
    apart        each answers a comment of its own, each in a thread of its own

The cases take turns. Prints posts a second of each, their ratio in each round (the bar is 0.7) and
how many posts gave up. Usage:

    python -m benchmarks.parents [--writers 64] [--seconds 4] [--rounds 5]
"""

import argparse
import contextlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import grpc

from benchmarks import processes
from comments import config, errors
from comments.domain import records
from comments.posting import new_comment
from comments.sites import site_settings
from comments.sites.site_request import SiteRequest
from comments.store import connection
from comments.tree.counters import sharding

SITE = "bench"
BAR = 0.7
SETTINGS = config.Settings(secret="a secret of the benchmark")  # noqa: S106 - signs nothing


class Place(NamedTuple):
    """A comment to answer, and the thread it is in."""

    thread: str
    parent: str


class Done(NamedTuple):
    """What writers got done."""

    rate: float
    lost: int


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    """Run an engine's server on a file; where it listens."""
    port = processes.free_port()
    indexes = processes.ROOT / "index.yaml"
    command = [sys.executable, "-m", "emulator", "--port", str(port), "--indexes", str(indexes)]
    command += ["--data", str(folder / "data"), "--concurrency", "pessimistic"]
    with subprocess.Popen(command, cwd=processes.ROOT, stdout=subprocess.DEVNULL) as process:
        try:
            yield f"127.0.0.1:{port}"
        finally:
            process.terminate()


def post(thread: str, parent: str | None, author: str) -> str:
    """Post a comment; its id."""
    who = records.Author(author, id=f"g:{author}")
    draft = new_comment.Submission(thread, parent, who, "a comment of this page")
    return new_comment.post(
        draft, SiteRequest(site_settings.get(SITE), SETTINGS, datetime.now(UTC))
    ).comment.id


def write(store: connection.Store, places: Sequence[Place], seconds: float) -> Done:
    """Post from one writer for each place."""
    start = threading.Barrier(len(places) + 1)

    def run(number: int) -> tuple[int, int]:
        posted = lost = 0
        with store.context():
            start.wait()
            end = time.perf_counter() + seconds
            while time.perf_counter() < end:
                try:
                    post(*places[number], f"writer {number}")
                except errors.Overloaded:
                    lost += 1
                else:
                    posted += 1
        return posted, lost

    with ThreadPoolExecutor(len(places)) as pool:
        jobs = [pool.submit(run, number) for number in range(len(places))]
        start.wait()
        began = time.perf_counter()
        done = [job.result() for job in jobs]
        took = time.perf_counter() - began
    return Done(sum(posted for posted, _ in done) / took, sum(lost for _, lost in done))


def measure(writers: int, seconds: float, rounds: int) -> list[dict[str, Done]]:
    """Measure both cases in turns."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="parents-")))
        channel = grpc.insecure_channel(stack.enter_context(served(folder)))
        grpc.channel_ready_future(channel).result(timeout=60)
        store = connection.Store(channel, project="bench", deadline=60.0)
        with store.context():
            site_settings.add(SITE, [], scheme=SETTINGS.scheme, now=datetime.now(UTC))
            cases = {
                "one thread": [Place("page", post("page", None, "first")) for _ in range(writers)],
                "apart": [
                    Place(f"page {number}", post(f"page {number}", None, "first"))
                    for number in range(writers)
                ],
            }
            sharding.spread(records.ThreadName(SITE, "page"), writers)
        found: list[dict[str, Done]] = []
        for number in range(rounds):
            turns = list(cases.items())
            turns = turns if number % 2 else turns[::-1]
            found.append({case: write(store, places, seconds) for case, places in turns})
        channel.close()
    return found


def main() -> None:
    """Measure, and print the table."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--writers", type=int, default=64)
    options.add_argument("--seconds", type=float, default=4.0)
    options.add_argument("--rounds", type=int, default=5)
    chosen = options.parse_args()
    rounds = measure(chosen.writers, chosen.seconds, chosen.rounds)
    print("| one thread, posts/s | apart, posts/s | ratio | gave up |")
    print("|---|---|---|---|")
    ratios = []
    for each in rounds:
        one, apart = each["one thread"], each["apart"]
        ratios.append(one.rate / apart.rate)
        lost = one.lost + apart.lost
        print(f"| {one.rate:.0f} | {apart.rate:.0f} | {ratios[-1]:.2f} | {lost} |")
    print(f"\nmedian ratio {statistics.median(ratios):.2f}, bar {BAR}")


if __name__ == "__main__":
    main()
