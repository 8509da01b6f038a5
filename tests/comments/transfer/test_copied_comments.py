"""A staging copy equals its original at one moment, whatever interrupts the copying."""

import signal
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import pytest

from comments import errors
from comments.domain import records
from comments.domain.ids import imported_ids
from comments.posting import own_comment
from comments.sites import site_deletion
from comments.store import connection
from comments.transfer.checking import import_batches
from comments.transfer.uploads import site_copy, upload_steps, upload_store
from comments.transfer.uploads.upload_store import UploadState
from datastore_emulator import inprocess
from tests.comments.transfer.exporting import test_round_trip
from tests.support import datastores, dying_programs, prepared_stores, stored_state
from tests.support.exporting import moved_sites, site_exports
from tests.support.importing.uploading import current
from tests.support.threads import sample_threads
from tests.support.threads.sample_exports import SECRET

NEW = "demo-staging"
NOW = sample_threads.START
ADA = records.Actor("cli", "Ada")
WRITERS = 20


def _copy(new: str = NEW) -> None:
    site_copy.copy("demo", new, ["https://staging.example"], ADA, now=NOW, with_comments=True)


def _finish(new: str = NEW) -> upload_store.Upload:
    while upload_steps.do_next_step(new, SECRET):
        pass
    return current(new)


def _lines(folder: Path, site: str, new: str = NEW) -> list[dict[str, Any]]:
    """Return the counters, threads and comments of a site, with ids as in the copy."""
    path = site_exports.save(folder / f"{site}.jsonl", site)
    lines = [
        each for each in site_exports.lines(path) if each["kind"] not in {"header", "settings"}
    ]
    if site != new:
        for line in lines:
            for name in {"id", "parent", "reply_to", "named_by"} & line.keys():
                if line["kind"] == "comment" or name == "named_by":
                    line[name] = imported_ids.comment_id(new, imported_ids.OWN, line[name])
    for line in lines:
        line.pop("source", None)
    del lines[-1]["sha256"]
    return lines


@pytest.mark.slow
def test_a_copy_equals_its_original_which_does_not_change(
    store: connection.Store, tmp_path: Path
) -> None:
    app = test_round_trip.grown(store, tmp_path, seed=1, steps=150)
    test_round_trip.settle()
    before = site_exports.content(site_exports.save(tmp_path / "a.jsonl", "demo", site_exports.ALL))
    said = moved_sites.run(
        app, "site", "copy", "demo", NEW, "--origin", "https://staging.example", "--comments"
    )
    test_round_trip.settle()
    expected = _lines(tmp_path, "demo")
    assert _lines(tmp_path, NEW) == expected
    assert said.splitlines()[-1] == f"Copied {expected[-1]['comments']} comments."
    assert {"counter", "thread", "comment"} <= {line["kind"] for line in expected}
    after = site_exports.content(site_exports.save(tmp_path / "b.jsonl", "demo", site_exports.ALL))
    assert after == before
    assert list(stored_state.rows("ImportPart")) == []
    for site in ("demo", NEW):
        assert "0 differences" in moved_sites.run(app, "recount", site)
        moved_sites.run(app, "repair", "--site", site)  # Exits with 1 if there are problems


def _threads(folder: Path, site: str) -> list[dict[str, Any]]:
    return [line for line in _lines(folder, site) if line["kind"] != "end"]


