"""Imports that an earlier release made, one of them interrupted, can be resumed and undone.

The fixture contains all rows of a site into which the code of November 2026 imported a whole file
of WordPress, and two transactions of three comments of a file of Disqus.
"""

import pytest
from google.cloud.datastore_v1.types import datastore as rpc_types
from google.cloud.datastore_v1.types import entity as entity_types
from google.protobuf import json_format

from comments.store import connection
from comments.transfer.formats import disqus, wordpress
from comments.transfer.importing import import_journal, import_undo, import_writer
from comments.transfer.verification import import_verification
from comments.upkeep.migrations import upgrades
from tests.support.threads import sample_exports
from tests.support.threads import undone_imports as undone
from tests.support.threads.sample_exports import NOW, SCHEME

ROWS = sample_exports.IMPORTS / "earlier_release.jsonl"
FILES = {"wordpress": wordpress.read, "disqus": disqus.read}


@pytest.fixture
def imports(store: connection.Store) -> dict[str, import_journal.Import]:
    """Store the rows, and return the imports by system."""
    for line in ROWS.read_text().splitlines():
        row = json_format.Parse(line, entity_types.Entity.pb()())
        row.key.partition_id.project_id = store.request_fields()["project_id"]
        mutation = rpc_types.Mutation.pb()(upsert=row)
        request = rpc_types.CommitRequest.pb()(
            **store.request_fields(), mode=2, mutations=[mutation]
        )
        store.commit(request, timeout=5.0)
    undone.Clock.current()
    return {each.system: each for each in import_journal.recent_imports("garden")}


def verified(system: str) -> tuple[int, int, bool]:
    """Return the numbers of stored comments and of differences, and whether the import is open."""
    with sample_exports.planned(f"{system}.xml", FILES[system]) as plan:
        found = import_verification.verify(plan)
    return (
        found.in_store.comments,
        found.explained_count + found.unexplained_count,
        found.is_unfinished,
    )


def test_an_interrupted_import_of_an_earlier_release_is_completed(
    imports: dict[str, import_journal.Import],
) -> None:
    assert verified("wordpress") == (9, 0, False)
    assert verified("disqus") == (6, 6, True)
    with sample_exports.planned("disqus.xml") as plan:
        summary = import_writer.write(plan, scheme=SCHEME, now=NOW, clock=lambda: NOW)
    undone.deliver()
    assert (summary.added, summary.present) == (6, 6)
    assert verified("disqus") == (12, 0, False)
    assert import_journal.get("garden", imports["disqus"].id).added == 12


def test_imports_of_an_earlier_release_are_undone(
    imports: dict[str, import_journal.Import],
) -> None:
    later = NOW + import_journal.TERM / 2
    assert import_undo.preview("garden", imports["wordpress"].id)[:3] == (9, 0, 2)
    for found in imports.values():
        assert undone.undo(found, later).undone == later
    assert (undone.bodies(), undone.threads(), undone.batches()) == ({}, [], 0)
    upgrades.begin()
    upgrades.go_on(steps=None)
    undone.assert_sound()
