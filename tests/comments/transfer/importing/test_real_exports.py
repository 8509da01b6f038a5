"""Real exports are stored as an independent reader reads them, or are refused with advice.

The tests run only if exports are available.
"""

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from comments import errors
from comments.domain import records
from comments.domain.ids import sorthash
from comments.transfer.checking import checked_import, import_report
from comments.transfer.formats import format_registry
from comments.transfer.importing import import_writer
from comments.transfer.parsing import xml_reader
from comments.tree.lists import ordered_query
from comments.upkeep.integrity import repair
from tests.support import optional_tools
from tests.support.importing import stored_imports, xml_exports
from tests.support.importing.sample_files import Expected
from tests.support.threads import sample_threads
from tests.support.threads.sample_exports import (
    SECRET,
    entities,
    planned_by,
    rows,
    write,
)

# The numbers of comments and threads.
IMPORTED: dict[str, tuple[int, int]] = {
    "disqus/benbalter-1145.xml": (1145, 87),
    "disqus/laisky-209.xml": (209, 60),
    "disqus/evanlin-189.xml": (189, 55),
    "wxr/themeunittestdata-33.xml": (29, 7),
    "wxr/timothyfitz-381.xml": (206, 11),
    "fixtures/isso/disqus.xml": (5, 2),
    "fixtures/isso/wordpress.xml": (7, 1),
    "fixtures/wordpress/cdata-edge.xml": (0, 0),
    "fixtures/wordpress/multiple-cdata.xml": (0, 0),
    "fixtures/wordpress/namespace-edge-cases.xml": (0, 0),
    "fixtures/wordpress/slashes.xml": (1, 1),
    "fixtures/wordpress/small-export.xml": (1, 1),
    "fixtures/wordpress/test-serialized-comment-meta.xml": (1, 1),
    "fixtures/wordpress/valid-wxr-1.0.xml": (1, 1),
    "fixtures/wordpress/valid-wxr-1.1.xml": (1, 1),
    "fixtures/wordpress/wxr-utf-8-challenges.xml": (0, 0),
}
QUOTES = "put quotes around the values of attributes"
REFUSED = {
    "fixtures/wordpress/malformed-simple.xml": (14, "the file ends too early"),
    "fixtures/wordpress/wxr-with-sub-data.xml": (33, "Write one in <wp:comment_date_gmt>"),
    "fixtures/remark42/disqus.xml": (147, QUOTES),
    "fixtures/remark42/disqus-deleted-post.xml": (147, QUOTES),
    "fixtures/remark42/disqus-deleted-thread.xml": (147, QUOTES),
}


def planned(path: Path) -> checked_import.CheckedImport:
    return planned_by(format_registry.recognize(path).read, path)


def test_every_xml_file_has_an_expectation() -> None:
    files = optional_tools.real_export("disqus/laisky-209.xml").parents[1].rglob("*.xml")
    names = {str(path.relative_to(optional_tools.EXPORTS)) for path in files}
    assert names == IMPORTED.keys() | REFUSED.keys()


@pytest.mark.parametrize("name", IMPORTED)
def test_a_real_file_is_read_without_corrections(name: str) -> None:
    with planned(optional_tools.real_export(name)) as plan:
        report = plan.report
    corrected = {text for kind, text in report.tallies if kind == import_report.CORRECTED}
    assert (report.comments, report.threads) == IMPORTED[name]
    assert corrected == set()


@pytest.mark.parametrize("name", REFUSED)
def test_a_real_file_that_cannot_be_corrected_is_refused_and_leaves_nothing(
    garden: records.Site, name: str
) -> None:
    line, advice = REFUSED[name]
    with pytest.raises(errors.BadImport) as caught:
        planned(optional_tools.real_export(name))
    assert caught.value.line == line
    assert advice in caught.value.message
    assert entities() == 0


@pytest.mark.parametrize(
    ("name", "statuses"),
    [
        ("disqus", {"approved": 5, "spam": 1}),
        ("disqus-deleted-post", {"approved": 4, "spam": 1, "retracted": 1}),
        ("disqus-deleted-thread", {"approved": 2}),
    ],
)
def test_a_refused_file_is_read_after_the_advised_corrections(
    tmp_path: Path, name: str, statuses: dict[str, int]
) -> None:
    data = optional_tools.real_export(f"fixtures/remark42/{name}.xml").read_bytes()
    path = tmp_path / "export.xml"
    for message, old, new in [
        (":147: invalid XML: .* put quotes around", b"dsq:id=247937687/", b'dsq:id="247937687"/'),
        (":102: not a valid id: ''. Use a different id", b"<post>", b'<post dsq:id="1">'),
        (":135: not a valid date: '2011-x09-30.* Write it as", b"2011-x09", b"2011-09"),
    ]:
        path.write_bytes(data)
        with pytest.raises(errors.BadImport, match=message):
            planned(path)
        assert old in data
        data = data.replace(old, new)
    path.write_bytes(data)
    with planned(path) as plan:
        assert plan.report.statuses == statuses
        tallies = plan.report.tallies
        corrected = {text for kind, text in tallies if kind == import_report.CORRECTED}
    assert corrected == {xml_reader.BEFORE}


def stored(system: str, ids: list[str]) -> list[Expected]:
    return [
        dataclasses.replace(each, person="", website="", html="", text=xml_exports.words(each.text))
        for each in stored_imports.comments(system, ids)
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "count", "levels"),
    [
        ("disqus/benbalter-1145.xml", 1145, 8),
        ("disqus/benbalter-1145.xml", 1145, 3),
        ("disqus/laisky-209.xml", 209, 8),
        ("disqus/laisky-209.xml", 209, 3),
        ("disqus/evanlin-189.xml", 189, 8),
        ("wxr/themeunittestdata-33.xml", 29, 8),
        ("wxr/themeunittestdata-33.xml", 29, 3),
        ("wxr/timothyfitz-381.xml", 206, 8),
        ("fixtures/isso/disqus.xml", 5, 8),
        ("fixtures/isso/wordpress.xml", 7, 8),
    ],
)
def test_a_real_export_is_stored_as_an_independent_reader_reads_it(
    garden: records.Site, name: str, count: int, levels: int
) -> None:
    path = optional_tools.real_export(name)
    found = format_registry.recognize(path)
    read: Callable[[Path], dict[str, Expected]] = getattr(xml_exports, found.name)
    expected = list(xml_exports.in_order(read(path), levels))
    assert len(expected) == count
    scheme = sorthash.Scheme(levels=levels)
    garden = sample_threads.shaped(garden, scheme)
    with checked_import.plan(found.read, path, site=garden, scheme=scheme, secret=SECRET) as plan:
        assert write(plan, levels) == import_writer.ImportSummary(count, 0, len(plan.threads))
        assert stored(found.name, [each.id for each in expected]) == expected
        before = rows()
        for thread in plan.threads:
            listed = [row.id for row in before if row.thread == thread.name.id and row.listed]
            assert [row.id for row in ordered_query.thread(thread.name)] == listed
            assert repair.find_problems(scheme, thread.name) == []
        assert write(plan, levels).added == 0
    assert rows() == before
