"""Real files are stored as an independent reader of the file understands them.

The readers of this module share no code with the importers. They run only if real files are
available.
"""

import dataclasses
import html
import html.parser
import json
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from comments.domain import records
from comments.domain.ids import imported_ids, sorthash
from comments.domain.records import Status
from comments.transfer.formats import format_registry
from comments.upkeep.integrity import repair
from tests.support import optional_tools
from tests.support.threads import sample_exports
from tests.support.threads.sample_exports import SCHEME

LEVELS = 8
# Isso stores seconds as floating point numbers, which can be rounded up or down.
PRECISION = timedelta(microseconds=1)
_LOOSE = re.compile(r"&(?!#?\w+;)")
_NUMBERS = re.compile(r"^[0-9]{1,9}\. ", re.MULTILINE)  # Of lists
_WORDS = re.compile(r"\w+")


@dataclasses.dataclass(frozen=True)
class Read:
    """A comment as an independent reader understands it. `markup` is the text in the file."""

    thread: str
    id: str
    parent: str | None
    status: Status
    created: datetime
    name: str
    edited: datetime | None
    up: int
    down: int
    pinned: bool
    markup: str


def isso(path: Path) -> Iterator[Read]:
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    connection.row_factory = sqlite3.Row
    modes = {1: Status.APPROVED, 2: Status.PENDING, 4: Status.RETRACTED}
    joined = "SELECT * FROM comments JOIN threads ON tid = threads.id"
    for row in connection.execute(joined.replace("*", "comments.*, uri")):
        modified = row["modified"]
        yield Read(
            thread="garden.example" + row["uri"].rstrip("/"),
            id=str(row["id"]),
            parent=None if row["parent"] is None else str(row["parent"]),
            status=modes[row["mode"]],
            created=datetime.fromtimestamp(row["created"], UTC),
            name=html.unescape(row["author"] or "Guest").strip(),
            edited=None if modified is None else datetime.fromtimestamp(modified, UTC),
            up=row["likes"],
            down=row["dislikes"],
            pinned=False,
            markup=row["text"],
        )
    connection.close()


def remark42(path: Path) -> Iterator[Read]:
    for line in path.read_text().splitlines()[1:]:
        found = json.loads(line)
        edited = found.get("edit", {}).get("time")
        yield Read(
            thread=found["locator"]["url"].partition("://")[2].rstrip("/"),
            id=found["id"],
            parent=found["pid"] or None,
            status=Status.RETRACTED if found.get("delete") else Status.APPROVED,
            created=_rfc_3339(found["time"]),
            name="" if found.get("delete") else html.unescape(found["user"]["name"]),
            edited=edited and _rfc_3339(edited),
            up=found["score"],
            down=0,
            pinned=found.get("pin", False),
            markup=found["text"],
        )


def _rfc_3339(text: str) -> datetime:
    seconds, _, fraction = text.removesuffix("Z").partition(".")
    found = datetime.strptime(seconds, "%Y-%m-%dT%H:%M:%S").replace(tzinfo=UTC)
    return found.replace(microsecond=int(fraction[:6] or 0))


class _Text(html.parser.HTMLParser):
    """Collects the text of HTML; tags separate words."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_starttag(self, *_: object) -> None:
        self.text += " "

    def handle_endtag(self, *_: object) -> None:
        self.text += " "


def words(markup: str) -> list[str]:
    """Return the words of HTML, or of Markdown with HTML."""
    parser = _Text()
    parser.feed(_LOOSE.sub("&amp;", _NUMBERS.sub("", markup)))
    parser.close()
    return _WORDS.findall(parser.text)


def contains_in_order(found: Sequence[str], wanted: Sequence[str]) -> bool:
    """Return whether all wanted words are found in this order. Broken tags add words."""
    rest = iter(found)
    return all(word in rest for word in wanted)


def in_order(comments: Sequence[Read], parent: str | None = None) -> Iterator[Read]:
    """Yield a thread in reading order, by definition. No thread is deeper than the tree."""
    ids = {each.id for each in comments}
    below = [each for each in comments if (each.parent if each.parent in ids else None) == parent]
    for each in sorted(below, key=lambda each: (each.created, _number(each.id), each.id)):
        yield each
        yield from in_order(comments, each.id)


def sent_once(comments: Sequence[Read]) -> list[Read]:
    """Return the comments without copies that were sent within ten seconds and nobody valued."""
    kept: list[Read] = []
    for each in sorted(comments, key=lambda each: (each.created, _number(each.id))):
        is_valued = each.up or each.down or each.edited or each.status is Status.RETRACTED
        copied = [
            other
            for other in kept
            if each.created - other.created <= timedelta(seconds=10)
            and (each.thread, each.parent, each.name, each.markup, each.status)
            == (other.thread, other.parent, other.name, other.markup, other.status)
        ]
        if is_valued or not copied:
            kept.append(each)
    return kept


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else -1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "file", "reader", "count", "copies"),
    [
        ("isso", "other/isso-incolumitas-434.db", isso, 434, 4),
        ("remark42", "other/remark42-176.jsonl", remark42, 176, 0),
    ],
)
def test_a_real_file_is_stored_as_an_independent_reader_understands_it(
    garden: records.Site,
    name: str,
    file: str,
    reader: Callable[[Path], Iterator[Read]],
    count: int,
    copies: int,
) -> None:
    path = optional_tools.real_export(file)
    read = list(reader(path))
    expected = sent_once(read)
    assert (len(read), len(read) - len(expected)) == (count, copies)
    found = format_registry.recognize(path)
    assert found.name == name
    with sample_exports.planned_by(found.read, path, unit=found.unit, levels=LEVELS) as plan:
        sample_exports.write(plan, LEVELS)
        assert sample_exports.write(plan, LEVELS).added == 0
    rows = sample_exports.rows()
    by_id = {imported_ids.comment_id("garden", name, each.id): each for each in expected}
    ids = {each.id for each in expected}
    threads = sorted({each.thread for each in expected})
    assert [by_id[row.id].id for row in rows] == [
        each.id
        for thread in threads
        for each in in_order([one for one in expected if one.thread == thread])
    ]
    for row in rows:
        each = by_id[row.id]
        parent = by_id[row.reply_to].id if row.reply_to else None
        assert parent == (each.parent if each.parent in ids else None)
        assert (row.thread, row.status) == (each.thread, each.status)
        assert abs(row.created - each.created) <= PRECISION
        assert (row.edited is None) == (each.edited is None)
        if row.edited and each.edited:
            assert abs(row.edited - each.edited) <= PRECISION
        assert (row.up, row.down) == (each.up, each.down)
        assert (row.author.name, row.pinned) == (each.name, each.pinned)
        assert contains_in_order(words(row.html), words(each.markup)), each.id
    scheme = sorthash.Scheme(digits=SCHEME.digits, width=SCHEME.width, levels=LEVELS)
    for thread in threads:
        assert repair.find_problems(scheme, records.ThreadName("garden", thread)) == []
