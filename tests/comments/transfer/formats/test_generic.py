"""Files in the simple format are read alike as JSON lines and CSV, and stored as they say.

`samples/generic.py` has the faults of such files.
"""

import csv
import datetime as dt
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import flask
import pytest
from hypothesis import given
from hypothesis import strategies as st

from comments.domain import records
from comments.transfer import import_source
from comments.transfer.formats import format_registry, generic
from tests.conftest import ROOT
from tests.support import optional_tools
from tests.support.importing import reading_order, stored_imports
from tests.support.importing.sample_files import Expected

LEVELS = 8
Row = dict[str, Any]

# CSV stores no difference between a missing and an empty value, and no types.
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
ROWS = st.fixed_dictionaries(
    {
        "id": st.integers(1, 10**6),
        "page": st.sampled_from(["/a", "https://garden.example/b"]),
        "time": st.one_of(
            st.integers(0, 4_000_000_000), st.datetimes().map(lambda each: each.isoformat() + "Z")
        ),
        "text": TEXTS,
    },
    optional={
        "parent": st.one_of(st.none(), st.integers(1, 50)),
        "title": TEXTS,
        "author": TEXTS,
        "email": TEXTS,
        "website": TEXTS,
        "format": st.sampled_from(["markdown", "html", "plain", ""]),
        "status": st.sampled_from(["approved", "pending", "spam", "rejected", "deleted"]),
        "up": st.integers(-5, 5),
        "pinned": st.booleans(),
        "closed": st.booleans(),
        "mood": TEXTS,
    },
)


def saved_lines(path: Path, rows: list[Row]) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return path


def saved_table(path: Path, rows: list[Row]) -> Path:
    names = sorted({name for row in rows for name in row} | {"id", "page", "time", "text"})
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, names, quoting=csv.QUOTE_ALL)
        writer.writeheader()
        writer.writerows(rows)
    return path


def without_lines(items: Iterator[import_source.Item]) -> list[str]:
    """Return all items of a file in one order; a row of CSV can have several lines."""
    return sorted(re.sub(r"line=\d+", "", repr(item)) for item in items)


@given(rows=st.lists(ROWS, min_size=1, max_size=4))
def test_json_lines_and_csv_have_the_same_meaning(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Row]
) -> None:
    folder = tmp_path_factory.getbasetemp()
    lines = generic.read(saved_lines(folder / "rows.jsonl", rows))
    table = generic.read(saved_table(folder / "rows.csv", rows))
    assert without_lines(lines) == without_lines(table)


@pytest.mark.parametrize("parent", [None, "", 0, 0.0, "0", "0.0", " 0 "], ids=repr)
def test_a_root_has_no_parent(tmp_path: Path, parent: object) -> None:
    row = {"id": 1, "page": "/a", "time": 0, "text": "x", "parent": parent}
    comments = [
        item
        for path in (
            saved_lines(tmp_path / "rows.jsonl", [row]),
            saved_table(tmp_path / "rows.csv", [row]),
        )
        for item in generic.read(path)
        if isinstance(item, import_source.SourceComment)
    ]
    assert [comment.parent for comment in comments] == [None, None]


@pytest.mark.parametrize(
    "head",
    [
        b"id,page,time,text\n1,/a,0,x\n",
        b"\xef\xbb\xbf\n\nID;Page;Time;Author",
        b'"time"\t"page"\t"id"\r\n',
        b'\n{"id": 1, "page": "/a", "time": 0, "text": "x"}\n{',
    ],
)
def test_a_file_with_the_required_fields_is_recognized(head: bytes) -> None:
    assert [each.name for each in format_registry.FORMATS if each.recognizes(head)] == ["generic"]


@pytest.mark.parametrize(
    "head",
    [b"id,page\n", b'{"id": 1, "page": "/a"}\n', b'{"id": 1, "page"', b"[1]", b'"id', b"\xff"],
)
def test_a_different_file_is_not_recognized(head: bytes) -> None:
    assert not generic.recognizes(head)


