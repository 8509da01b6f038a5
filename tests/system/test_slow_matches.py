"""All matchers and parsers are fast on texts that would keep careless ones busy for hours.

The kernel enforces a generous limit on the processor time of each text. A matcher with quadratic
time would need a few times the limit; a worse matcher would never end.
"""

import re
import subprocess
import sys

import pytest

from tests.conftest import ROOT
from tests.support import programs, slow_matches


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.support.slow_matches", *arguments],
        cwd=ROOT,
        env=programs.environment(),
        capture_output=True,
        check=False,
        text=True,
    )


@pytest.mark.slow
def test_no_matcher_or_parser_takes_longer_than_the_limit() -> None:
    done = _run()
    assert done.returncode == 0, done.stderr[-2_000:]
    tried, read, asked = map(int, done.stdout.split())
    assert tried > 50
    assert read > 10
    assert asked > 800


@pytest.mark.slow
def test_the_limit_ends_a_pattern_that_never_finishes() -> None:
    """Prove that the test above can fail."""
    assert _run(r"(a|a)*\Z").returncode < 0


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
