#!/usr/bin/env python3
"""Draw in docs/architecture.md the modules that a post and a page view pass through.

A reply and a page of a compacted thread run against the embedded engine. Each module stands where
the walk enters it first, with the function that is called there, in a line for each stay in a room.
Rooms without a decision of their own are left out.

Usage: .venv/bin/python scripts/walk.py          writes both walks
       .venv/bin/python scripts/walk.py --check  exits with 1 if one of them is out of date
"""

import itertools
import sys
import textwrap
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from comments import app, config  # noqa: E402
from comments.domain import records  # noqa: E402
from comments.sites import site_settings  # noqa: E402
from comments.store import connection  # noqa: E402
from comments.upkeep import scheduler  # noqa: E402
from datastore_emulator import inprocess  # noqa: E402

TARGET = ROOT / "docs" / "architecture.md"
START = datetime(2026, 1, 1, tzinfo=UTC)
WIDTH = 24  # Characters of a room's column
URL = "/api/v1/sites/demo/comments"
LEFT_OUT = (
    "config",
    "domain",
    "errors",
    "logs",
    "setting_values",
    "store.memory",
    "store.models",
    "store.wire",
)


def walk(run: Callable[[], object]) -> list[tuple[str, str]]:
    """Return the modules of the backend that a call enters, each with the function called first."""
    steps: dict[str, str] = {}

    def note(frame: FrameType, event: str, _argument: object) -> None:
        module = frame.f_globals.get("__name__", "").partition("comments.")[2]
        name = getattr(frame.f_code, "co_qualname", frame.f_code.co_name)
        if event == "call" and module and "<" not in name:
            steps.setdefault(module, name)

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return [
        (name, step)
        for name, step in steps.items()
        if not f"{name}.".startswith(tuple(f"{room}." for room in LEFT_OUT))
    ]


def lines(steps: list[tuple[str, str]]) -> Iterator[str]:
    """Draw a walk: a paragraph for each stay in a room, with its modules and first functions."""
    for room, stay in itertools.groupby(steps, lambda step: step[0].rpartition(".")[0]):
        calls = ", ".join(f"{module.rpartition('.')[2]}.{name}" for module, name in stay)
        margin = " " * WIDTH
        drawn = textwrap.fill(calls, 100, initial_indent=margin, subsequent_indent=margin)
        yield f"{room.replace('.', '/'):{WIDTH}}{drawn[WIDTH:]}"


def walks() -> dict[str, str]:
    """Return both walks, drawn."""
    engine = inprocess.open_engine(None, indexes=str(ROOT / "index.yaml"), history=0)
    settings = config.Settings(secret="x" * 40)
    store = connection.Store(inprocess.Channel(engine), project="walk")
    with store.context():
        site_settings.add("demo", ["http://localhost"], scheme=settings.scheme, now=START)
    client = app.create_app(settings, store).test_client()

    def post(body: str, parent: str = "") -> str:
        draft = {"name": "Ann", "body": body} | ({"parent": parent} if parent else {})
        url = f"{URL}?thread=t"
        answer = client.post(url, json=draft, headers={"Origin": "http://localhost"})
        return str(answer.json["comment"]["id"]) if answer.json else ""

    parent = post("a comment")
    post("a reply", parent)
    a_post = walk(lambda: post("another **reply**", parent))
    with store.context():
        scheduler.compact_whole([records.ThreadName("demo", "t")], wait=None)
    client = app.create_app(settings, store).test_client()
    client.get(f"{URL}?thread=other")
    a_page = walk(lambda: client.get(f"{URL}?thread=t&limit=2"))
    engine.close()
    return {"post": "\n".join(lines(a_post)), "page": "\n".join(lines(a_page))}


def main(arguments: list[str]) -> int:
    """Write the walks into the document, or check them."""
    before = after = TARGET.read_text(encoding="utf-8")
    for name, drawn in walks().items():
        begin, end = f"<!-- walk: {name} -->\n", "<!-- end of walk -->"
        start = after.index(begin) + len(begin)
        after = f"{after[:start]}```text\n{drawn}\n```\n{after[after.index(end, start) :]}"
    if arguments == ["--check"]:
        if after != before:
            print("docs/architecture.md is out of date: run scripts/walk.py")
        return int(after != before)
    TARGET.write_text(after, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
