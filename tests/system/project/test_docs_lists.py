"""The numbers, tables and pictures in docs/ideas/lists.md are computed again."""

import ast
import doctest
import inspect
import itertools
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.layouts import bills, layout_tables
from benchmarks.lists import list_tables
from comments.domain import records
from comments.store import connection, transactions
from comments.store.large_sets import many_marks, membership, set_compaction
from emulator import inprocess, testing
from tests.support import programs
from tests.system.project.test_docs_ideas import IDEAS, SVG, session

PAGE = IDEAS / "lists.md"
TEXT = PAGE.read_text()
FLAT_TEXT = " ".join(TEXT.split())
BEGINNING = {"pointer": (1, 0, "base 0"), "base 0": "+ann +ben +cleo "}
NAMES = ("ann", "dan")
# One step of many processes: what happens, and a number that chooses who does it.
STEPS = st.tuples(
    st.sampled_from(
        ["join", "leave", "sleep", "wake", "compact", "compact", "compact", "finish", "crash"]
    ),
    st.sampled_from([0, 0, 0, 1]),
)


@pytest.fixture(scope="module")
def page() -> dict[str, Any]:
    """The functions that the page defines for a plain key-value store."""
    examples = session(PAGE)
    end = next(n for n, each in enumerate(examples.examples) if "import segments" in each.source)
    del examples.examples[end:]
    result = doctest.DocTestRunner(verbose=False).run(examples, clear_globs=False)
    assert result.failed == 0
    return examples.globs


@pytest.fixture(scope="module")
def run() -> list_tables.Run:
    return msgspec.json.decode(
        (programs.ROOT / "docs" / "lists" / "figures.json").read_bytes(), type=list_tables.Run
    )


def texts(picture: Path) -> list[str]:
    drawn = ET.parse(picture).getroot()  # noqa: S314 - our own XML
    return ["".join(text.itertext()) for text in drawn.iter(f"{SVG}text")]


def test_the_four_ways_show_what_the_table_says(page: dict[str, Any]) -> None:
    changes = ["+ann", "+ben", "+cleo", "-ben", "+ben", "-ann"]
    joined = [each[1:] for each in changes if each[0] == "+"]
    left = [each[1:] for each in changes if each[0] == "-"]
    plain = [each.removeprefix("+") for each in changes]
    found = re.findall(r"^\| ([a-z ]+) \| `(.*)` \| ([a-z, ]+) \|$", TEXT, re.MULTILINE)
    assert found == [
        ("one text", " ".join(joined), ", ".join(sorted({*joined}))),
        ("tombstones", " ".join(plain), ", ".join(page["without_tombstones"](" ".join(plain)))),
        (
            "two lists",
            f"{' '.join(joined)}` and `{' '.join(left)}",
            ", ".join(page["difference"](" ".join(joined), " ".join(left))),
        ),
        ("marks", " ".join(changes), ", ".join(page["members"](" ".join(changes)))),
    ]
    assert "the right answer, which is Ben and Cleo" in TEXT


class Processes:
    """The writers and compactions of one list, and the ids that it must contain."""

    def __init__(self, page: dict[str, Any]) -> None:
        self.page = page
        self.store = page["store"] = page["Store"](BEGINNING)
        self.expected = {"ann", "ben", "cleo"}
        self._asleep: list[tuple[int, str]] = []
        self._compactions: dict[int, Iterator[str]] = {}
        self._made = itertools.count()

    def join(self, number: int) -> None:
        self.page["add"](f"+{NAMES[number]}")
        self.expected.add(NAMES[number])

    def leave(self, number: int) -> None:
        self.page["add"](f"-{NAMES[number]}")
        self.expected.discard(NAMES[number])

    def sleep(self, _number: int) -> None:
        """Let a writer read the pointer and then do nothing."""
        self._asleep.append((self.store["pointer"][0], f"writer{next(self._made)}"))

    def wake(self, number: int) -> None:
        """Let a writer append to the generation that it saw, as the page's `add` does."""
        if self._asleep:
            generation, name = self._asleep.pop(number % len(self._asleep))
            if not self.page["append_to"](generation, f"+{name}"):
                self.page["add"](f"+{name}")
            self.expected.add(name)

    def compact(self, number: int) -> None:
        """Take the next step of a compaction, or begin one."""
        begun = self._compactions.pop(number, None)
        compaction = begun or self.page["compact"](f"attempt{next(self._made)}")
        if next(compaction, None) is not None:
            self._compactions[number] = compaction

    def finish(self, number: int) -> None:
        """Take the remaining steps of a compaction, or all steps of a new one."""
        self.compact(number)
        while number in self._compactions:
            self.compact(number)

    def crash(self, number: int) -> None:
        self._compactions.pop(number, None)