def blocks(language: str) -> list[str]:
    """Return the code blocks of a language in the section of the docs on this format."""
    text = (ROOT / "docs" / "import-formats.md").read_text()
    section = text.partition("## Other systems: JSON lines and CSV\n")[2].partition("\n## ")[0]
    return re.findall(rf"^```{language}\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("language", ["json", "csv"])
def test_the_example_in_the_docs_is_imported(
    app: flask.Flask, garden: records.Site, tmp_path: Path, language: str
) -> None:
    (example,) = blocks(language)
    path = tmp_path / "example"
    path.write_text(example)
    result = app.test_cli_runner().invoke(args=["import", str(path), "--site", "garden"])
    assert result.exit_code == 0, result.output
    assert "Added 4 comments in 2 threads; 0 existed already." in result.output
    assert "Corrected" not in result.output
    assert "Left out" not in result.output
    stored = stored_imports.comments("generic", ["1", "2", "3", "4"])
    assert [(each.id, each.parent, each.status.value) for each in stored] == [
        ("4", None, "pending"),
        ("1", None, "approved"),
        ("2", "1", "approved"),
        ("3", "2", "retracted"),
    ]
    assert [(each.name, each.website, each.up, each.pinned) for each in stored[1:3]] == [
        ("Ann", "https://ann.example", 3, True),
        ("Ben", "", 0, False),
    ]
    assert stored_imports.threads()["blog.example/roses"].title == "On roses"


def test_each_field_of_the_format_is_in_the_docs() -> None:
    text = (ROOT / "docs" / "import-formats.md").read_text()
    section = text.partition("## Other systems: JSON lines and CSV\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+)", section, re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"\w+", row)} == generic.NAMES


def reddit_lines(path: Path) -> list[Row]:
    _, *found = map(json.loads, path.read_text().splitlines())
    return [
        {
            "id": row["name"],
            "parent": None if row["parent_id"] == row["link_id"] else row["parent_id"],
            "page": "/thread",
            "author": row["author"],
            "text": row["body_html"],
            "format": "html",
            "time": int(row["created_utc"]),
            "up": max(row["ups"], 1),  # A post that was sent twice has no votes.
        }
        for row in found
    ]


def reddit_tree(path: Path) -> list[Row]:
    with path.open(newline="") as file:
        found = list(csv.reader(file, delimiter=";"))
    return [
        {
            "id": number,
            "parent": parent if parent.startswith("t1_") else "",
            "page": "/tree",
            "author": f"a{len(parent)}",
            "text": f"Text of {number}",
            "time": int(float(seconds)) * 1000,
        }
        for number, parent, seconds in found
    ]


def moment(raw: int | str) -> dt.datetime:
    if isinstance(raw, str):
        return dt.datetime.fromisoformat(raw)
    return dt.datetime.fromtimestamp(raw / (1000 if raw > 10**11 else 1), dt.UTC)


def in_order(rows: list[Row]) -> list[str]:
    entries = (
        reading_order.Entry(moment(row["time"]), row["id"], row["parent"] or None) for row in rows
    )
    return reading_order.in_order(entries, LEVELS)


def differences(stored: Expected, row: Row, ids: set[str]) -> list[str]:
    """Return the fields in which a stored comment differs from its row."""
    expected = {
        "parent": row["parent"] if row["parent"] in ids else None,
        "created": moment(row["time"]),
        "text": row["text"],
        "status": records.Status.APPROVED,
        "name": row["author"] or "Guest",
        "up": row.get("up", 0),
    }
    return [name for name, value in expected.items() if getattr(stored, name) != value]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "convert", "save"),
    [
        ("threads/reddit-3hahrw-536.jsonl", reddit_lines, saved_lines),
        ("threads/reddit-3cxwj2-tree-2251.csv", reddit_tree, saved_table),
    ],
)
def test_real_threads_are_stored_completely_and_in_order(
    app: flask.Flask, garden: records.Site, tmp_path: Path, name: str, convert: Any, save: Any
) -> None:
    rows = convert(optional_tools.real_export(name))
    path = save(tmp_path / "export", rows)
    result = app.test_cli_runner().invoke(args=["import", str(path), "--site", "garden"])
    assert result.exit_code == 0, result.output
    threads: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        page = row["page"].removeprefix("https://garden.example")
        threads[f"garden.example{page}"].append(row)
    by_id = {row["id"]: row for row in rows}
    stored = stored_imports.comments("generic", by_id)
    assert len(stored) == len(rows)
    for thread, found in threads.items():
        assert [each.id for each in stored if each.thread == thread] == in_order(found)
    wrong = {each.id: differences(each, by_id[each.id], set(by_id)) for each in stored}
    assert {key: fields for key, fields in wrong.items() if fields} == {}
