"""A site that is exported and imported into an empty store is the same site."""

from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import flask
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from comments import app as apps
from comments.domain.ids import author_ids, imported_ids
from comments.store import connection
from comments.upkeep import scheduler
from tests.support import datastores
from tests.support.exporting import moved_sites, site_exports
from tests.support.exporting.moved_sites import ORIGIN, run
from tests.support.histories import mixed_day
from tests.support.importing import uploading
from tests.support.threads import sample_threads

THREADS = ("garden.example/roses", "garden.example/tulips", "a page", "caf\u00e9")
SETTINGS = sample_threads.SETTINGS


def settle() -> None:
    """Deliver all events and count all votes."""
    process = scheduler.Scheduler()
    process.compact_and_clear(
        scheduler.find_due_work(datetime.now(UTC) + timedelta(hours=1)), lambda _: None
    )
    while process.sweep_fresh().delivered:
        pass


def exported(app: flask.Flask, folder: Path) -> Path:
    run(app, "export", "demo", folder / "demo.jsonl")
    return folder / "demo.jsonl"


def grown(store: connection.Store, folder: Path, seed: int, steps: int) -> flask.Flask:
    """Return an application with a site on which people and moderators did many things."""
    app = apps.create_app(SETTINGS, store)
    run(app, "site", "add", "demo", "--origin", ORIGIN, "--origin", "http://localhost:8000")
    names = ["--category=news", "--category=sport/football", "--category=sport/tennis"]
    run(app, "site", "set", "demo", "--query-key", "p", "--live", "30", "--no-website", *names)
    run(app, "counter", "add", "demo", "liked", "--where", "up >= 1", "--by", "author")
    day = mixed_day.MixedDay(app, THREADS, seed=seed, people=6)
    day.pass_by(steps)
    run(app, "rule", "add", "demo", "--id", "ads", "--action", "spam", "--word", "buy now")
    run(app, "rule", "add", "demo", "--id", "near", "--network", "192.0.2.0/24")
    run(app, "moderate", "policy", "demo", "--close-after", "90")
    day.command("thread", "set", "demo", THREADS[2], "--title", "A title", "--url", ORIGIN)
    day.command("moderate", "thread", "demo", THREADS[3], "--lock")
    comments = [row["id"] for row in site_exports.of_kind(exported(app, folder), "comment")]
    for comment in comments[:6]:
        day.command("moderate", "pin", "demo", comment)
    day.command("moderate", "hide", "demo", *comments[1:9:4])
    (folder / "text").write_text("Edited by *staff*.")
    for comment in comments[::4]:
        day.command("moderate", "edit", "demo", comment, str(folder / "text"))
    day.command("moderate", "ban", "demo", *comments[-1:])
    day.pass_by(steps // 2)
    return app


def moved_and_compared(
    new_datastore: Callable[[], datastores.Datastore], folder: Path, seed: int, steps: int
) -> None:
    stores = [new_datastore().connect() for _ in range(2)]
    with stores[0].context():
        first = grown(stores[0], folder, seed, steps)
        waiting, path = folder / "waiting.jsonl", folder / "site.jsonl.gz"
        run(first, "export", "demo", waiting, "--audit-log", "--addresses")
        settle()
        run(first, "export", "demo", path, "--audit-log", "--addresses")
    # Uncounted votes and undelivered events make no difference.
    assert site_exports.content(waiting) == site_exports.content(path)
    with stores[1].context():
        second = moved_sites.move(path, stores[1], SETTINGS)
    moved_sites.assert_same(first, second, folder)


@pytest.mark.slow
def test_a_moved_site_is_the_same(
    new_datastore: Callable[[], datastores.Datastore], tmp_path: Path
) -> None:
    moved_and_compared(new_datastore, tmp_path, seed=1, steps=200)
    comments = site_exports.of_kind(tmp_path / "site.jsonl.gz", "comment")
    # The history has everything that an export has to keep.
    for name in (
        "edited",
        "edited_by_staff",
        "votes",
        "pinned",
        "rule",
        "stood",
        "judged",
        "reply_to",
        "page",
    ):
        assert any(name in each for each in comments), name
    assert {each["status"] for each in comments} >= {"approved", "retracted", "hidden", "spam"}
    threads = site_exports.of_kind(tmp_path / "site.jsonl.gz", "thread")
    for name in ("state", "own", "categories", "named_by"):
        assert any(name in each for each in threads), name
    assert site_exports.of_kind(tmp_path / "site.jsonl.gz", "audit")
    (settings_line,) = site_exports.of_kind(tmp_path / "site.jsonl.gz", "settings")
    assert len(settings_line["moderation"]["rules"]) == 2
    assert settings_line["moderation"]["bans"]
    # Without addresses, the rule that names a network is left out.
    (settings_line,) = site_exports.of_kind(tmp_path / "demo.jsonl", "settings")
    assert [each["id"] for each in settings_line["moderation"]["rules"]] == ["ads"]


@pytest.mark.slow
@settings(
    max_examples=max(2, settings.default.max_examples // 25),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(seed=st.integers(0, 10**6), steps=st.integers(5, 60))
def test_a_site_with_any_history_is_the_same_after_a_move(
    new_datastore: Callable[[], datastores.Datastore],
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    steps: int,
) -> None:
    moved_and_compared(new_datastore, tmp_path_factory.mktemp("moved"), seed, steps)


OTHERS = ("edited_by_staff", "votes", "rule", "why", "reasons", "stood", "judged", "source")


@pytest.mark.slow
def test_a_site_that_an_owner_uploads_has_the_same_threads_and_comments(
    new_datastore: Callable[[], datastores.Datastore], tmp_path: Path
) -> None:
    stores = [new_datastore().connect() for _ in range(2)]
    with stores[0].context():
        first = grown(stores[0], tmp_path, seed=3, steps=120)
        settle()
        run(first, "export", "demo", tmp_path / "first.jsonl", "--audit-log")
    with stores[1].context():
        second = apps.create_app(SETTINGS, stores[1])
        run(second, "site", "add", "demo", "--origin", ORIGIN)
        run(second, "export", "demo", tmp_path / "empty.jsonl", "--audit-log")
        done = uploading.imported("demo", (tmp_path / "first.jsonl").read_bytes())
        assert (done.added, done.explained, done.unexplained) == (done.comments, 0, 0)
        settle()
        run(second, "export", "demo", tmp_path / "second.jsonl", "--audit-log")
        assert "0 differences" in run(second, "recount", "demo")
        run(second, "repair", "--site", "demo")
    files = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    old, new = (site_exports.of_kind(each, "comment") for each in files)
    assert [as_uploaded(each) for each in old] == [without_author(each) for each in new]
    assert people(old) == people(new)
    assert all(each["author"].get("id", "i:").startswith(author_ids.IMPORTED) for each in new)
    # The history has what an upload has to keep, and what it leaves out.
    for name in ("edited", "up", "pinned", "parent", "page", "votes", "rule", "judged"):
        assert any(name in each for each in old), name
    threads = [site_exports.of_kind(each, "thread") for each in files]
    for each in threads[0]:
        if "named_by" in each:
            each["named_by"] = uploaded_id(each["named_by"])
    assert threads[0] == threads[1]
    settings_of = [
        site_exports.of_kind(each, "settings") for each in (tmp_path / "empty.jsonl", files[1])
    ]
    assert settings_of[0] == settings_of[1]
    assert site_exports.of_kind(files[1], "counter") == []
    assert [each["verb"] for each in site_exports.of_kind(files[1], "audit")] == ["import"]


def uploaded_id(comment: str) -> str:
    return imported_ids.comment_id("demo", imported_ids.OWN, comment)


def as_uploaded(line: dict[str, Any]) -> dict[str, Any]:
    """Return the line of a comment as it has to be after an upload, without the author's id."""
    ids = {name: uploaded_id(line[name]) for name in ("id", "parent", "reply_to") if name in line}
    return {name: value for name, value in without_author(line).items() if name not in OTHERS} | ids


def without_author(line: dict[str, Any]) -> dict[str, Any]:
    author = {name: line["author"][name] for name in ("name", "website") if name in line["author"]}
    return line | {"author": author}


def people(lines: list[dict[str, Any]]) -> list[set[int]]:
    """Group the numbers of lines by their authors; every author after an upload is a new one."""
    found: dict[str, set[int]] = defaultdict(set)
    for number, each in enumerate(lines):
        if "id" in each["author"]:
            found[each["author"]["id"]].add(number)
    return sorted(found.values(), key=min)
