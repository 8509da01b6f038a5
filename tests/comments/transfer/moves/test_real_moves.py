"""Real blogs change scheme, paths and host beside writers, in processes that are killed."""

import contextlib
import itertools
import re
import signal
import threading
import uuid
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from comments import errors
from comments.domain import records
from comments.domain.ids import thread_ids
from comments.sites import site_settings
from comments.store import connection
from comments.threads import thread_aliases, thread_info
from comments.transfer.checking import checked_import, page_mapping
from comments.transfer.formats import disqus
from comments.transfer.importing import import_writer
from comments.transfer.moves import move_journal, move_plan, thread_moves
from comments.tree.counters import totals
from comments.upkeep import scheduler
from datastore_emulator import inprocess
from tests.support import dying_programs, optional_tools
from tests.support.threads import sample_threads

pytestmark = [pytest.mark.slow, pytest.mark.embedded]

HOST, OTHER = "blog.laisky.com", "www.evanlin.com"
FIRST = [f"http://{HOST}", f"http://{OTHER}"]
RULES = ("/blog/*.html=/*/", f"{OTHER}={HOST}")
WRITERS = 20


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[None]:
    with (
        inprocess.open_engine(path, indexes=dying_programs.INDEXES) as engine,
        connection.Store(inprocess.Channel(engine), project="test").context(),
    ):
        yield


def _new(thread: str) -> str:
    """Return where the model expects a thread after all moves."""
    path = re.sub(r"/blog/([^/]+)\.html$", r"/\1", thread)
    return re.sub(f"^{re.escape(OTHER)}/", f"{HOST}/", path)


def _import(export: Path, mapping: tuple[str, ...]) -> None:
    site = site_settings.get("demo")
    secret = sample_threads.SETTINGS.secret
    with checked_import.plan(
        disqus.read, export, site=site, scheme=site.scheme, secret=secret, mapping=mapping
    ) as plan:
        import_writer.write(plan, scheme=site.scheme, now=sample_threads.START)


def _write(writer: int, pages: dict[str, str], log: Path, ended: threading.Event) -> None:
    """Post to the old and the new ids of threads until the moves end.

    The log gets a line before and after each post: a process that dies may have stored the last
    post without telling.
    """
    with log.open("a", buffering=1) as lines:
        for number in itertools.count():
            if ended.is_set():
                return
            site = site_settings.get("demo")
            old = list(pages)[(writer * 7 + number) % len(pages)]
            thread = thread_aliases.stored_id(site, (old, pages[old])[number % 2])
            if thread in pages:  # Otherwise it has not moved, and the post would begin a new one.
                body = f"{datetime.now(UTC).timestamp()} {writer} in {old}"
                author = records.Author("Ann", id=f"g:{uuid.uuid4().hex}")
                lines.write(f"try {body}\n")
                sample_threads.post(site, body, thread=thread, author=author)
                lines.write(f"did {body}\n")


def _move_beside_writers(pages: dict[str, str], log: Path) -> None:
    """Do what is left of the moves while writers post."""
    store, ended = connection.current(), threading.Event()

    def write(writer: int) -> None:
        with store.context():
            _write(writer, pages, log, ended)

    with ThreadPoolExecutor(WRITERS) as pool:
        writers = [pool.submit(write, writer) for writer in range(WRITERS)]
        try:
            _move()
        finally:
            ended.set()
        for writing in writers:
            writing.result()


def _move() -> None:
    thread_moves.finish(100)
    begun = {move.what for move in move_journal.of_site("demo") if move.moved}
    for rule in RULES:
        if rule not in begun:
            site, actor, now = site_settings.get("demo"), sample_threads.ADA, datetime.now(UTC)
            plan = move_plan.of_mapping(site, page_mapping.PageMapping([rule], site.origins))
            thread_moves.run_to_end(thread_moves.begin(site, plan, rule, actor, now=now))


def _import_both(exports: list[Path]) -> dict[str, Counter[str]]:
    """Import two blogs, change the site to HTTPS, and return the texts in each thread."""
    scheme = sample_threads.SETTINGS.scheme
    site_settings.add("demo", FIRST, scheme=scheme, now=sample_threads.START)
    _import(exports[0], ("/p/*=/blog/*.html",))
    _import(exports[1], ())
    site = site_settings.change("demo", origins=[each.replace("p:", "ps:") for each in FIRST])
    names = [name.id for name in scheduler.threads("demo")]
    # No thread changes its id because of the scheme, so there is nothing to move.
    assert [thread_ids.page_id(f"https://{name}", site) for name in names] == names
    with pytest.raises(errors.ImportRefused, match="same page"):
        page_mapping.PageMapping([f"http://{HOST}=https://{HOST}"], site.origins)
    return {name: Counter(sample_threads.listed(site, name)) for name in names}


def _check_thread(name: str, new: str, before: Counter[str], log: Path) -> None:
    """Check that a thread is at its new address, with its comments and all posts to it."""
    site, info = site_settings.get("demo"), thread_info.fresh(records.ThreadName("demo", name))
    assert info is not None
    assert info.shown_id == new
    assert thread_aliases.stored_ids(site, [name, new]) == [name, name]
    now = Counter(sample_threads.listed(site, name))
    assert before <= now
    lines = [line.partition(" ") for line in log.read_text().splitlines()]
    tried, did = (
        {body for word, _, body in lines if word == each and body.endswith(f" in {name}")}
        for each in ("try", "did")
    )
    assert did <= set(now - before) <= tried
    assert set((now - before).values()) <= {1}
    assert totals.listed_counts("demo", [name]) == [now.total()]
    if name != new and new.startswith(HOST):
        assert thread_info.page_address(info.url, new, site) in {
            f"https://{new}",
            f"https://{new}/",
        }


def test_two_real_blogs_become_one_with_new_paths(tmp_path: Path) -> None:
    names = ("laisky-209", "evanlin-189")
    exports = [optional_tools.real_export(f"disqus/{name}.xml") for name in names]
    path, log = tmp_path / "site.db", tmp_path / "log"
    log.touch()
    with _opened(path):
        before = _import_both(exports)
    pages = {name: _new(name) for name in before if _new(name) != name}
    assert len(pages) > 100
    assert len(set(pages.values()) | set(before)) == len(pages) + len(before)
    for attempt in itertools.count(1):
        rule = {"rpc": "Commit", "call": 6 * attempt, "when": "before", "kill": True}
        status, said = dying_programs.run(path, [rule], _move_beside_writers, pages, log)
        assert status in {0, -signal.SIGKILL}, said
        if status == 0:
            break
    assert attempt > len(exports)  # The moves were killed several times.
    with _opened(path):
        assert {name.id for name in scheduler.threads("demo")} == set(before)
        for name, texts in before.items():
            _check_thread(name, pages.get(name, name), texts, log)