@given(steps=st.lists(STEPS, min_size=10, max_size=60))
def test_compactions_slow_writers_and_crashes_lose_nothing(
    page: dict[str, Any], steps: list[tuple[str, int]]
) -> None:
    processes = Processes(page)
    for step, number in steps:
        getattr(processes, step)(number)
        assert page["read"]() == sorted(processes.expected)
    for attempt in ("last", "very last"):
        assert list(page["compact"](attempt)) == ["closed", "written", "switched", "cleaned"]
    assert page["read"]() == sorted(processes.expected)
    opened, merged, base = processes.store["pointer"]
    assert set(processes.store) <= {"pointer", base, f"marks {merged}", f"marks {opened}"}


def test_the_picture_of_a_compaction_shows_what_is_stored(page: dict[str, Any]) -> None:
    store = page["store"] = page["Store"](BEGINNING)
    add, append_to = page["add"], page["append_to"]
    panels: list[dict[str, str]] = []

    def look() -> None:
        stored = {key: str(store[key]).strip() for key in store}
        panels.append(stored | {"readers": " ".join(page["read"]())})

    add("+dan")
    add("-ben")
    look()
    steps = page["compact"]("a")
    next(steps)
    add("+eve")
    append_to(1, "+finn")
    look()
    next(steps)
    look()
    next(steps)
    append_to(1, "+gus")
    look()
    keys = ["pointer", "base 0", "base 1 a", "marks 1", "marks 2", "readers"]
    drawn = ET.parse(IDEAS / "generations.svg").getroot()  # noqa: S314 - our own XML
    labels = ["".join(text.itertext()) for text in drawn.iter(f"{SVG}text")]
    assert labels[1:7] == keys
    columns = [[each[key] for key in keys if key in each] for each in panels]
    titles = ["before", "1. close", "2. write", "3. switch"]
    shown = [
        text for title, column in zip(titles, columns, strict=True) for text in (title, *column)
    ]
    assert labels[7:-1] == shown


def test_the_picture_of_a_large_set_shows_the_set_of_the_page() -> None:
    printed = re.search(r"^>>> \[\(line\.first, line\.count\).*\n(.*)$", TEXT, re.MULTILINE)
    assert printed is not None
    lines = ast.literal_eval(printed[1])
    shown = texts(IDEAS / "large-set.svg")
    assert [f"{first}: {count:,}" for first, count in lines] == shown[4:7]
    ends = [*(first for first, _ in lines[1:]), "visitor-030000"]
    ranges = [
        (first, f"to visitor-{int(end[-6:]) - 1:06d}")
        for (first, _), end in zip(lines, ends, strict=True)
    ]
    assert [tuple(shown[n : n + 2]) for n in (8, 10, 12)] == ranges
    total = sum(count for _, count in lines) - 1
    assert shown[0] == f"The set rules:large: {total:,} ids"
    assert f"\n({total}, 3, 0)\n" in TEXT
    assert "-visitor-000007" in shown


class Prices:
    """The price of each call in reads, from the measured run of docs/lists.md."""

    def __init__(self, run: list_tables.Run) -> None:
        self._figures = {(each.size, each.layout, each.call): each for each in run.figures}
        self._foldings = {each.size: each for each in run.foldings}

    def of(self, size: int, way: str, call: str) -> float | None:
        found = self._figures.get((size, way, call))
        return None if found is None else price(found)

    def change(self, size: int, way: str) -> float | None:
        joining, leaving = self.of(size, way, "join"), self.of(size, way, "leave")
        if joining is None or leaving is None:
            return None
        folding = self._foldings[size]
        share = price(folding) / folding.marks if way == "ours" else 0
        return (joining + leaving) / 2 + share

    def changes_for(self, size: int, call: str, more: int = 0) -> float:
        """Return how many changes cost as much more as one call costs less than with rows."""
        rows, ours = self.of(size, "rows", call), self.of(size, "ours", call)
        dearer, cheaper = self.change(size, "ours"), self.change(size, "rows")
        assert None not in (rows, ours, dearer, cheaper)
        return (rows - ours - more) / (dearer - cheaper)  # type: ignore[operator]

    def bytes(self, size: int, way: str, call: str) -> int:
        found = self._figures[size, way, call]
        return found.bytes_in + found.bytes_out


def price(billed: layout_tables.Figures | list_tables.Folding) -> float:
    return billed.reads + bills.WRITE * billed.writes + bills.DELETE * billed.deletes


