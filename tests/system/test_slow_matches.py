"""Claims about texts that would take a matcher hours: whatever reads them is done in a moment.

What is claimed is an end within a generous limit of processor time, which the kernel holds: a
matcher that takes the square of a text's time would need many times as much, one that takes more
would never end.
"""

import functools
import re
import resource
import subprocess
import sys

import pytest

from tests.conftest import ROOT
from tests.support import programs, slow_matches

SECONDS = 60  # of processor time; it takes about a fifth


def _run(*arguments: str, seconds: int) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.support.slow_matches", *arguments],
        cwd=ROOT,
        env=programs.environment(),
        capture_output=True,
        check=False,
        text=True,
        preexec_fn=functools.partial(resource.setrlimit, resource.RLIMIT_CPU, (seconds, seconds)),
    )


@pytest.mark.slow
def test_nothing_that_reads_a_text_takes_more_than_a_moment() -> None:
    done = _run(seconds=SECONDS)
    assert done.returncode == 0, done.stderr[-2_000:]
    tried, read, asked = map(int, done.stdout.split())
    assert tried > 50
    assert read > 10
    assert asked > 800


def test_a_pattern_that_never_ends_is_ended() -> None:
    """That it can fail."""
    assert _run(r"(a|a)*\Z", seconds=3).returncode < 0


def test_every_pattern_of_the_package_is_found() -> None:
    """Those that stand where no module's variable leads to them would not be tried."""
    written = [
        line
        for path in (ROOT / "comments").rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search(
            r"\bre\.(compile|search|match|fullmatch|sub|subn|split|findall|finditer)\(", line
        )
    ]
    in_modules = [line for line in written if re.match(r"_?[A-Z_]+ = re\.compile\(", line)]
    elsewhere = [line.strip() for line in written if line not in in_modules]
    # The one of `web/bodies` that is written where it is used: a set of four characters.
    assert elsewhere == ['for match in re.finditer(rb"[\\[\\]{}]", _STRING.sub(b"", data)):']
    # A module that another one imports a pattern from shows it there too.
    assert len(slow_matches.patterns()) >= len(in_modules) > 50
