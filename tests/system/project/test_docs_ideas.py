"""The pages in docs/ideas are correct: their examples run, and their numbers are computed again."""

import doctest
import inspect
import itertools
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from comments.domain.ids import sorthash
from tests.support import programs

IDEAS = programs.ROOT / "docs" / "ideas"
PAGES = sorted(IDEAS.glob("*.md"))
FLAT = (IDEAS / "flat-trees.md").read_text()
DECIMAL = sorthash.Scheme("0123456789", 2, 3)
SVG = "{http://www.w3.org/2000/svg}"


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
        padded = sorthash.pad(DECIMAL, sort_hash)
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


def test_the_picture_of_a_reply_shades_the_rows_that_are_written() -> None:
    drawn = list(ET.parse(IDEAS / "one-reply.svg").getroot())  # noqa: S314 - our own XML
    boxes = [
        ("".join(text.itertext()), box.get("class") == "r", box.get("y"))
        for box, text in itertools.pairwise(drawn)
        if box.get("rx")
    ]
    lines = sorted({str(y) for *_, y in boxes}, key=int)
    nested, flat = ([each[:2] for each in boxes if each[2] == line] for line in lines)
    names = [name for name, _ in nested]
    assert [name for name, _ in flat] == names
    place = next(number for number, name in enumerate(names) if name.endswith(", new"))
    reply = names[place].removesuffix(", new")
    hashes = [path.removesuffix(", new").split(".") for path in names]
    assert hashes == sorted(hashes)
    is_above = [reply.startswith(f"{name}.") for name in names]
    expected = [above or number >= place for number, above in enumerate(is_above)]
    assert [written for _, written in nested] == expected
    parent = reply.rpartition(".")[0]
    assert [name for name, written in flat if written] == [parent, names[place]]
    assert (sum(expected), len(names)) == (6, 7)
    assert "nested sets writes six rows; in a flat tree, it writes two](one-reply.svg)" in FLAT


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
    assert any(f"]({picture.name})" in page.read_text() for page in PAGES)


def test_the_costs_of_a_page_are_rows_of_the_cost_table() -> None:
    costs = (programs.ROOT / "docs" / "costs.md").read_text().splitlines()
    table = FLAT.partition("| call | reads | writes |")[2].partition("\n\n")[0]
    rows = table.splitlines()[2:]
    assert len(rows) == 4
    assert set(rows) <= set(costs)


@pytest.mark.parametrize(
    ("modules", "allowed"),
    [
        (("comments.domain.ids.sorthash",), set[str]()),
        (
            (
                "comments.reading.compaction.bucket_layout",
                "comments.reading.materialized.buckets",
                "comments.reading.materialized.merged_view",
            ),
            {"msgspec", "typing_extensions"},
        ),
        (("comments.store.large_sets.segments",), {"msgspec", "typing_extensions"}),
    ],
)
def test_modules_for_other_projects_need_only_the_packages_that_the_pages_name(
    modules: tuple[str, ...], allowed: set[str]
) -> None:
    for name in modules:
        assert any(f"`{name}`" in page.read_text() for page in PAGES)
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
