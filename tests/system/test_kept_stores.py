"""Each store that a release wrote (`kept_store`) is opened, read, changed and upgraded."""

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from comments import app as apps
from comments import errors
from comments.domain.ids import sorthash
from comments.events import audit_log
from comments.posting import own_comment
from comments.sites import site_settings
from comments.store import connection, reads
from comments.transfer.importing import import_journal, import_undo
from comments.transfer.verification import import_verification
from comments.tree.lists import ordered_query
from comments.upkeep import scheduler, store_upgrade
from comments.upkeep.integrity import recount, repair
from comments.upkeep.migrations import rescheming, store_format, upgrades
from datastore_emulator import data_files
from tests.support import kept_store
from tests.support.people import account_holders
from tests.support.threads import compaction, sample_exports, sample_threads, sample_votes

pytestmark = pytest.mark.embedded

NAME = kept_store.THREADS[0]
LATER = kept_store.LATER


@pytest.fixture(params=kept_store.KEPT, ids=lambda path: path.name.partition(".")[0])
def kept(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    return path


@pytest.fixture
def store(kept: Path, tmp_path: Path) -> Iterator[connection.Store]:
    """The store, opened and entered as a service does, with all its upgrades."""
    kept_store.unpack(kept, tmp_path)
    with kept_store.open_store(tmp_path) as opened:
        assert store_format.read() is not None
        store_upgrade.begin(kept_store.settings(tmp_path), None, now=LATER)
        upgrades.go_on(steps=None)
        yield opened


def assert_sound() -> None:
    for site in site_settings.every():
        assert recount.site(site.id, tell=print, fixes=False) == 0
        for name in scheduler.threads(site.id):
            assert repair.find_problems(site_settings.scheme_of(site.id), name) == []


def seen(kept: Path) -> Any:
    return json.loads(kept.with_name(kept.name.replace(".db.gz", ".json")).read_text())


def test_the_current_format_is_kept() -> None:
    assert [path.name for path in kept_store.KEPT] == [
        f"format-{number}.db.gz" for number in range(1, store_format.FORMAT + 1)
    ]
    assert sum(path.stat().st_size for path in kept_store.KEPT) < 100_000 * store_format.FORMAT


def test_readers_see_what_they_saw(kept: Path, store: connection.Store) -> None:
    assert kept_store.shown() == seen(kept)
    client = apps.create_app(sample_threads.SETTINGS, store).test_client()
    for thread, rows in seen(kept).items():
        site, _, name = thread.partition(" ")
        page = client.get(
            f"/api/v1/sites/{site}/comments", query_string={"thread": name, "limit": "all"}
        ).get_json()
        assert [each["html"] for each in page["comments"]] == [row["html"] for row in rows]


def test_nothing_in_it_is_wrong(store: connection.Store, tmp_path: Path) -> None:
    assert_sound()
    with sample_exports.planned("disqus.xml") as plan:
        found = import_verification.verify(plan, secret=sample_exports.SECRET)
    assert (found.explained_count, found.unexplained_count) == (0, 0)
    assert found.in_store.comments > 0
    assert data_files.check(kept_store.settings(tmp_path).data_file).problems == []


@pytest.mark.usefixtures("store")
def test_people_go_on_writing() -> None:
    site = site_settings.get("demo")
    rows = {row.body: row for row in ordered_query.thread(NAME)}
    reply = sample_threads.post(site, "a reply", rows["1.1.1"].id, now=LATER)
    own_comment.edit(
        rows["2"].id, author_id=rows["2"].author.id, body="2, edited", revision=None,
        settings=sample_threads.SETTINGS, now=kept_store.NOW + timedelta(minutes=6),
    )  # fmt: skip
    sample_votes.vote(rows["2.1"], "later", now=LATER)
    sample_votes.count_all(LATER + timedelta(days=1))
    compaction.whole(NAME)
    found = {row.body: row for row in ordered_query.thread(NAME)}
    assert found["a reply"].sort_hash.startswith(found["1.1.1"].sort_hash)
    assert (found["2, edited"].id, found["2.1"].score) == (rows["2"].id, 2)
    assert reply.id in {row.id for row in found.values()}
    assert_sound()
    account_holders.sign_in("ann", now=LATER)
    with pytest.raises(errors.FlatthreadError):
        account_holders.sign_in("ann", "wrong password", now=LATER)


@pytest.mark.usefixtures("store")
def test_a_site_moves_to_another_scheme() -> None:
    before = [row.body for row in ordered_query.thread(NAME)]
    scheme = sorthash.Scheme("0123456789", 3, 10)
    rescheming.begin("demo", scheme, sample_threads.ADA, now=LATER)
    while rescheming.finish(steps=20):
        pass
    assert site_settings.scheme_of("demo") == scheme
    assert [row.body for row in ordered_query.thread(NAME)] == before
    assert_sound()


@pytest.mark.usefixtures("store")
def test_its_import_is_undone() -> None:
    (found,) = import_journal.recent_imports("garden")
    act = audit_log.Act(sample_threads.ADA, import_undo.VERB)
    import_undo.begin("garden", found.id, act, now=LATER)
    for _ in range(4):
        done = import_undo.go_on("garden", found.id, now=LATER)
        sample_votes.count_all(LATER)
        compaction.forget()
        scheduler.compact_whole(done.waiting, wait=lambda _: None)
        if done.found.undone:
            break
    assert done.found.undone == LATER
    assert not list(ordered_query.thread(sample_exports.ROSES))
    assert {row.site for row in sample_exports.rows()} == {"demo"}
    assert_sound()


def test_after_a_change_of_the_renderer_its_comments_are_rendered_again(
    kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept_store.unpack(kept, tmp_path)
    newer = upgrades._WALKS[-1]._replace(job="upgrades/text/newer")
    monkeypatch.setattr(upgrades, "_WALKS", (*upgrades._WALKS[:-1], newer))
    with kept_store.open_store(tmp_path):
        *others, pending = upgrades.pending_scans()
        assert (pending.rows, pending.has_begun) == (reads.count(reads.Query("Comment")), False)
        upgrades.begin()
        assert upgrades.go_on(steps=None) == pending.rows + sum(scan.rows for scan in others)
        assert upgrades.pending_scans() == []
        assert kept_store.shown() == seen(kept)
        assert_sound()
