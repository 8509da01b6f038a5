"""An import, the search after it and the merges of all pairs end after a kill at any commit."""

import contextlib
import itertools
import multiprocessing.util
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from comments.domain import records
from comments.notifications import reader_follows
from comments.sites import site_settings
from comments.store import connection
from comments.threads import thread_aliases
from comments.transfer.moves import doubled_threads, move_journal
from comments.transfer.uploads import upload_steps
from comments.transfer.uploads.upload_store import UploadState
from comments.upkeep import scheduler
from comments.upkeep.integrity import recount, repair
from datastore_emulator import inprocess
from tests.support import dying_programs, stored_state
from tests.support.histories import counter_oracle
from tests.support.importing import uploading
from tests.support.threads import sample_exports, sample_threads, sample_votes
from tests.support.threads.sample_exports import NOW, SCHEME, SECRET, post

pytestmark = [pytest.mark.slow, pytest.mark.embedded]

PAGES = ("lilies", "roses")
HOST = "garden.example"


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[None]:
    with (
        inprocess.open_engine(path, indexes=dying_programs.INDEXES) as engine,
        connection.Store(inprocess.Channel(engine), project="test").context(),
    ):
        yield


def _export(path: Path, first: int, address: str) -> bytes:
    """Return an export of two pages, whose posts have ids from `first` on.

    Each page has a root and a reply, and the last post of the first page is in no other export.
    """
    lines = []
    for number, page in enumerate(PAGES):
        link = f"<link>https://{HOST}/{address.format(page)}</link>"
        lines.append(f'<thread dsq:id="{first + number}">{link}</thread>\n')
    for number in range(5):
        parent = str(first + number - 2) if number > 1 else None
        text = f"only {first}" if number == 4 else f"text {number}"
        lines.append(
            post(
                str(first + number), parent, minute=number,
                thread=str(first + number % 2), message=text,
            )
        )  # fmt: skip
    return sample_exports.saved(path, *lines).read_bytes()


def _prepare(folder: Path) -> None:
    """Import the pages at old addresses, and confirm an upload of them at new addresses."""
    site_settings.add("garden", [f"https://{HOST}"], scheme=SCHEME, now=NOW)
    old, new = (
        _export(folder / "export.xml", *each) for each in ((100, "blog/{}.html"), (200, "{}"))
    )
    uploading.imported("garden", old, name="old.xml")
    _continue_jobs()
    for page in PAGES:
        name = records.ThreadName("garden", f"{HOST}/blog/{page}.html")
        reader_follows.follow(name, "g:ann", now=NOW)
    clock = uploading.Clock()
    uploading.confirm("garden", uploading.checked("garden", new, clock, name="new.xml").id, clock)
    sample_votes.count_all()


def _finish(temporary: str) -> None:
    """Finish the upload and the search, then merge all pairs, unless an owner has begun that."""
    tempfile.tempdir = temporary
    upload_steps.go_on(SECRET, uploading.Clock())
    _continue_jobs()
    search = doubled_threads.get("garden")
    if search is not None and search.next == 0:
        doubled_threads.merge_all("garden", sample_threads.ADA)
        _continue_jobs()


def _continue_jobs() -> None:
    while scheduler.continue_jobs(NOW, steps=1):
        pass


def _state() -> dict[str, Any]:
    """Return everything that a kill must not change."""
    said = [stored_state.rows(kind) for kind in ("Follow", "Subscription")]
    site = site_settings.get("garden")
    return {
        "comments": {
            key: (each.thread, each.status, each.reply_to, each.parent, each.level, each.number)
            for key, each in stored_state.said().items()
        },
        "threads": sorted(name.id for name in scheduler.threads("garden")),
        "aliases": [thread_aliases.stored_id(site, f"{HOST}/blog/{page}.html") for page in PAGES],
        "followers": [sorted(map(stored_state.name_of, each)) for each in said],
        "moves": sorted(
            (each.what, each.state, each.join.comments if each.join else 0)
            for each in move_journal.of_site("garden")
        ),
        "numbers": counter_oracle.stored_later(),
    }


def _end(path: Path, temporary: str) -> dict[str, Any]:
    """Finish what a process left, check all numbers and places, and return the state."""
    with _opened(path):
        _finish(temporary)
        sample_votes.count_all()
        counter_oracle.assert_all_counted()
        assert uploading.current("garden").state is UploadState.DONE
        for name in scheduler.threads("garden"):
            assert repair.find_problems(SCHEME, name) == []
        assert recount.site("garden", tell=lambda _: None, fixes=False) == 0
        return _state()


def test_a_search_and_its_merges_end_after_a_kill_as_without_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    multiprocessing.util.get_temp_dir()  # The socket of the fork server needs a short path.
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    prepared, path = tmp_path / "prepared.db", tmp_path / "whole.db"
    with _opened(prepared):
        _prepare(tmp_path)
    shutil.copyfile(prepared, path)
    expected = _end(path, str(tmp_path))
    assert expected["threads"] == [f"{HOST}/{page}" for page in PAGES]
    assert [(state, comments) for _, state, comments in expected["moves"]] == [
        ("done", 3), ("done", 2)
    ]  # fmt: skip
    for call in itertools.count(1):
        path = tmp_path / f"{call}.db"
        shutil.copyfile(prepared, path)
        rule = {"rpc": "Commit", "call": call, "when": "before", "kill": True}
        status, _ = dying_programs.run(path, [rule], _finish, str(tmp_path))
        assert _end(path, str(tmp_path)) == expected
        if status == 0:
            return
        assert status == -signal.SIGKILL