def test_the_prices_are_computed_from_the_measured_run(run: list_tables.Run) -> None:
    prices = Prices(run)
    names = {"rows": "rows", "one text": "one text", "ours": "large set"}
    for size in (100, 10_000, 200_000):
        for way, name in names.items():
            change = prices.change(size, way)
            calls = [prices.of(size, way, call) for call in ("contains", "count", "every")]
            cells = ["-" if each is None else f"{each:.0f}" for each in calls]
            first = "-" if change is None else f"{change:.1f}"
            assert f"| {size:,} | {name} | {first} | {' | '.join(cells)} |" in TEXT


def test_the_advice_follows_from_the_prices(run: list_tables.Run) -> None:
    prices = Prices(run)
    reading = [round(prices.changes_for(size, "every")) for size in (200_000, 10_000)]
    assert (
        "one reading saves as much as {} changes cost more; at 10,000 ids, {} changes".format(
            *reading
        )
        in FLAT_TEXT
    )
    segments = {each.size: each.segments for each in run.foldings}
    # A count also reads the keys of the marks, by sign, and every segment that they change.
    more = {size: segments[size] + 2 for size in segments}
    for size, words in ((200_000, "{} to {} changes cost more"), (10_000, "{} to {} changes.")):
        least, most = (
            round(prices.changes_for(size, "count", more=each)) for each in (more[size], 0)
        )
        assert words.format(least, most) in FLAT_TEXT
    assert f"it grows to {1 + more[200_000]} reads at 200,000 ids" in FLAT_TEXT
    assert round(prices.bytes(1_000, "one text", "join"), -3) == 54_000
    changes = {(each.way, each.writers): each.changes / each.seconds for each in run.crowds}
    for writers in (8, 50):
        assert changes["rows", writers] > 3 * changes["ours", writers]
    assert prices.bytes(1_000, "ours", "join") < 1_000
    for size in (100, 10_000):
        for call in ("contains", "count", "every"):
            assert (prices.of(size, "one text", call) or 0) <= (prices.of(size, "ours", call) or 0)
        assert (prices.change(size, "one text") or 0) < (prices.change(size, "ours") or 0)
    assert f"{run.ends['one text']:,} ids" in TEXT


@pytest.mark.embedded
def test_a_count_reads_the_keys_of_marks_and_each_segment_that_they_change(
    engine: inprocess.Engine, store: connection.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = records.SetName("rules:demo")
    monkeypatch.setattr(set_compaction, "SEGMENT_BYTES", 600)
    set_compaction.load(name, (f"visitor-{number:04d}" for number in range(1_000)))
    lines = membership.pointer(name).directory.lines
    assert len(lines) > 20

    def body() -> None:
        found = [
            membership.marking(name, each, belongs=belongs)
            for line in lines
            for each, belongs in ((line.first, False), (f"{line.first} again", True))
        ]
        transactions.apply(*(each.writes for each in found))

    transactions.transaction(body)
    with testing.meter(engine) as cost:
        assert membership.count(name) == 1_000
    assert cost.reads == 1 + 2 + len(lines)


def test_the_costs_of_following_are_rows_of_the_cost_table() -> None:
    costs = (programs.ROOT / "docs" / "costs.md").read_text().splitlines()
    rows = TEXT.partition("| call | reads | writes |")[2].partition("\n\n")[0].splitlines()[2:]
    assert len(rows) == 3
    assert set(rows) <= set(costs)


def test_the_limits_on_the_page_are_those_of_the_code() -> None:
    assert f"about one mark in {membership.MARKS} requests it" in TEXT
    assert f"at most {membership.LONGEST} bytes" in TEXT
    assert f"if it exceeds {set_compaction.DIRECTORY_BYTES // 1024} KiB" in TEXT
    assert set_compaction.SEGMENT_BYTES == 256 * 1024
    assert "segments of about 10,000 ids" in TEXT
    assert "about 10,000 ids" in (set_compaction.__doc__ or "") + inspect.getsource(set_compaction)
    assert "about 1,000,000 ids" in " ".join((membership.__doc__ or "").split())


def test_the_list_of_functions_names_public_functions_with_their_arguments() -> None:
    rows = re.findall(r"^\| `(\w+)\.(\w+)\(([^)]*)\)` \|", TEXT, re.MULTILINE)
    assert len(rows) == 11
    modules = {
        "membership": membership,
        "many_marks": many_marks,
        "set_compaction": set_compaction,
    }
    for module, function, arguments in rows:
        taken = inspect.signature(getattr(modules[module], function)).parameters
        named = arguments.split(", ")
        needed = {key for key, each in taken.items() if each.default is each.empty}
        assert needed <= set(named) <= set(taken), function
