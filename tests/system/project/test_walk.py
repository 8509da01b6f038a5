"""The walks in docs/architecture.md are those that a post and a page view take today."""

import sys

from tests.support import programs


def test_the_walks_are_up_to_date() -> None:
    made = programs.run([sys.executable, "scripts/walk.py", "--check"], cwd=programs.ROOT)
    assert (made.returncode, made.stdout) == (0, ""), made.stdout + made.stderr
