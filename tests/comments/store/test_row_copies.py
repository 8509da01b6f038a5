"""Copies of rows follow the changes of other processes: at once, or within the stated times."""

import threading
import types
from collections.abc import Callable

import pytest

from comments import errors
from comments.domain import records
from comments.sites import site_settings
from comments.store import connection, reads
from comments.store.memory import row_copies
from comments.store.models import comment_rows
from tests.support import datastores

Watch = Callable[[float], None]


@pytest.fixture
def wait(monkeypatch: pytest.MonkeyPatch) -> Watch:
    """Let seconds pass for the copies."""
    now = [1000.0]
    monkeypatch.setattr(row_copies, "time", types.SimpleNamespace(monotonic=lambda: now[0]))

    def pass_by(seconds: float) -> None:
        now[0] += seconds

    return pass_by


@pytest.fixture
def change(datastore: datastores.Datastore, site: records.Site) -> Callable[[int], None]:
    """Change a setting of the site in another process."""
    other = datastore.connect()

    def enter(seconds: int) -> None:
        with other.context():
            site_settings.change("demo", cdn_seconds=seconds)

    def run(seconds: int) -> None:
        thread = threading.Thread(target=enter, args=(seconds,))
        thread.start()
        thread.join()

    return run


@pytest.fixture
def copies(store: connection.Store) -> row_copies.RowCopies[int]:
    def read(site_id: str) -> int:
        row = reads.get(comment_rows.site_key(site_id))
        if row is None:
            raise errors.NotFound("site", site_id)
        return int(row.cdn_seconds)

    return row_copies.RowCopies("Site", read)


@pytest.mark.embedded
def test_a_decision_follows_every_change_that_was_made_before_it(
    copies: row_copies.RowCopies[int], change: Callable[[int], None], wait: Watch
) -> None:
    for seconds in (1, 2, 3):
        change(seconds)
        assert copies.current("demo") == copies.get("demo") == seconds
    assert row_copies.delay() == 0
    change(4)
    assert copies.get("demo") == 3
    wait(row_copies.GLANCE)
    assert copies.get("demo") == 4


@pytest.mark.embedded
def test_a_row_is_read_only_after_a_change(
    site: records.Site, change: Callable[[int], None], store: connection.Store
) -> None:
    site_settings.current("demo")
    connection.take_costs()
    site_settings.current("demo")
    assert connection.take_costs() == (0, 0)
    change(1)
    assert site_settings.current("demo").cdn_seconds == 1
    site_settings.current("demo")
    assert connection.take_costs() == (1, 0)


def test_on_a_store_without_versions_the_age_of_a_copy_decides(
    copies: row_copies.RowCopies[int],
    change: Callable[[int], None],
    wait: Watch,
    store: connection.Store,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(store, "_version", None)
    assert row_copies.delay() == row_copies.RECENT
    before = copies.current("demo")
    change(5)
    assert copies.current("demo") == before
    wait(row_copies.RECENT)
    assert copies.get("demo") == before
    assert copies.current("demo") == copies.get("demo") == 5
    change(6)
    wait(row_copies.LONGEST - 0.1)
    assert copies.get("demo") == 5
    wait(0.1)
    assert copies.get("demo") == 6


def test_a_missing_row_is_looked_for_again(copies: row_copies.RowCopies[int]) -> None:
    for look in (copies.current, copies.get):
        with pytest.raises(errors.NotFound):
            look("nobody")
    assert copies.peek("nobody") is None
