"""Import exports with the `import` command, and measure comments per second.

    python -m benchmarks.import_speed [FILE ...] [--comments N] [--rounds N] [--beside FOLDER]
                                      [--system SYSTEM]

Each run is a new process with a new data folder, from its start to its end: reading, checking,
storing and counting. Without a FILE, the benchmark generates a Disqus export whose threads have
many sizes (the second largest is half as large as the largest, and so on) and begin a day apart.
The processor time is that of the whole process. With `--beside FOLDER`, a second checkout of this
project runs in turn, with its own environment. Each run must store every comment, and a second run
must add none.
"""

import argparse
import html
import os
import random
import re
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.serving import gunicorn_process
from benchmarks.threads import conversations, shapes

COMMENTS = 20_000
LARGEST = 2_500  # comments in the largest thread
BEGAN = datetime(2015, 1, 1, tzinfo=UTC)
SITE = "bench"
_ADDED = re.compile(r"Added ([\d,]+) comments? in ([\d,]+) threads?; ([\d,]+) existed already")


def export(count: int) -> Iterator[str]:
    """Yield the lines of a Disqus export of `count` comments."""
    chance = random.Random(count)
    yield '<?xml version="1.0" encoding="utf-8"?>'
    yield '<disqus xmlns="http://disqus.com" xmlns:dsq="http://disqus.com/disqus-internals">'
    whole = conversations.thread(shapes.grown(count))
    left, thread = list(reversed(whole)), 0
    while left:
        thread += 1
        size = min(len(left), max(1, LARGEST // thread))
        page = f"https://blog.example/posts/{thread}"
        yield f'<thread dsq:id="{thread}"><id/><link>{page}</link><title>Post {thread}</title>'
        yield "<isClosed>false</isClosed><isDeleted>false</isDeleted></thread>"
        here = set[str]()
        created = BEGAN + thread * timedelta(days=1)
        for said in (left.pop() for _ in range(size)):
            here.add(said.id)
            created += timedelta(seconds=int(chance.expovariate(1 / 10_000)))
            parent = f'<parent dsq:id="{said.parent}"/>' if said.parent in here else ""
            yield _post(said, thread, parent, created, chance)
    yield "</disqus>"


def _post(
    said: conversations.Said, thread: int, parent: str, created: datetime, chance: random.Random
) -> str:
    """Return a post with one to three paragraphs; one in eight has a link."""
    words = said.body.split()
    third = len(words) // chance.choice((1, 1, 2, 3)) + 1
    texts = (" ".join(words[start : start + third]) for start in range(0, len(words), third))
    body = "".join(f"<p>{text}</p>" for text in texts)
    if chance.random() < 1 / 8:
        body += f'<p><a href="https://elsewhere.example/{thread}" rel="nofollow">{words[0]}</a></p>'
    reader = min(int(chance.paretovariate(0.7)), 5_000)  # a few readers write a lot
    return (
        f'<post dsq:id="{said.id}"><message>{html.escape(body)}</message>'
        f"<createdAt>{created:%Y-%m-%dT%H:%M:%SZ}</createdAt><isDeleted>false</isDeleted>"
        f"<isSpam>false</isSpam><author><name>reader {reader}</name>"
        f"<email>reader{reader}@example.org</email></author>"
        f'<thread dsq:id="{thread}"/>{parent}</post>'
    )


def run(root: Path, data: Path, arguments: list[str]) -> tuple[str, float, float]:
    """Run a command of a checkout; return its output, and its wall and processor seconds."""
    python = str(root / ".venv" / "bin" / "python")
    environ = gunicorn_process.without_settings() | {"DATA_DIR": str(data)}
    start = time.perf_counter()
    with subprocess.Popen(
        [python, "-m", "flask", "--app", "main", *arguments],
        cwd=root,
        env=environ,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        output = process.stdout.read() if process.stdout is not None else ""
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - start
    if process.returncode:
        raise SystemExit(f"{arguments} failed: {output}")
    return output, wall, used.ru_utime + used.ru_stime


def numbers(output: str) -> tuple[int, int, int]:
    """Return the numbers of added comments, threads, and comments that existed."""
    found = _ADDED.search(output)
    if found is None:
        raise SystemExit(f"unexpected output: {output}")
    added, threads, existed = (int(each.replace(",", "")) for each in found.groups())
    return added, threads, existed


def imported(root: Path, system: str, file: Path) -> tuple[int, float, float]:
    """Import a file into a new store; return the comments, and wall and processor seconds."""
    with tempfile.TemporaryDirectory(prefix="import-") as folder:
        data = Path(folder) / "data"
        # `site add` also creates the demo site, so the measured run creates nothing else.
        run(root, data, ["site", "add", SITE, "--origin", "https://blog.example"])
        command = ["import", system, str(file), "--site", SITE]
        output, wall, used = run(root, data, command)
        added, _, _ = numbers(output)
        again, _, _ = run(root, data, command)
        if numbers(again)[0] or numbers(again)[2] != added:
            raise SystemExit(f"a second run of {file} added comments: {again}")
    return added, wall, used


def main() -> None:
    """Measure every file in every checkout in turns, and print a table of medians."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("files", nargs="*", type=Path)
    options.add_argument("--system", default="disqus")
    options.add_argument("--comments", type=int, default=COMMENTS)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--beside", type=Path)
    chosen = options.parse_args()
    roots = {"this": gunicorn_process.ROOT}
    if chosen.beside:
        roots["beside"] = chosen.beside.resolve()
    print("| export | checkout | comments | comments/s | comments per processor second |")
    print("|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="export-") as folder:
        files = [path.resolve() for path in chosen.files]
        if not files:
            files = [Path(folder) / "generated.xml"]
            files[0].write_text("\n".join(export(chosen.comments)), encoding="utf-8")
        for file in files:
            found: dict[str, list[tuple[int, float, float]]] = {name: [] for name in roots}
            for number in range(chosen.rounds):
                turns = list(roots.items())
                for name, root in turns if number % 2 else reversed(turns):
                    found[name].append(imported(root, chosen.system, file))
            for name, runs in found.items():
                wall = statistics.median(count / wall for count, wall, _ in runs)
                used = statistics.median(count / used for count, _, used in runs)
                print(f"| {file.name} | {name} | {runs[0][0]} | {wall:.0f} | {used:.0f} |")


if __name__ == "__main__":
    main()
