"""The widget stays small: what a page loads before it shows a comment."""

import gzip
from pathlib import Path

STATIC = Path(__file__).parents[2] / "comments" / "web" / "static"
# Bytes, gzip, all modules and the style sheet as they are stored, comments included.
LIMIT = 20_000


def test_the_widget_stays_below_twenty_kilobytes():
    files = [*STATIC.glob("*.js"), STATIC / "flatthread.css"]
    assert sum(len(gzip.compress(file.read_bytes())) for file in files) < LIMIT
