"""The pages in docs/ideas are correct: their examples run, and their numbers are computed again."""

import collections
import doctest
import inspect
import itertools
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pytest

from benchmarks.layouts import bills, comparison, layout_tables, rivals
from benchmarks.threads import conversations, shapes
from comments.domain import sorthash
from comments.store.wire import queries
from emulator import protobufs, testing
from tests.support import programs

IDEAS = programs.ROOT / "docs" / "ideas"
PAGES = sorted(IDEAS.glob("*.md"))
FLAT = (IDEAS / "flat-trees.md").read_text()
LAYOUTS = (IDEAS / "three-layouts.md").read_text()
DECIMAL = sorthash.Scheme("0123456789", 2, 3)
SCHEME = sorthash.Scheme()
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
    assert made.operations(100, "materialized, warm", "page") == "0 / 1"
    assert made.operations(100, "path", "page") == "50"
    assert made.operations(100, "nested", "post") == "too large"
    assert made.operations(100, "embedded", "post") == "-"
    assert made.operations(100, "flat tree", "post") == "1 + 2 w"
    assert made.of_reply(100, "flat tree", 10) == 10 * 50 + 1 + 3 * 2


class FlatTree(rivals.Documents):
    """The plain flat tree of the page, as one entity per comment."""

    name = bills.FLAT_TREE
    kind = "Flat"
    indexes = (("Flat", "thread", "sort_hash"),)

    def fill(self, thread: Sequence[conversations.Said]) -> None:
        hashes: dict[str | None, str] = {None: ""}
        counts = collections.Counter[str | None]()
        for said in thread:
            counts[said.parent] += 1
            number = counts[said.parent] - (said.parent is None)
            hashes[said.id] = sorthash.child(SCHEME, hashes[said.parent], number)
        self.client.put([self._entity(said, hashes[said.id], counts[said.id]) for said in thread])

    def page(self, limit: int | None) -> list[str]:
        where = (("thread", "=", rivals.THREAD), ("sort_hash", ">", ""))
        query = queries.Query(self.kind, where, ("sort_hash",), limit=limit)
        return [entity.key.path[-1].name for entity in self.client.run(query)]

    def whole(self) -> list[str]:
        return self.page(None)

    def post(self, said: conversations.Said) -> None:
        def body(transaction: bytes) -> Iterator[protobufs.Entity]:
            parent = self.client.get(self.kind, [str(said.parent)], transaction)[str(said.parent)]
            counter = parent.properties["child_count"]
            counter.integer_value += 1
            above = parent.properties["sort_hash"].string_value
            yield parent
            yield self._entity(said, sorthash.child(SCHEME, above, counter.integer_value), 0)

        self.client.transact(body)

    def _entity(self, said: conversations.Said, sort_hash: str, count: int) -> protobufs.Entity:
        entity = self.client.entity(self.kind, said.id)
        rivals.write(entity, said, {"thread": rivals.THREAD, "sort_hash": sort_hash})
        entity.properties["child_count"].integer_value = count
        entity.properties["child_count"].exclude_from_indexes = True
        return entity


@pytest.mark.parametrize("size", [30, 130])
def test_the_computed_bills_of_a_flat_tree_are_those_of_the_meter(
    tmp_path: Path, size: int
) -> None:
    thread = conversations.thread(shapes.grown(size))
    answered = thread[size // 2]
    with comparison.Stores(tmp_path) as stores:
        opened = stores.open(FlatTree, thread)
        with opened.entered() as layout:
            assert layout.whole() == conversations.walk(thread)
            assert layout.page(comparison.PAGE) == conversations.walk(thread)[: comparison.PAGE]
            calls = {
                "page": lambda: layout.page(comparison.PAGE),
                "whole": layout.whole,
                "edit": lambda: layout.edit(answered.id, "<p>new</p>"),
                "post": lambda: layout.post(conversations.reply(size, answered.id)),
            }
            found = {}
            for name, call in calls.items():
                with testing.meter(opened.engine) as cost:
                    call()
                found[name] = (cost.reads, cost.writes)
            thread.append(conversations.reply(size, answered.id))
            assert layout.whole() == conversations.walk(thread)
    assert found == {each.call: (each.reads, each.writes) for each in bills.flat_tree(size)}


def test_the_advice_follows_from_the_bills() -> None:
    made = bills.Bills(run_of_the_document())

    def bill(size: int, layout: str, views: float) -> float:
        found = made.of_reply(size, layout, views)
        return float("inf") if found is None else found

    def cheapest(size: int, views: float) -> str:
        return min(made.layouts, key=lambda layout: bill(size, layout, views))

    cold, warm = "materialized", "materialized, warm"
    for views in (0, 1, 10, 100, 1_000, 100_000):
        assert bill(100, "embedded", views) == bill(100, cheapest(100, views), views)
    for size in (10_000, 100_000):
        assert {cheapest(size, views) for views in (1, 10, 14)} == {"buckets"}
        assert {cheapest(size, views) for views in (15, 100, 1_000, 100_000)} == {warm}
        assert bill(size, "flat tree", 1 / 3) < bill(size, warm, 1 / 3)
        assert bill(size, "flat tree", 1 / 2) > bill(size, cold, 1 / 2)
    for size in bills.SIZES:
        for views in bills.VIEWS:
            more = bill(size, cold, views) - bill(size, "buckets", views)
            assert round(more) in {14, 15}
            # The price if probes were free.
            assert round(bill(size, warm, views) - views * bills.PROBE) == 23


def test_the_numbers_that_explain_the_tables_are_from_the_run() -> None:
    run = run_of_the_document()
    reads = {(each.size, each.layout, each.call): each.reads for each in run.figures}
    extra = [reads[size, "floor", "page"] - 50 for size in bills.SIZES]
    assert extra == [4, 18, 108]
    assert "4 reads at 100 comments, 18 at 10,000, and 108 at 100,000" in LAYOUTS
    assert reads[10_000, "floor", "whole"] - 10_000 == 300
    assert {thread.changes for thread in run.threads} == {20}
    for thread in run.threads:
        share = thread.folding_reads + bills.WRITE * thread.folding_writes
        assert round(1 + (share + bills.DELETE * thread.folding_deletes) / thread.changes) == 4


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
