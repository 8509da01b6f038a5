"""The pages in docs/ideas are correct: their examples run, and their numbers are computed again."""

import doctest
import inspect
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import msgspec
import pytest

from benchmarks.layouts import bills, layout_tables
from comments.domain import sorthash
from tests.support import programs

IDEAS = programs.ROOT / "docs" / "ideas"
PAGES = sorted(IDEAS.glob("*.md"))
FLAT = (IDEAS / "flat-trees.md").read_text()
LAYOUTS = (IDEAS / "three-layouts.md").read_text()
DECIMAL = sorthash.Scheme("0123456789", 2, 3)
SVG = "{http://www.w3.org/2000/svg}"


def run_of_the_document() -> layout_tables.Run:
    return msgspec.json.decode(bills.FIGURES.read_bytes(), type=layout_tables.Run)


def session(page: Path) -> doctest.DocTest:
    """Return the Python examples of a page as one session, with the page's line numbers."""
    lines, is_python = [], False
    for line in page.read_text().splitlines():
        if line.startswith("```"):
            is_python = line == "```python"
        lines.append("" if line.startswith("```") or not is_python else line)
    text = "\n".join([*lines, ""])
    return doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_examples_of_a_page_print_what_the_page_shows(page: Path) -> None:
    examples = session(page)
    printed: list[str] = []
    result = doctest.DocTestRunner(verbose=False).run(examples, out=printed.append)
    assert result.failed == 0, "".join(printed)
    assert result.attempted > 30
    # No example is outside of the session.
    assert page.read_text().count(">>> ") == result.attempted


def test_the_table_of_a_tree_has_the_numbers_that_the_code_computes() -> None:
    found = re.findall(
        r"^\| ([\d.]+) \| (\d+) \| (\d) \| `(\d+)` \| `(\d+)` \| (\d+) \|$", FLAT, re.MULTILINE
    )
    names = [name for name, *_ in found]
    expected = []
    for name in names:
        root, *below = map(int, name.split("."))
        numbers = (root - 1, *below)
        sort_hash = ""
        for number in numbers:
            sort_hash = sorthash.child(DECIMAL, sort_hash, number)
        children = sum(other.rpartition(".")[0] == name for other in names)
        level = sorthash.level(DECIMAL, sort_hash)
        padded = sorthash.padded(DECIMAL, sort_hash)
        row = (name, numbers[-1], level, padded, sort_hash, children)
        expected.append(tuple(map(str, row)))
    assert found == expected
    assert len(names) == 12
    assert [padded for *_, padded, _, _ in found] == sorted(padded for *_, padded, _, _ in found)


def test_the_picture_of_a_tree_shows_the_hashes_of_the_table() -> None:
    stored = re.findall(r"^\| [\d.]+ \|.*\| `(\d+)` \| \d+ \|$", FLAT, re.MULTILINE)
    drawn = ET.parse(IDEAS / "flat-trees.svg").getroot()  # noqa: S314 - our own XML
    shown = ["".join(text.itertext()) for text in drawn.iter(f"{SVG}text")]
    hashes = [text for text in shown if text.isdecimal()]
    # Single digits are the names of the roots.
    assert [text for text in hashes if len(text) > 1] == [
        each for short in stored for each in (short.ljust(6, "0"), short)
    ]


@pytest.mark.parametrize("picture", sorted(IDEAS.glob("*.svg")), ids=lambda path: path.name)
def test_pictures_have_a_title_and_colors_for_dark_screens_and_are_shown(picture: Path) -> None:
    text = picture.read_text()
    drawn = ET.fromstring(text)  # noqa: S314 - our own XML
    assert (drawn.findtext(f"{SVG}title") or "").strip()
    assert (drawn.findtext(f"{SVG}desc") or "").strip()
    light, dark = text.split("@media(prefers-color-scheme:dark)")
    for name in ("page", "n", "r"):
        assert f".{name}{{" in light
        assert f".{name}{{" in dark
    colors_outside_the_style = re.findall(r'(?:fill|stroke)="[^"]*"', text)
    assert colors_outside_the_style == []
    assert f"]({picture.name})" in FLAT + LAYOUTS


