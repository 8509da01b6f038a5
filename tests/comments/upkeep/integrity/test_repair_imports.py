"""One repair finds, reports and mends a hundred raw changes in an import of 1,145 comments."""

import random
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import flask
import pytest

from comments import app as apps
from comments import config
from comments.domain import records
from comments.domain.text import rendering
from comments.reading import listings, thread_pages
from comments.sites import site_settings
from comments.store import connection
from comments.transfer.checking import checked_import
from comments.transfer.formats import disqus
from comments.upkeep import scheduler
from comments.upkeep.integrity import repair
from datastore_emulator import inprocess
from tests.support import datastores, optional_tools
from tests.support.histories import counter_oracle
from tests.support.threads import raw_changes, reader_processes, sample_exports, sample_threads

pytestmark = pytest.mark.slow

SCHEME = sample_threads.SETTINGS.scheme
NAME = records.ThreadName("demo", "page")
Grown = dict[str, records.Comment]


class _Scene:
    """A site with comments, its command line, and a service that readers ask over HTTP."""

    def __init__(self, app: flask.Flask, engine: inprocess.Engine) -> None:
        self.runner = app.test_cli_runner()
        self.engine = engine

    def repair(self, *more: str) -> Any:
        return self.runner.invoke(args=["repair", "--fix", *more])


@pytest.fixture
def scene(
    open_store: connection.Store, settings: config.Settings, engine: inprocess.Engine
) -> Iterator[_Scene]:
    with open_store.context():
        yield _Scene(apps.create_app(settings, open_store), engine)


KINDS = ("body", "status", "hash", "level", "score", "deletion", "insertion")


def _spoil(chance: random.Random, everything: list[records.Comment]) -> dict[str, str]:
    """Change a hundred random rows in seven ways; return the kind of change by comment."""
    changed: dict[str, str] = {}
    for place, row in enumerate(chance.sample(everything, 100)):
        kind = changed[row.id] = KINDS[place % len(KINDS)]
        if kind == "body":
            raw_changes.comment(row.id, body=f"other text {place}")
        elif kind == "status":
            raw_changes.comment(row.id, status=chance.choice(["rejected", "pending", "hidden"]))
        elif kind == "hash":
            raw_changes.comment(row.id, sort_hash=chance.choice(everything).sort_hash)
        elif kind == "level":
            raw_changes.comment(row.id, level=row.level + 3)
        elif kind == "score":
            raw_changes.comment(row.id, score=row.score + 7)
        elif kind == "deletion":
            raw_changes.delete_comments(row.id)
        else:
            raw_changes.insert_copy(row.id, f"{place:a>26}".translate(_LETTERS), shelved=False)
    return changed


_LETTERS = str.maketrans("0123456789", "bcdefghijk")


def _assert_repaired(
    scene: _Scene, names: list[records.ThreadName], changed: dict[str, str], before: Grown
) -> None:
    """Repair once with the command; check pages, comments and counters, then repair again."""
    warm = reader_processes.Reader(datastores.Embedded(scene.engine))
    for name in names:
        warm.shown(name)
    done = scene.repair("--verbose")
    assert done.exit_code == 0, done.output
    for comment_id, kind in changed.items():
        # Nothing contradicts another status or body of a comment that no page shows.
        if kind != "insertion" and before[comment_id].listed:
            assert f" {comment_id}: " in done.output
    _assert_restored(changed, before, names)
    for name in names:
        for reader in (warm, reader_processes.Reader(datastores.Embedded(scene.engine))):
            assert _by_pages(reader, name) == reader.expected(name)
        stored = _in_order(name)
        assert [row.id for row in stored] == sample_threads.walk(stored)
    counter_oracle.assert_counted()
    again = scene.repair()
    assert (again.exit_code, again.output.splitlines()[-1]) == (0, "0 problems repaired.")


def _assert_restored(
    changed: dict[str, str], before: Grown, names: list[records.ThreadName]
) -> None:
    """Check that fields which follow from others have their old values."""
    after = {row.id: row for name in names for row in repair._read_thread(name).rows.values()}
    for comment_id, kind in changed.items():
        old, new = before[comment_id], after.get(comment_id)
        if kind == "deletion":
            assert new is None
        elif kind in {"level", "score"} and not _is_below(before, old, changed):
            assert new is not None
            assert (new.level, new.score) == (old.level, old.score)


def _in_order(name: records.ThreadName) -> list[records.Comment]:
    rows = repair._read_thread(name).rows.values()
    return sorted(rows, key=lambda row: row.sort_hash)


def _is_below(before: Grown, row: records.Comment, changed: dict[str, str]) -> bool:
    """Return whether a comment above this one was deleted, so that the comment has moved."""
    above = row.parent
    while above is not None:
        if changed.get(above) == "deletion":
            return True
        above = before[above].parent
    return False


def _by_pages(reader: reader_processes.Reader, name: records.ThreadName) -> reader_processes.Whole:
    """Return the rows that a process shows for a thread, page by page."""
    comments: list[bytes] = []
    replies: list[int] = []
    cursor: str | None = None
    while True:
        asked = thread_pages.PageRequest(50, cursor, sample_threads.SETTINGS.secret)
        page = reader.do(lambda asked=asked: listings.page(SCHEME, name, asked))  # type: ignore[misc]
        comments += page.comments
        replies += page.replies
        cursor = page.cursor
        if cursor is None:
            return comments, replies, page.total


def _generated(chance: random.Random) -> list[records.ThreadName]:
    """Import one thread of 1,145 comments with random answers, statuses and votes."""
    site_settings.add("demo", ["https://a.example"], scheme=SCHEME, now=sample_threads.START)
    nodes: list[records.ImportedComment] = []
    for number in range(1_145):
        text = f"comment {number}"
        above = f"comment {chance.randrange(number)}" if number and chance.random() < 0.7 else None
        status = records.Status.APPROVED if chance.random() < 0.95 else records.Status.SPAM
        nodes.append(
            sample_threads.node(
                text,
                above,
                status,
                author=f"i:{chance.randrange(300)}",
                html=rendering.render_markdown(text),
                renderer=rendering.RENDERER,
                created=sample_threads.START + timedelta(minutes=number),
                up=chance.randrange(5),
                down=chance.randrange(3),
            )
        )
    for start in range(0, len(nodes), 100):
        sample_threads.store_imported(NAME, *nodes[start : start + 100])
    return [NAME]


def _exported(_chance: random.Random) -> list[records.ThreadName]:
    """Import the real export of 1,145 comments."""
    path = optional_tools.real_export("disqus/benbalter-1145.xml")
    site = site_settings.add(
        "garden", sample_exports.SITE.origins, scheme=SCHEME, now=sample_exports.NOW
    )
    with checked_import.plan(
        disqus.read, path, site=site, scheme=SCHEME, secret=sample_exports.SECRET
    ) as plan:
        sample_exports.write(plan)
    return list(repair.threads("garden"))


@pytest.mark.parametrize(("fill", "seed"), [(_generated, 1), (_exported, 2)])
def test_one_repair_mends_a_hundred_raw_changes(scene: _Scene, fill: Any, seed: int) -> None:
    chance = random.Random(seed)
    names = fill(chance)
    scheduler.compact_whole(names, wait=lambda _seconds: None)
    before = {row.id: row for name in names for row in _in_order(name)}
    assert len(before) == 1_145
    assert all(repair.find_problems(SCHEME, name) == [] for name in names)
    everything = list(before.values())
    _assert_repaired(scene, names, _spoil(chance, everything), before)
