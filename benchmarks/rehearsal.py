"""What a dry run of rules takes, and what the worst text costs a post.

A Disqus export is imported into an engine in memory, and rules are tried over all its comments:
one with a few words, and as many patterns as a site may have. Then the most patterns judge the
longest texts, of letters that grow when they are brought into one spelling. A dry run over the
1,145 comments of the shared export is to take less than 2 s, a text less than 50 ms. Usage:

    python -m benchmarks.rehearsal EXPORT [--rounds 5]

Prints a line for each: what, the best and the median of the rounds in milliseconds.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from comments import config
from comments.domain.text import sanitizing
from comments.jobs.importers import disqus, import_writer
from comments.moderation import dry_run, rulebook, rules
from comments.sites import site_settings
from comments.store import connection
from emulator import inprocess

ROOT = Path(__file__).resolve().parent.parent
SETTINGS = config.Settings(secret="the secret of a benchmark")  # noqa: S106 - of nobody
LETTERS = {"one word": "a", "short words": "ab ", "squares": "\u3316", "ligatures": "\ufdfa"}
AT_ONCE = 100


def main() -> None:
    """Import, try, and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("export", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    few = [
        rules.Rule(id="few", action=rules.Action.HOLD, words=("casino*", "cheap pill*"), links=0)
    ]
    most = [
        rules.Rule(
            id=f"r{number}",
            action=rules.Action.SPAM,
            words=tuple(f"*w{number}x{each}*" for each in range(AT_ONCE)),
        )
        for number in range(rulebook.MOST_PATTERNS // AT_ONCE)
    ]
    with inprocess.open_engine(None, indexes=ROOT / "index.yaml") as engine:
        store = connection.Store(inprocess.Channel(engine), project="bench")
        with store.context():
            _fill(options.export)
            for name, tried in (("a few words", few), ("the most patterns", most)):
                report = dry_run.rehearse("bench", tried, last=dry_run.MOST)
                what = f"dry run, {name}, {report.looked_at} comments"
                _show(
                    what,
                    options.rounds,
                    lambda tried=tried: dry_run.rehearse("bench", tried, last=dry_run.MOST),
                )
    for name, letter in LETTERS.items():
        said = rules.Said((letter * sanitizing.MAX_BODY)[: sanitizing.MAX_BODY], "")
        what = f"the longest text of {name}, the most patterns"
        _show(what, options.rounds, lambda said=said: rules.judge(most, said))


def _fill(export: Path) -> None:
    now = datetime.now(UTC)
    site = site_settings.add("bench", ["http://localhost"], scheme=SETTINGS.scheme, now=now)
    secret, scheme = SETTINGS.secret, SETTINGS.scheme
    with import_writer.plan(disqus.read, export, site=site, scheme=scheme, secret=secret) as plan:
        import_writer.write(plan, scheme=SETTINGS.scheme, now=now, progress=lambda _: None)


def _show(what: str, rounds: int, step: Callable[[], object]) -> None:
    spans = []
    for _ in range(rounds):
        start = time.perf_counter()
        step()
        spans.append(1000 * (time.perf_counter() - start))
    print(f"{what}: {min(spans):.1f} ms, median {statistics.median(spans):.1f}")


if __name__ == "__main__":
    main()
