"""All matchers and parsers are fast on texts that would keep careless ones busy for hours.

The kernel enforces a generous limit on processor time. A matcher with quadratic time would need
many times the limit; a worse matcher would never end.
"""

import functools
import re
import resource
import subprocess
import sys

import pytest

from tests.conftest import ROOT
from tests.support import programs, slow_matches

SECONDS = 60  # processor time limit; the run needs about a fifth of it


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
def test_no_matcher_or_parser_takes_longer_than_the_limit() -> None:
    done = _run(seconds=SECONDS)
    assert done.returncode == 0, done.stderr[-2_000:]
    tried, read, asked = map(int, done.stdout.split())
    assert tried > 50
    assert read > 10
    assert asked > 800


def test_the_limit_ends_a_pattern_that_never_finishes() -> None:
    """Prove that the test above can fail."""
    assert _run(r"(a|a)*\Z", seconds=3).returncode < 0


def test_every_pattern_of_the_package_is_found() -> None:
    """The program finds only patterns in module variables, so all patterns must be stored there."""
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
    # The only inline pattern, in `json_bodies`, is a set of four characters.
    assert elsewhere == ['for match in re.finditer(rb"[\\[\\]{}]", _STRING.sub(b"", data)):']
    # A pattern counts again for each module that imports it.
    assert len(slow_matches.patterns()) >= len(in_modules) > 50
