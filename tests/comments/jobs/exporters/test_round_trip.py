"""A site that is exported and imported into an empty store is the same site."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import flask
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from comments import app as apps
from comments.jobs import scheduler
from comments.store import connection
from tests.support import datastores
from tests.support.exporting import moved_sites, site_exports
from tests.support.exporting.moved_sites import ORIGIN, run
from tests.support.histories import mixed_day
from tests.support.threads import sample_threads

THREADS = ("garden.example/roses", "garden.example/tulips", "a page", "caf\u00e9")
SETTINGS = sample_threads.SETTINGS


def settle() -> None:
    """Deliver all events and count all votes."""
    process = scheduler.Scheduler()
    process.visit(scheduler.look(datetime.now(UTC) + timedelta(hours=1)), lambda _: None)
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


def test_a_moved_site_is_the_same(
    new_datastore: Callable[[], datastores.Datastore], tmp_path: Path
) -> None:
    moved_and_compared(new_datastore, tmp_path, seed=1, steps=200)
    comments = site_exports.of_kind(tmp_path / "site.jsonl.gz", "comment")
    # The history has everything that an export has to keep.
    for name in ("edited", "votes", "pinned", "rule", "stood", "judged", "reply_to", "page"):
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
