"""Transactions that meet: what each concurrency mode makes of them.

Threads in processes that share one data file read, change and commit, again and again until the
transaction has committed, for a few seconds:

    one        all count up one entity
    hot        each counts up one of ten entities
    disjoint   each counts up an entity of its own
    comment    as a reply is posted: read one of ten parents, put a new child and the parent

The modes take turns in one run. Usage:

    python -m benchmarks.contention [--seconds 3] [--layouts 1x8,4x2] [--workloads one,hot]

A layout is processes x threads. Prints a Markdown table: commits in a second, aborts for each
commit, the median and the 99th percentile of the milliseconds from begin to commit with all
repeats, and the commits of the busiest worker by those of the least busy.
"""

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from emulator import errors, inprocess, protobufs

MODES = ("optimistic", "pessimistic")
WORKLOADS = ("one", "hot", "disjoint", "comment")
HOT = 10
_FIRST_PAUSE, _LONGEST_PAUSE = 0.002, 0.1  # seconds before a repeat, doubling, times a random


@dataclass
class Tally:
    """What one worker has done."""

    latencies: list[float] = field(default_factory=list)
    aborts: int = 0


class Client:
    """The few calls that the workloads make."""

    def __init__(self, engine: inprocess.Engine) -> None:
        self._engine = engine

    def begin(self) -> bytes:
        """Begin a transaction."""
        request = protobufs.BeginTransactionRequest(project_id="bench")
        answer = self._engine.call("BeginTransaction", request)
        return protobufs.BeginTransactionResponse.FromString(answer).transaction

    def read(self, name: str, transaction: bytes) -> int:
        """Return the number of a counter, 0 without one."""
        request = protobufs.LookupRequest(project_id="bench", keys=[key("Counter", name)])
        request.read_options.transaction = transaction
        found = protobufs.LookupResponse.FromString(self._engine.call("Lookup", request)).found
        return found[0].entity.properties["n"].integer_value if found else 0

    def commit(self, transaction: bytes, *entities: protobufs.Entity) -> None:
        """Commit a transaction that puts entities."""
        request = protobufs.CommitRequest(project_id="bench", mode=1, transaction=transaction)
        for entity in entities:
            request.mutations.add(upsert=entity)
        self._engine.call("Commit", request)


def key(kind: str, name: str) -> protobufs.Key:
    """A key of one element; no name: the engine gives an id."""
    made = protobufs.Key()
    element = made.path.add(kind=kind)
    if name:
        element.name = name
    return made


def entity(kind: str, name: str, number: int) -> protobufs.Entity:
    """An entity with a number and a text that no index holds."""
    made = protobufs.Entity(key=key(kind, name))
    made.properties["n"].integer_value = number
    made.properties["text"].string_value = "a sentence or two as somebody writes them " * 3
    made.properties["text"].exclude_from_indexes = True
    return made


def attempt(client: Client, workload: str, name: str) -> None:
    """One transaction, once."""
    transaction = client.begin()
    number = client.read(name, transaction) + 1
    written = [entity("Counter", name, number)]
    if workload == "comment":
        written.append(entity("Comment", "", number))
    client.commit(transaction, *written)


def names(workload: str, worker: str, seed: random.Random) -> Callable[[], str]:
    """What a worker's next transaction is about."""
    if workload == "one":
        return lambda: "one"
    if workload == "disjoint":
        return lambda: worker
    return lambda: f"hot{seed.randrange(HOT)}"


def work(engine: inprocess.Engine, workload: str, worker: str, end: float) -> Tally:
    """Commit one transaction after the other until the time is over."""
    client, tally, seed = Client(engine), Tally(), random.Random(worker)
    name = names(workload, worker, seed)
    while (begin := time.time()) < end:
        chosen, pause = name(), _FIRST_PAUSE
        while True:
            try:
                attempt(client, workload, chosen)
                break
            except errors.Aborted:
                tally.aborts += 1
                time.sleep(pause * seed.random())
                pause = min(2 * pause, _LONGEST_PAUSE)
        tally.latencies.append(time.time() - begin)
    return tally


def serve(options: argparse.Namespace) -> None:
    """One process: its threads start together at a given time; prints their tallies."""
    tallies: list[Tally] = []
    with inprocess.open_engine(options.serve, concurrency=options.mode) as engine:

        def run(number: int) -> None:
            worker = f"{options.process}-{number}"
            Client(engine).begin()
            time.sleep(max(0.0, options.start - time.time()))
            end = options.start + options.seconds
            tallies.append(work(engine, options.workloads, worker, end))

        threads = [
            threading.Thread(target=run, args=(number,)) for number in range(options.threads)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    json.dump([(tally.latencies, tally.aborts) for tally in tallies], sys.stdout)


def measure(mode: str, workload: str, layout: str, seconds: float) -> list[Tally]:
    """Run one workload in one mode on a fresh file."""
    processes, threads = map(int, layout.split("x"))
    with tempfile.TemporaryDirectory(prefix="contention-") as folder:
        path = Path(folder) / "data"
        inprocess.open_engine(path).close()
        start = time.time() + 1.0 + 0.5 * processes
        command = [sys.executable, "-m", "benchmarks.contention", "--serve", path]
        command += ["--mode", mode, "--workloads", workload, "--threads", threads]
        command += ["--start", start, "--seconds", seconds]
        children = [
            subprocess.Popen(
                [str(part) for part in [*command, "--process", number]], stdout=subprocess.PIPE
            )
            for number in range(processes)
        ]
        outputs = [child.communicate()[0] for child in children]
        if any(child.returncode for child in children):
            raise SystemExit(f"{mode} {workload} {layout} failed")
    return [Tally(*each) for output in outputs for each in json.loads(output)]


def row(workload: str, layout: str, mode: str, tallies: list[Tally], seconds: float) -> str:
    """One line of the table."""
    latencies = sorted(each for tally in tallies for each in tally.latencies)
    counts = [len(tally.latencies) for tally in tallies]
    aborts = sum(tally.aborts for tally in tallies) / len(latencies)
    median, high = statistics.median(latencies), latencies[int(0.99 * len(latencies))]
    return (
        f"| {workload} | {layout} | {mode} | {len(latencies) / seconds:.0f} | {aborts:.2f} | "
        f"{median * 1000:.1f} | {high * 1000:.1f} | {max(counts) / max(1, min(counts)):.1f} |"
    )


def main() -> None:
    """Measure every workload in every layout and both modes."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--layouts", default="1x8,4x2")
    parser.add_argument("--workloads", default=",".join(WORKLOADS))
    for name in ("--serve", "--mode"):  # what follows is for the processes it starts
        parser.add_argument(name, help=argparse.SUPPRESS)
    for name in ("--start", "--threads", "--process"):
        parser.add_argument(name, type=float if name == "--start" else int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options)
        return
    print("| workload | layout | mode | commits/s | aborts/commit | p50 ms | p99 ms | max/min |")
    print("|---|---|---|---|---|---|---|---|")
    for workload in options.workloads.split(","):
        for layout in options.layouts.split(","):
            for mode in MODES:
                tallies = measure(mode, workload, layout, options.seconds)
                print(row(workload, layout, mode, tallies, options.seconds), flush=True)


if __name__ == "__main__":
    main()
