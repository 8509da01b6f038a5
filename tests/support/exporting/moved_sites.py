"""Move a site to another store through its export, and compare both sites."""

import json
from pathlib import Path
from typing import Any

import flask

from comments import app as apps
from comments import config
from comments.store import connection
from tests.support.exporting import site_exports

ORIGIN = "https://garden.example"


def run(app: flask.Flask, *words: str | Path) -> str:
    """Run a command and return what it printed."""
    said = app.test_cli_runner().invoke(args=[str(each) for each in words])
    assert said.exit_code == 0, said.output
    return said.stdout


def move(
    path: Path, store: connection.Store, settings: config.Settings, *, site: str = "demo"
) -> flask.Flask:
    """Import an export with its settings into a new site of an empty store."""
    app = apps.create_app(settings, store)
    run(app, "site", "add", site, "--origin", ORIGIN)
    run(app, "import", path, "--site", site, "--settings")
    return app


def assert_same(first: flask.Flask, second: flask.Flask, folder: Path, site: str = "demo") -> None:
    """Check that two sites have equal exports, pages and numbers, and sound counters and trees."""
    files = folder / "first.jsonl", folder / "second.jsonl"
    for app, file in zip((first, second), files, strict=True):
        run(app, "export", site, file, "--audit-log", "--addresses")
    assert site_exports.content(files[0]) == site_exports.content(files[1])
    for thread in (each["id"] for each in site_exports.of_kind(files[0], "thread")):
        assert page(first, site, thread) == page(second, site, thread)
    for name in (each["name"] for each in site_exports.of_kind(files[0], "counter")):
        shown = [run(app, "counter", "show", site, name) for app in (first, second)]
        assert shown[0] == shown[1]
    for app in (first, second):
        assert "0 differences" in run(app, "recount", site)
        run(app, "repair", "--site", site)  # Exits with 1 if there are problems


def page(app: flask.Flask, site: str, thread: str) -> Any:
    """Return a whole thread as the API shows it, without revisions, which begin anew."""
    said = app.test_client().get(
        f"/api/v1/sites/{site}/comments",
        query_string={"thread": thread, "limit": "all", "order": "thread"},
    )
    assert said.status_code == 200, said.text
    found = json.loads(said.data)
    for each in found["comments"]:
        del each["revision"]
    return {name: found[name] for name in ("comments", "total", "thread") if name in found}