def test_the_costs_of_a_page_are_rows_of_the_cost_table() -> None:
    costs = (programs.ROOT / "docs" / "costs.md").read_text().splitlines()
    table = FLAT.partition("| call | reads | writes |")[2].partition("\n\n")[0]
    rows = table.splitlines()[2:]
    assert len(rows) == 4
    assert set(rows) <= set(costs)


def test_the_bills_are_computed_from_the_measured_run(tmp_path: Path) -> None:
    run = run_of_the_document()
    assert f"\n\n{bills.markdown(run)}\n\n" in LAYOUTS
    for most in run.most_embedded.values():
        assert f"{most:,}" in LAYOUTS
    document = tmp_path / "page.md"
    document.write_text(f"{layout_tables.BEGIN}\n{layout_tables.END}\n")
    bills.main(["--write", "--document", str(document)])
    assert bills.markdown(run) in document.read_text()


def test_a_bill_counts_writes_as_three_reads_and_includes_the_compaction() -> None:
    def figures(layout: str, call: str, reads: int, writes: int = 0) -> layout_tables.Figures:
        return layout_tables.Figures(layout, 100, call, reads, writes, 0, 0, 1, 1, 1)

    thread = layout_tables.Thread(
        size=100,
        below=7,
        depth=3,
        stored={},
        missing=(),
        refused=(("post", "nested"),),
        changes=10,
        folding_writes=20,
        folding_deletes=30,
        folding_reads=40,
    )
    found = [
        figures("path", "page", 50),
        figures("path", "post", 1, 1),
        figures("nested", "page", 50),
        figures("materialized", "page", 1),
        figures("materialized", "post", 4, 5),
        figures("materialized, warm", "page", 0),
    ]
    made = bills.Bills(layout_tables.Run("a shape", 1, {}, 100, [thread], found))
    assert made.of_reply(100, "path", 10) == 10 * 50 + 1 + 3 * 1
    assert made.of_reply(100, "nested", 10) is None
    compaction = (40 + 3 * 20 + 30 / 3) / 10
    reply = 4 + 3 * 5 + 1 + compaction
    assert made.of_reply(100, "materialized", 10) == 10 * (1 + 1) + reply
    assert made.of_reply(100, "materialized, warm", 10) == 10 * (0 + 1) + reply
    assert made.operations(100, "materialized, warm", "post") == "4 + 5 w"
    assert made.operations(100, "nested", "post") == "-"


@pytest.mark.parametrize(
    ("modules", "allowed"),
    [
        (("comments.domain.sorthash",), set[str]()),
        (
            (
                "comments.reading.compaction.bucket_layout",
                "comments.reading.materialized.buckets",
                "comments.reading.materialized.merged_view",
            ),
            {"msgspec", "typing_extensions"},
        ),
    ],
)
def test_modules_for_other_projects_need_only_the_packages_that_the_pages_name(
    modules: tuple[str, ...], allowed: set[str]
) -> None:
    for name in modules:
        assert f"`{name}`" in LAYOUTS
    program = (
        f"import sys; before = set(sys.modules); import {', '.join(modules)}; "
        "print(*{each.partition('.')[0] for each in set(sys.modules) - before})"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=programs.ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert set(done.stdout.split()) - sys.stdlib_module_names - {"comments"} <= allowed


def test_the_list_of_functions_names_public_functions_with_their_arguments() -> None:
    rows = re.findall(r"^\| `(\w+)\(([^)]*)\)` \|", FLAT, re.MULTILINE)
    assert len(rows) == 11
    for name, arguments in rows:
        taken = inspect.signature(getattr(sorthash, name)).parameters
        assert list(taken) == arguments.split(", "), name
