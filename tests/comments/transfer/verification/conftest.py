"""Provide an imported file to tests of verifications."""

from collections.abc import Iterator

import pytest

from comments.domain import records
from comments.transfer.checking import checked_import
from tests.support.threads.sample_exports import planned, write


@pytest.fixture
def plan(garden: records.Site) -> Iterator[checked_import.CheckedImport]:
    """The plan of the sample export, which is imported."""
    with planned("disqus.xml") as plan:
        write(plan)
        yield plan
