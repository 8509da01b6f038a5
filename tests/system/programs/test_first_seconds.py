"""Every worker survives its first seconds, even if requests arrive during its start."""

import os
from pathlib import Path

import pytest

from benchmarks import starts

pytestmark = pytest.mark.slow
STARTS = int(os.environ.get("STARTS", "1"))  # Starts for each number of workers


@pytest.mark.parametrize("workers", [2, 8])
def test_a_start_under_load_loses_no_worker_and_no_comment(tmp_path: Path, workers: int) -> None:
    for number in range(STARTS):
        folder = tmp_path / str(number)
        folder.mkdir()
        found = starts.begin(folder, workers, seconds=0.5)
        assert found.faults == [], found.log
        assert found.posts > 0