class _Writers:
    """Threads that answer themselves until the `with` block ends; `texts` is what each posted."""

    def __init__(self, store: connection.Store, site: records.Site) -> None:
        self._store, self._site = store, site
        self._is_over, self._ready = threading.Event(), threading.Barrier(WRITERS + 1)
        self._threads = [threading.Thread(target=self._write, args=(n,)) for n in range(WRITERS)]
        self.texts: list[list[str]] = [[] for _ in range(WRITERS)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        self._ready.wait(60)
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join(60)

    def _write(self, number: int) -> None:
        parent = None
        with self._store.context():
            while not self._is_over.is_set():
                text = f"{number} {len(self.texts[number])}"
                now = datetime.now(UTC)
                parent = sample_threads.post(self._site, text, parent, now=now).id
                self.texts[number].append(text)
                if len(self.texts[number]) == 2:
                    self._ready.wait(60)


def test_a_copy_beside_writers_has_the_comments_of_one_moment(
    store: connection.Store, site: records.Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upload_store, "_MOST_IN_PART", 2_000)
    with _Writers(store, site) as writers:
        _copy()
        done = _finish()
    assert (done.state, done.explained, done.unexplained) == (UploadState.DONE, 0, 0)
    original = {line["id"]: line for line in _threads(tmp_path, "demo")}
    copied = {line["id"]: line for line in _threads(tmp_path, NEW)}
    assert copied == {name: original[name] for name in copied}
    texts = [line["text"] for line in copied.values() if line["kind"] == "comment"]
    for number, written in enumerate(writers.texts):
        copies = [text for text in texts if text.startswith(f"{number} ")]
        assert len(copies) >= 2
        assert copies == written[: len(copies)]


def test_a_retraction_during_the_copying_reaches_the_copy(
    store: connection.Store, site: records.Site
) -> None:
    secret, other = (sample_threads.post(site, text) for text in ("secret", "other"))
    _copy()
    assert upload_steps.do_next_step(NEW, SECRET)
    assert current(NEW).state is UploadState.IMPORTING
    assert current(NEW).comments == 2
    own_comment.retract(secret.id, author_id=secret.author.id, revision=None, now=NOW)
    assert _finish().state is UploadState.DONE
    found = {row["status"]: row for row in _comments_of_copy()}
    assert found["approved"]["body"] == other.body
    assert (found["retracted"]["body"], found["retracted"]["author_name"]) == ("", "")


def test_one_round_of_a_worker_copies_everything(
    store: connection.Store, site: records.Site
) -> None:
    sample_threads.post(site, "text")
    _copy()
    upload_steps.go_on(SECRET, lambda: datetime.now(UTC))
    assert current(NEW).state is UploadState.DONE


def test_a_deleted_original_is_not_copied_and_a_copy_under_way_not_discarded(
    store: connection.Store, site: records.Site
) -> None:
    sample_threads.post(site, "text")
    _copy()
    with pytest.raises(errors.Conflict):
        upload_store.discard(NEW)
    upload_store.expire(NOW + 2 * upload_store.KEPT)
    site_deletion.delete("demo", ADA, now=NOW)
    refused = _finish()
    assert (refused.state, refused.problem) == (UploadState.REFUSED, "There is no site demo.")
    assert list(_comments_of_copy()) == []


def _comments_of_copy() -> Iterator[dict[str, Any]]:
    for row in stored_state.rows("Comment"):
        if row.properties["site"].string_value == NEW:
            names = ("status", "body", "author_name")
            yield {name: row.properties[name].string_value for name in names}


def _make_copy(new: str) -> None:
    upload_store._MOST_IN_PART = 500  # Several parts of a small file
    import_batches.BATCH = 4
    _copy(new)
    _finish(new)


@pytest.mark.embedded
class TestKilledProcesses:
    """A copy whose process is killed goes on in another process."""

    @pytest.fixture
    def store_path(self, tmp_path: Path) -> Path:
        return tmp_path / "store.db"

    @pytest.fixture
    def engine(self, store_path: Path) -> Iterator[inprocess.Engine]:
        with inprocess.open_engine(store_path, indexes=dying_programs.INDEXES) as engine:
            yield engine

    @pytest.mark.slow
    def test_a_copy_goes_on_after_a_kill_at_any_commit(
        self, store_path: Path, datastore: datastores.Datastore, tmp_path: Path
    ) -> None:
        with datastore.connect().context():
            site = prepared_stores.demo()
            for number in range(10):
                sample_threads.post(site, f"text {number}", thread=f"page {number % 3}")
        status, call = -signal.SIGKILL, 1
        while status == -signal.SIGKILL:
            call += 1  # The first commit adds the site.
            new = f"copy-{call}"
            rule = {"rpc": "Commit", "call": call, "when": "before", "kill": True}
            status, _ = dying_programs.run(store_path, [rule], _make_copy, new)
            with datastore.connect().context():
                assert _finish(new).state is UploadState.DONE
                assert _lines(tmp_path, new, new) == _lines(tmp_path, "demo", new)
                upload_store.expire(NOW)
                assert list(stored_state.rows("ImportPart")) == []
        assert status == 0
        assert call > 15  # Claims, parts, batches and the journal
