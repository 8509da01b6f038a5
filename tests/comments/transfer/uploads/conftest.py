"""Provide a clock and a file to tests of uploads."""

from pathlib import Path

import pytest

from tests.support.importing.uploading import SIZES, Clock
from tests.support.threads import sample_exports


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def file(tmp_path: Path) -> bytes:
    """An export with a thread for each of `SIZES`."""
    lines = sample_exports.threads_of(SIZES)
    return sample_exports.saved(tmp_path / "made.xml", *lines).read_bytes()
