"""The benchmark of lists finds what it stored."""

from pathlib import Path

import pytest

from benchmarks.lists import many_changes


@pytest.mark.embedded
def test_a_changed_set_and_an_inbox_contain_what_they_should(tmp_path: Path) -> None:
    """The benchmark of a million marks, with very few of them."""
    many, full = many_changes.run(tmp_path, ids=400, marks=1_200, replies=5)
    assert (many.wrong, full.wrong) == (0, 0)
    assert (full.reads, full.writes) == (2 + 5, 5)
