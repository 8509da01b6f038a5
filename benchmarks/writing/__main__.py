"""Writing as fast as reading: replies, pages, starts and imports beside minimal servers.

One run measures everything in turns, prints the medians of the rounds, and checks that every
acknowledged reply is stored once and in order:

    posts     replies by one client and by eight, with and without post limits
    pages     first pages, first pages right after a post, and counts
    starts    starts until the first answer, memory, and the processor time of commands
    imports   an import of a generated export

The floors are bare handlers under gunicorn with the product's number of workers and threads: Flask
and WSGI, which return the same bytes for a page, and store a post with one durable INSERT. With
`--beside FOLDER`, a second checkout of this project takes turns too, with its own environment.

    python -m benchmarks.writing [--beside FOLDER] [--rounds 5] [--parts posts,pages,...] [--quick]

`python -m benchmarks writing` runs this checkout and prints only the bars. A bar on posts per
second compares the floor's with the product's, so less is better in every bar.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks.bars import Bar
from benchmarks.writing import checkouts, imports, pages, posts, results, start_costs

PARTS = ("pages", "posts", "starts", "imports")
_LATE_MS = 100.0  # A p99 below this is good enough, regardless of the floor's.
_LATE_RATIO = 3.0
_IMPORTED = 1_400  # Comments to import within a second.
_QUICK_IMPORT = 100


def measure(chosen: argparse.Namespace) -> tuple[results.Results, list[str]]:
    """Measure the chosen parts; return the results and the problems of what is stored."""
    found, problems = results.Results(), list[str]()
    large = checkouts.QUICK_LARGE if chosen.quick else checkouts.LARGE
    size = checkouts.QUICK_THREAD if chosen.quick else checkouts.THREAD
    seconds, crowd = (0.4, 0.1) if chosen.quick else (2.0, 0.4)
    rounds = chosen.rounds
    sizes = [checkouts.SMALL, large, *(size + number for number in range(rounds))]
    with tempfile.TemporaryDirectory(prefix="writing-") as name:
        folder = Path(name)
        trees = checkouts.stocked(folder, chosen.beside, sizes)
        if "pages" in chosen.parts:
            pages.measure(found, trees, folder, rounds=rounds, seconds=crowd, large=large)
        if "posts" in chosen.parts:
            problems = posts.measure(
                found, trees, folder, rounds=rounds, seconds=seconds, size=size
            )
        if "starts" in chosen.parts:
            start_costs.measure(found, trees, folder, rounds=rounds)
        if "imports" in chosen.parts:
            comments = _QUICK_IMPORT if chosen.quick else imports.COMMENTS
            imports.measure(found, trees, folder, rounds=rounds, comments=comments)
    return found, problems


def judged(
    found: results.Results, problems: Sequence[str], parts: Sequence[str], *, large: int
) -> Iterator[Bar]:
    """Yield the bars of the measured parts."""
    judges: dict[str, Callable[[], Iterator[Bar]]] = {
        "pages": lambda: _pages(found, large),
        "posts": lambda: _posts(found, problems),
        "starts": lambda: _starts(found),
        "imports": lambda: _imports(found),
    }
    for part in parts:
        yield from judges[part]()


def _posts(found: results.Results, problems: Sequence[str]) -> Iterator[Bar]:
    alone = f"{posts.ALONE}, p50 ms"
    detail = f"{found.median(alone):.1f} ms, floor {found.median(alone, results.WSGI):.1f} ms"
    yield Bar("writing alone", found.ratio(alone, results.WSGI), 6.5, f"{detail}; goal 4.5 x")
    limited = found.ratio(alone, results.THIS, results.LIMITED)
    yield Bar("writing alone, limits", limited, 1.25, "with limits / without")
    for case in (posts.ONE, posts.EIGHT):
        rate, late = f"{case}, posts/s", f"{case}, p99 ms"
        detail = f"{found.median(rate):.0f}/s, floor {found.median(rate, results.WSGI):.0f}/s"
        slower = found.ratio(rate, results.THIS, results.WSGI)
        yield Bar(f"writing {case}", slower, 5.0, f"{detail}; goal 2.9 x")
        limited = found.ratio(rate, results.LIMITED, results.THIS)
        yield Bar("writing the same, limits", limited, 1.25, "without limits / with")
        floor = found.median(late, results.WSGI)
        most = max(_LATE_MS, _LATE_RATIO * floor)
        yield Bar("writing the same, p99", found.median(late), most, f"floor {floor:.0f} ms", "ms")
        few, many = (f"{case}, {each}" for each in (results.FEWEST, results.MOST))
        detail = f"{found.median(few):.0f} to {found.median(many):.0f} posts in a round"
        yield Bar("writing the same, shares", _unfair(found, few, many), 2.0, detail)
    yield Bar("writing kept", len(problems), 0, "; ".join(problems[:3]), unit="problems")


def _unfair(found: results.Results, few: str, many: str) -> float:
    """Return the median of the rounds' ratios of the most posts of a client to the fewest."""
    both = results.Results()
    both.add(few, few, *found.values[few, results.THIS])
    both.add(few, many, *found.values[many, results.THIS])
    return both.ratio(few, few, many)


