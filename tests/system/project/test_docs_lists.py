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

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comments.domain import records
from comments.store import connection, transactions
from comments.store.large_sets import many_marks, membership, set_compaction
from datastore_emulator import inprocess, testing
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
    return run_until("import segments")


@pytest.fixture(scope="module")
def marker_page() -> dict[str, Any]:
    """The functions that the page defines for a store that can prepend."""
    return run_until("import concurrent.futures")


def run_until(text: str) -> dict[str, Any]:
    examples = session(PAGE)
    end = next(n for n, each in enumerate(examples.examples) if text in each.source)
    del examples.examples[end:]
    result = doctest.DocTestRunner(verbose=False).run(examples, clear_globs=False)
    assert result.failed == 0
    return examples.globs


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


class Writers:
    """The writers of one list, and the ids that it must contain."""

    def __init__(self, page: dict[str, Any]) -> None:
        self.page = page
        self.expected = {"ann", "ben", "cleo"}
        self._made = itertools.count()

    def join(self, number: int) -> None:
        self.page["add"](f"+{NAMES[number]}")
        self.expected.add(NAMES[number])

    def leave(self, number: int) -> None:
        self.page["add"](f"-{NAMES[number]}")
        self.expected.discard(NAMES[number])


class Processes(Writers):
    """The writers and compactions of one list."""

    def __init__(self, page: dict[str, Any]) -> None:
        super().__init__(page)
        self.store = page["store"] = page["Store"](BEGINNING)
        self._asleep: list[tuple[int, str]] = []
        self._compactions: dict[int, Iterator[str]] = {}

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


class MarkerProcesses(Writers):
    """The writers of a list whose inactive value has a marker, and its only compaction."""

    def __init__(self, page: dict[str, Any]) -> None:
        super().__init__(page)
        self.store = page["store"] = page["PrependStore"](a="+ann +ben +cleo ", b="^")
        self.appended: set[str] = set()
        self._asleep: list[tuple[str, str]] = []
        self._checking: list[tuple[str, str]] = []
        self._compaction: Iterator[str] = iter(())

    def sleep(self, _number: int) -> None:
        """Let a writer choose a list and then do nothing."""
        self._asleep.append((self.page["active"](), f"writer{next(self._made)}"))

    def wake(self, number: int) -> None:
        """Let a writer append to the list that it chose, and then do nothing again."""
        if self._asleep:
            key, name = self._asleep.pop(number % len(self._asleep))
            self.store.append(key, f"+{name} ")
            self.appended.add(name)
            self._checking.append((key, name))

    def check(self, number: int) -> None:
        """Let a writer look for its mark, as the page's `add` does."""
        if self._checking:
            key, name = self._checking.pop(number % len(self._checking))
            if not (self.page["is_active"](key) and f"+{name}" in self.store[key].split()):
                self.page["add"](f"+{name}")
            self.expected.add(name)

    def compact(self, _number: int) -> None:
        if next(self._compaction, None) is None:
            self._compaction = self.page["compact"]()
            next(self._compaction)

    def crash(self, _number: int) -> None:
        self._compaction = iter(())


@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(
                [
                    "join",
                    "leave",
                    "sleep",
                    "wake",
                    "check",
                    "compact",
                    "compact",
                    "compact",
                    "crash",
                ]
            ),
            st.sampled_from([0, 0, 0, 1]),
        ),
        min_size=10,
        max_size=60,
    )
)
def test_lists_with_a_marker_lose_nothing(
    marker_page: dict[str, Any], steps: list[tuple[str, int]]
) -> None:
    processes = MarkerProcesses(marker_page)
    for step, number in steps:
        getattr(processes, step)(number)
        stored = set(marker_page["read"]())
        # A writer that has not looked yet may find its mark or not.
        assert processes.expected <= stored <= processes.expected | processes.appended


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
            membership.mark_within(name, each, belongs=belongs)
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
