"""Faults of the disk and the data end a call at once, with a code of their own."""

from pathlib import Path
from typing import Any

import pytest

from comments import errors
from comments.domain import records
from comments.store import connection, reads
from comments.store.folder import storage_faults
from comments.store.models import comment_rows
from datastore_emulator import errors as engine_errors
from tests.support.store_interceptors import InterceptorSlot
from tests.support.threads import sample_threads

FAULTS = {
    engine_errors.DiskFull: storage_faults.FULL,
    engine_errors.Damaged: storage_faults.DAMAGED,
    engine_errors.Unwritable: storage_faults.UNWRITABLE,
}


@pytest.mark.embedded
@pytest.mark.parametrize("kind", FAULTS)
def test_a_storage_fault_is_named_after_one_attempt(
    store: connection.Store,
    site: records.Site,
    interceptor: InterceptorSlot,
    caplog: pytest.LogCaptureFixture,
    kind: type[engine_errors.StorageFault],
) -> None:
    asked: list[str] = []

    def fail(method: str, *_: Any) -> bytes:
        asked.append(method)
        raise kind("no").about("/srv/data/flatthread.db")

    interceptor.use(fail)
    for act in (
        lambda: sample_threads.post(site, "text"),
        lambda: reads.get(comment_rows.site_key("demo")),
    ):
        asked.clear()
        with pytest.raises(errors.StorageFault) as refused:
            act()
        assert (refused.value.code, refused.value.folder) == (FAULTS[kind], "/srv/data")
        assert len(asked) == 1, asked
    # The log names the folder, once.
    assert len([line for line in caplog.messages if "/srv/data" in line]) == 1


def test_a_folder_without_the_file_cannot_be_written(tmp_path: Path) -> None:
    assert storage_faults.writing_fault(tmp_path) is None
    missing = storage_faults.writing_fault(tmp_path / "gone")
    assert missing is not None
    assert (missing.code, missing.folder) == (storage_faults.UNWRITABLE, f"{tmp_path}/gone")