def _pages(found: results.Results, large: int) -> Iterator[Bar]:
    for size in (checkouts.SMALL, large):
        what = f"{pages.name(size)}, p50 ms"
        for floor, most in ((results.WSGI, 1.3), (results.FLASK, 1.0)):
            detail = f"{found.median(what):.2f} ms, {floor} {found.median(what, floor):.2f} ms"
            ratio = found.ratio(what, floor)
            yield Bar(f"writing page {size:,} / {floor.split()[0]}", ratio, most, detail)
    detail = f"{found.median(pages.AFTER):.1f} ms, a thread of {large:,}"
    yield Bar("writing page after post", found.ratio(pages.AFTER, results.FLASK), 5.0, detail)
    yield Bar("writing counts", found.median(pages.READS), 2, "for 50 pages", unit="reads")


def _starts(found: results.Results) -> Iterator[Bar]:
    ratio = found.ratio(start_costs.START, results.FLASK)
    detail = f"{found.median(start_costs.START):.2f} s / a server that only imports the libraries"
    yield Bar("writing start", ratio, 1.3, detail)
    detail = f"two workers, PSS; sum of RSS {found.median(start_costs.RSS):.0f} MB"
    yield Bar("writing memory", found.median(start_costs.PSS), 100, detail, unit="MB")
    slowest = max(start_costs.COMMANDS, key=found.median)
    yield Bar("writing commands", found.median(slowest), 0.25, f"slowest: {slowest}", unit="s")


def _imports(found: results.Results) -> Iterator[Bar]:
    rate, work = found.median(imports.RATE), found.median(imports.WORK)
    detail = f"for {_IMPORTED:,} comments; {rate:,.0f}/s, {work:,.0f} per processor second"
    yield Bar("writing import", _IMPORTED / rate, 1.0, detail, unit="s")


def bars(*, quick: bool) -> Iterator[Bar]:
    """Measure everything in this checkout."""
    yield from _run(asked(["--quick"] if quick else []))


def _run(chosen: argparse.Namespace) -> list[Bar]:
    found, problems = measure(chosen)
    print(results.table(found))
    large = checkouts.QUICK_LARGE if chosen.quick else checkouts.LARGE
    return list(judged(found, problems, chosen.parts, large=large))


def asked(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.writing", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--beside", type=_checkout, metavar="FOLDER", help="a second checkout")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--parts", type=_parts, default=PARTS, help=",".join(PARTS))
    parser.add_argument("--quick", action="store_true", help="only show that it works")
    chosen = parser.parse_args(arguments)
    chosen.rounds = chosen.rounds or (1 if chosen.quick else 5)
    return chosen


def _parts(text: str) -> tuple[str, ...]:
    wrong = set(text.split(",")) - set(PARTS)
    if wrong:
        raise argparse.ArgumentTypeError(f"unknown: {', '.join(wrong)}; known: {', '.join(PARTS)}")
    return tuple(part for part in PARTS if part in text.split(","))


def _checkout(text: str) -> Path:
    folder = Path(text).resolve()
    if not (folder / ".venv" / "bin" / "python").exists():
        raise argparse.ArgumentTypeError(f"{folder} is no checkout with an environment")
    return folder


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, then print the table and the bars."""
    chosen = asked(arguments)
    found = _run(chosen)
    print(*found, sep="\n")
    sys.exit(0 if all(bar.is_held for bar in found) else 1)


if __name__ == "__main__":
    main()
