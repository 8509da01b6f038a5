"""An undo is refused if its import cannot be undone, and imports are refused meanwhile."""

from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from comments import errors
from comments.domain import records
from comments.events import audit_log
from comments.store import transactions
from comments.transfer.importing import import_journal
from tests.support.threads import sample_threads
from tests.support.threads import undone_imports as undone
from tests.support.threads.undone_imports import NOW, comment

pytestmark = pytest.mark.usefixtures("small_batches")


def test_an_undo_goes_to_the_audit_log(garden: records.Site, path: Path) -> None:
    found = undone.brought(path)
    undone.begin(found)
    undone.undo(found)
    (entry,) = audit_log.log("garden")
    assert (entry.subject, entry.verb) == (f"import:{found.id}", "undo-import")
    assert (entry.actor, entry.before, entry.after) == (sample_threads.ADA, "imported", "undone")


def test_an_import_is_refused_that_cannot_be_undone(garden: records.Site, path: Path) -> None:
    found = undone.brought(path)
    for moment, said in (
        (found.ends, "could be undone until 2026-02-02 03:04"),
        (found.ends + timedelta(days=9), "30 days after it began"),
    ):
        with pytest.raises(errors.ImportRefused, match=said):
            undone.begin(found, moment)
    with pytest.raises(errors.ImportRefused, match="has no import"):
        undone.begin(msgspec.structs.replace(found, id="unknown"))
    running = msgspec.structs.replace(found, id="running", added=None, undone=None)
    store(running)
    with pytest.raises(errors.ImportRefused, match="running of export into garden is still"):
        undone.begin(found)
    late = NOW + timedelta(seconds=import_journal.LATE)
    undone.begin(found, late)
    undone.finish(found, late)
    with pytest.raises(errors.ImportRefused, match="undone already, at 2026-01-03"):
        undone.begin(found, late)


def test_no_import_begins_while_another_is_being_undone(
    garden: records.Site, path: Path, tmp_path: Path
) -> None:
    found = undone.brought(path)
    undone.begin(found)
    other = undone.saved(tmp_path / "other", [comment("99")])
    with pytest.raises(errors.ImportRefused, match=f"import {found.id} into garden is being"):
        undone.brought(other)
    undone.finish(found)
    assert undone.brought(other).added == 1


def store(changed: import_journal.Import) -> None:
    transactions.transaction(
        lambda: transactions.apply(import_journal.import_writes("garden", changed))
    )
