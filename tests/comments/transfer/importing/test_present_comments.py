"""An import does not add comments that its pages have already, from any source."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from comments.domain.records import Status
from comments.sites import site_settings
from comments.transfer.checking import checked_import
from comments.transfer.exporting import site_export
from comments.transfer.formats import format_registry
from comments.transfer.importing import import_writer
from comments.transfer.verification import import_verification
from tests.support import optional_tools
from tests.support.exporting import site_exports
from tests.support.threads import sample_exports, sample_threads, undone_imports
from tests.support.threads.sample_exports import NOW, ROSES, SCHEME, SECRET, rows
from tests.support.threads.undone_imports import brought, comment, saved, undo

TEXTS = ["<p>one</p><p>two &amp; <b>three</b></p>", "https://ada.example/", "", "   ", "+1", "+1"]


def planned(path: Path, *, is_untrusted: bool = False) -> checked_import.CheckedImport:
    found = format_registry.recognize(path)
    read = found.read_untrusted if is_untrusted else found.read
    return sample_exports.planned_by(read, path, site=site_settings.get("garden"))


def already(plan: checked_import.CheckedImport) -> int:
    return sum(line.startswith("Already on the website") for line in plan.report.lines())


def fill(path: Path) -> None:
    """Import comments of all states, and post some here, with replies, a retraction and an edit."""
    sources = [
        comment(f"{10 * n + number}", status=status, body=text, name=name)
        for n, status in enumerate(Status)
        for number, (text, name) in enumerate(zip(TEXTS, ["Ada", ""] * 3, strict=True))
    ]
    retracted = f"{10 * list(Status).index(Status.RETRACTED)}"
    brought(saved(path, [*sources, comment("100", retracted)]))
    site = site_settings.get("garden")
    here = sample_threads.post(site, "*here* <b>1</b>", thread=ROSES.id)
    sample_threads.post(site, "a reply", here.id, thread=ROSES.id)
    sample_threads.retract(here)


@pytest.mark.usefixtures("garden")
@pytest.mark.parametrize("format_", sorted(site_export.FORMATS))
@pytest.mark.parametrize("is_untrusted", [False, True])
def test_an_export_of_the_site_adds_nothing_to_it(
    tmp_path: Path, format_: str, *, is_untrusted: bool
) -> None:
    fill(tmp_path / "source")
    copy = site_exports.save(tmp_path / "copy", "garden", format_=format_)
    before = rows()
    with planned(copy, is_untrusted=is_untrusted) as plan:
        summary = import_writer.write(plan, scheme=SCHEME, now=NOW)
        assert (summary.added, summary.present) == (0, len(before))
        assert already(plan) == 1
        assert import_verification.verify(plan, secret=SECRET).unexplained_count == 0
    with planned(copy, is_untrusted=is_untrusted) as plan:
        assert import_verification.verify(plan, secret=SECRET).unexplained_count == 0
    assert rows() == before


@pytest.mark.slow
@pytest.mark.usefixtures("garden")
@pytest.mark.parametrize("format_", sorted(site_export.FORMATS))
@pytest.mark.parametrize(
    "name",
    ["disqus/benbalter-1145.xml", "wxr/themeunittestdata-33.xml", "other/twikoo-zl88-61.json"],
)
def test_an_export_of_a_real_site_adds_nothing_to_it(
    tmp_path: Path, name: str, format_: str
) -> None:
    with planned(optional_tools.real_export(name)) as plan:
        import_writer.write(plan, scheme=SCHEME, now=NOW)
    copy = site_exports.save(tmp_path / "copy", "garden", format_=format_)
    before = rows()
    with planned(copy) as plan:
        assert import_writer.write(plan, scheme=SCHEME, now=NOW).added == 0
        assert import_verification.verify(plan).unexplained_count == 0
    assert rows() == before


@pytest.mark.usefixtures("garden")
def test_comments_of_two_systems_are_added_once(tmp_path: Path) -> None:
    """The second system has other ids, fractions of seconds and markup, and more comments."""
    brought(saved(tmp_path / "one", [comment("1"), comment("2", "1"), comment("3")]))
    before = rows()
    one, two, three = before[0], before[1], before[2]
    later = timedelta(microseconds=999_999)
    same: dict[str, Any] = {"created": three.created, "name": "Author 0", "body": "imported 3"}
    others = [
        comment("11", created=one.created + later, name="Author 1", body="<i>imported\n  1</i>"),
        comment("12", "11", created=two.created, name="Author 2", body="imported 2"),
        comment("13", **same),
        comment("14", "12", **same),  # The same text, written twice at this time
        comment("15", **(same | {"name": "Author 1"})),
        comment("16", **(same | {"created": three.created + timedelta(seconds=20)})),
        comment("17", "12"),
    ]
    path = saved(tmp_path / "two", others)
    run = brought(path)
    with sample_exports.planned_by(undone_imports.read, path) as plan:
        added = {plan.id_of(number) for number in ("13", "14", "15", "16", "17")}
        answer = plan.id_of("17")
    answered = {row.id: row.reply_to for row in rows()}
    known = {row.id for row in before}
    assert answered.keys() - known < added
    assert len(answered) == len(before) + len(added) - 1  # The site has 13 or 14 already
    assert answered[answer] == two.id
    for is_again in (False, True):
        with sample_exports.planned_by(undone_imports.read, path) as plan:
            assert import_verification.verify(plan).unexplained_count == 0
            assert is_again or sample_exports.write(plan).added == 0
    undo(run)
    assert {row.id: row.html for row in rows()} == {row.id: row.html for row in before}


@pytest.mark.usefixtures("garden")
def test_a_copy_on_another_page_is_added(tmp_path: Path) -> None:
    brought(saved(tmp_path / "one", [comment("1")]))
    (row,) = rows()
    other = comment("2", page="tulips", created=row.created, name="Author 1", body="imported 1")
    assert brought(saved(tmp_path / "two", [other])).added == 1


@pytest.mark.usefixtures("garden")
def test_comments_of_a_file_with_one_former_id_are_all_added(tmp_path: Path) -> None:
    same = [
        comment(number, page=page, former="a" * 26)
        for number, page in (("1", "roses"), ("2", "roses"), ("3", "tulips"))
    ]
    assert brought(saved(tmp_path / "one", same)).added == len(same)
