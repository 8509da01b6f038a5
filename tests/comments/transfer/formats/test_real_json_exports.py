"""Real exports of Twikoo, Valine and Waline are stored as an independent reader understands them.

The tests run only if the exports are available. The reader uses no code of the importers.
"""

import html.parser
import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import pytest

from comments.domain import records
from comments.domain.ids import sorthash
from comments.domain.records import Status
from comments.transfer.formats import format_registry
from comments.upkeep.integrity import repair
from tests.support import optional_tools
from tests.support.importing import stored_imports
from tests.support.threads import sample_exports, sample_threads

LEVELS = 8
SCHEME = sorthash.Scheme(levels=LEVELS)


class Row(NamedTuple):
    """A comment, with the letters and digits of its text instead of the text."""

    page: str
    id: str
    parent: str | None
    status: Status
    created: datetime
    name: str
    letters: str
    up: int
    pinned: bool


def page(url: str) -> str:
    return "garden.example" + quote(url.removesuffix("/"))


class _Shown(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "img":
            values = dict(attrs)
            self.parts.append(values.get("alt") or values["src"] or "")

    def handle_data(self, data: str) -> None:
        self.parts.append(data)


def letters(text: str) -> str:
    """Return the letters and digits of HTML or Markdown, without addresses of comments."""
    shown = _Shown()
    shown.feed(re.sub(r"\]\(#[0-9a-f]+\)", "]", text))
    shown.close()
    return "".join(filter(str.isalnum, "".join(shown.parts)))


def of_waline(path: Path) -> Iterator[Row]:
    for each in json.loads(path.read_text())["data"]["Comment"]:
        yield Row(
            page(each["url"]),
            each["objectId"],
            each.get("pid"),
            {"approved": Status.APPROVED, "spam": Status.SPAM}[each["status"]],
            datetime.strptime(each["insertedAt"], "%Y-%m-%dT%H:%M:%S.%f%z"),
            each["nick"] or "Guest",
            letters(each["comment"]),
            each.get("like", 0),
            each.get("sticky") == 1,
        )


def of_valine(path: Path) -> Iterator[Row]:
    _, *lines = path.read_text().splitlines()
    for each in map(json.loads, lines):
        created = each["insertedAt"]["iso"]
        yield Row(
            page(each["url"]),
            each["objectId"],
            each.get("pid"),
            Status.APPROVED,
            datetime.strptime(created, "%Y-%m-%dT%H:%M:%S.%f%z"),
            each["nick"],
            letters(each["comment"]),
            0,
            pinned=False,
        )


def of_twikoo(path: Path) -> Iterator[Row]:
    for each in json.loads(path.read_text()):
        yield Row(
            page(each["url"]),
            each["_id"],
            each["pid"],
            Status.SPAM if each["isSpam"] else Status.APPROVED,
            datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=each["created"]),
            each["nick"],
            letters(each["comment"]),
            len(each.get("like", [])),
            each.get("top", False),
        )


def in_order(rows: list[Row]) -> Iterator[Row]:
    """Yield the comments of a page in reading order: siblings by time, answers below."""
    by_id = {row.id: row for row in rows}

    def place(row: Row) -> tuple[str | None, int]:
        if row.parent not in by_id:
            return None, 0
        above, level = place(by_id[row.parent])
        return (above, level) if level == LEVELS - 1 else (row.parent, level + 1)

    def walk(parent: str | None) -> Iterator[Row]:
        for row in sorted(rows, key=lambda row: row.created):
            if place(row)[0] == parent:
                yield row._replace(parent=row.parent if row.parent in by_id else None)
                yield from walk(row.id)

    return walk(None)


@pytest.mark.parametrize(
    ("name", "read", "count"),
    [
        ("other/waline-jonie-27.json", of_waline, 27),
        ("other/valine-leancloud-xiaoload-5.jsonl", of_valine, 5),
        ("other/twikoo-zl88-61.json", of_twikoo, 61),
    ],
)
def test_a_real_export_is_stored_as_it_is_read_independently(
    garden: records.Site, name: str, read: Callable[[Path], Iterator[Row]], count: int
) -> None:
    path = optional_tools.real_export(name)
    rows = list(read(path))
    garden = sample_threads.shaped(garden, SCHEME)
    found = format_registry.recognize(path)
    with sample_exports.planned_by(found.read, path, unit=found.unit, site=garden) as plan:
        assert sample_exports.write(plan).added == count
        assert sample_exports.write(plan).added == 0
    stored = [
        Row(
            each.thread,
            each.id,
            each.parent,
            each.status,
            each.created,
            each.name,
            letters(each.html),
            each.up,
            each.pinned,
        )
        for each in stored_imports.comments(found.name, [row.id for row in rows])
    ]
    pages = sorted({row.page for row in rows})
    expected = [row for each in pages for row in in_order([r for r in rows if r.page == each])]
    assert len(expected) == count
    assert stored == expected
    assert all(row.letters for row in stored)
    for each in pages:
        assert repair.find_problems(SCHEME, records.ThreadName("garden", each)) == []
