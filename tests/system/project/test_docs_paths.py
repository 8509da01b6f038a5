"""The table of both forms of a path in docs/ideas/sets-and-trees.md is measured again."""

import contextlib
import re
import sqlite3
from collections.abc import Callable, Iterator, Sized
from pathlib import Path

import pytest
import yaml

from comments.domain import categories
from datastore_emulator import inprocess, testing
from tests.support import path_forms, programs, raw_client

PAGE = (programs.ROOT / "docs" / "ideas" / "sets-and-trees.md").read_text()
ROWS = {
    "subtree": "a node and everything below it",
    "newest": "the ten newest below a node",
    "children": "the nodes directly below a node",
    "with_part": "a part of the path, at any level",
}
Measured = dict[str, str]


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[inprocess.Engine]:
    file = tmp_path / "index.yaml"
    indexes = [
        {"kind": form.kind, "properties": [
            {"name": name.lstrip("-"), "direction": "desc" if name[0] == "-" else "asc"}
            for name in names
        ]}
        for form in path_forms.FORMS for names in form.indexes
    ]  # fmt: skip
    file.write_text(yaml.safe_dump({"indexes": indexes}))
    with inprocess.open_engine(tmp_path / "data.db", indexes=file, durability="fast") as opened:
        yield opened


def stored(engine: inprocess.Engine, kind: str) -> tuple[int, int, int]:
    """Return the index rows of a kind, those of the last commit, and the bytes of all rows."""
    with contextlib.closing(sqlite3.connect(engine.storage.path)) as connection:
        (version,) = connection.execute("SELECT version FROM engine_state").fetchone()
        protos = dict(
            connection.execute(
                "SELECT id, length(proto) FROM entities WHERE instr(key, ?)", [kind]
            ).fetchall()
        )
        rows = [
            (size, at)
            for entity, size, at in connection.execute(
                "SELECT entity_id, length(entry), version FROM index_entries"
            )
            if entity in protos
        ]
    late = sum(at == version for _, at in rows)
    return len(rows), late, sum(protos.values()) + sum(size for size, _ in rows)


def test_the_table_of_both_forms_is_measured_again(engine: inprocess.Engine) -> None:
    client = raw_client.Client(inprocess.Channel(engine))
    columns: list[Measured] = []
    for kind in path_forms.FORMS:
        form, told = kind(client), Measured()
        form.fill()
        for question, name in ROWS.items():
            with testing.meter(engine) as cost:
                assert path_forms.is_right(form, question)
            told[name] = f"{cost.reads} ({cost.total().index_entries})"
        rows, _, size = stored(engine, form.kind)
        told["index rows of a node"] = f"{rows / len(path_forms.NAMES):.1f}"
        told["bytes of a node with its index rows"] = f"{size / len(path_forms.NAMES):.0f}"
        with testing.meter(engine) as cost:
            form.move()
        _, late, _ = stored(engine, form.kind)
        told["move 111 nodes: reads, writes, new index rows"] = (
            f"{cost.reads}, {cost.writes}, {late}"
        )
        columns.append(told)

    def with_terms(terms: Callable[[str], Sized]) -> str:
        rows = sum(2 + 2 * len(terms(name)) for name in path_forms.NAMES)
        return f"{rows / len(path_forms.NAMES):.1f}"

    assert columns[1]["index rows of a node"] == with_terms(lambda name: categories.terms([name]))
    alone = with_terms(lambda name: list(categories.lineage(name)))
    assert f"a node has {alone} index rows" in PAGE
    table = [f"| {name} | {columns[0][name]} | {columns[1][name]} |" for name in columns[0]]
    assert "\n".join(table) in re.sub(r"\*\*", "", PAGE), "\n".join(table)
