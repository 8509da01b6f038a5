"""A real export of Commento is stored as a plain reading of its JSON says."""

import datetime as dt
import json
from pathlib import Path

import flask
import pytest

from comments.domain import records
from comments.transfer import import_source
from comments.transfer.formats import commento, format_registry
from tests.support import optional_tools
from tests.support.importing import stored_imports
from tests.support.importing.samples import commento as samples

REAL = "fixtures/remark42/commento.json"


def test_a_real_export_is_stored_as_it_says(app: flask.Flask, garden: records.Site) -> None:
    path = optional_tools.real_export(REAL)
    assert format_registry.recognize(path).name == "commento"
    result = app.test_cli_runner().invoke(args=["import", str(path), "--site", "garden"])
    assert result.exit_code == 0, result.output
    content = json.loads(path.read_text())
    people = {each["commenterHex"]: each for each in content["commenters"]}
    expected = [
        (
            row["domain"] + row["url"],
            row["commentHex"],
            None if row["parentHex"] == "root" else row["parentHex"],
            dt.datetime.fromisoformat(row["creationDate"]),
            row["markdown"],
            people.get(row["commenterHex"], {"name": "Guest"})["name"],
            people.get(row["commenterHex"], {"link": ""})["link"],
            row["score"],
            records.Status.APPROVED,
        )
        for row in content["comments"]
    ]
    stored = stored_imports.comments("commento", [row[1] for row in expected])
    assert sorted(expected) == [
        (
            each.thread,
            each.id,
            each.parent,
            each.created,
            each.text,
            each.name,
            each.website,
            each.up - each.down,
            each.status,
        )
        for each in stored
    ]


@pytest.mark.parametrize("head", [b'{"version":1,"comments":[],"commenters":[]}', b"commentHex"])
def test_a_file_without_its_fields_is_not_recognized(head: bytes) -> None:
    assert not format_registry.get("commento").recognizes(head)


def test_undefined_stands_for_no_data(tmp_path: Path) -> None:
    path = tmp_path / "export"
    path.write_bytes(samples.SANE.data)
    found = list(commento.read(path))
    comments = [each for each in found if isinstance(each, import_source.SourceComment)]
    assert {
        (each.email, each.website, each.account) for each in comments if each.name == "Bob"
    } == {("", "", "")}
    assert [each for each in found if isinstance(each, import_source.Corrected)] == []
