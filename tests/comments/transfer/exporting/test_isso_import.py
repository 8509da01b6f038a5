"""Isso's own importer reads every comment from a WXR export."""

import json
from pathlib import Path

import pytest

from comments.domain import records
from comments.transfer.checking import checked_import
from comments.transfer.formats import format_registry
from comments.transfer.importing import import_writer
from tests.support import optional_tools
from tests.support.exporting import isso_program, site_exports
from tests.support.threads import sample_exports

LINES = [
    {"id": 1, "page": "/a", "text": "one", "title": "Same"},
    {"id": 2, "page": "/b", "status": "deleted", "title": "Same"},
    {"id": 3, "page": "/b", "parent": 2, "text": "two"},
    {"id": 4, "page": "/b", "parent": 3, "text": ""},
    {"id": 5, "page": "/b", "status": "pending", "text": "three"},
    {"id": 6, "page": "http://localhost:4000/a", "text": "four"},
    {"id": 7, "page": "an id", "text": "five"},
    {"id": 8, "page": "another id", "text": "six", "time": "0999-01-01T00:00:00Z"},
]


def moved(
    site: records.Site, source: Path, target: Path
) -> tuple[checked_import.CheckedImport, str, list[isso_program.Row]]:
    """Import a file, export it as WXR, and import that into Isso."""
    found = format_registry.recognize(source)
    with checked_import.plan(
        found.read,
        source,
        site=site,
        scheme=site.scheme,
        secret=sample_exports.SECRET,
        unit=found.unit,
    ) as plan:
        import_writer.write(plan, scheme=site.scheme, now=sample_exports.NOW)
    path = site_exports.save(target / "x.xml", site.id, format_="wxr")
    return plan, *isso_program.imported(path, target)


def test_isso_stores_every_comment_under_its_page(garden: records.Site, tmp_path: Path) -> None:
    source = tmp_path / "comments.jsonl"
    source.write_text(
        "".join(json.dumps({"time": "2020-01-01T00:00:00Z", **each}) + "\n" for each in LINES)
    )
    _, _, rows = moved(garden, source, tmp_path)
    assert sorted((row.page, row.text, row.parent, row.mode) for row in rows) == [
        ("/a", "<p>one</p>", None, 1),
        ("/a?thread=localhost%3A4000/a", "<p>four</p>", None, 1),
        ("/b", "<p>three</p>", None, 2),
        ("/b", "<p>two</p>", "[deleted]", 1),
        ("/b", "[deleted]", None, 2),
        ("/b", "[no text]", "[deleted]", 1),
        ("an%20id", "<p>five</p>", None, 1),
        ("another%20id", "<p>six</p>", None, 1),
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "disqus/evanlin-189.xml",
        "other/isso-incolumitas-434.db",
    ],
)
def test_isso_stores_every_comment_of_a_real_site(
    garden: records.Site, tmp_path: Path, name: str
) -> None:
    source = optional_tools.real_export(name)
    plan, said, rows = moved(garden, source, tmp_path)
    assert len(rows) == plan.report.comments > 0, said
    assert len({row.page for row in rows}) == len(plan.threads)
