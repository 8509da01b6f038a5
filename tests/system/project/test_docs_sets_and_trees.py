"""The page docs/ideas/sets-and-trees.md is correct: its tables and pictures are computed again."""

import collections
import inspect
import itertools
import json
import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import flask
import pytest
import yaml

from comments.domain import categories, records
from comments.domain.counters import audiences, counting
from comments.events import dispatcher
from comments.store import connection
from comments.store.wire import queries
from comments.tree.counters import statistics
from comments.upkeep import wiring
from datastore_emulator import inprocess, protobufs, testing
from tests.support import programs, raw_client
from tests.support.histories import counter_oracle
from tests.support.threads import sample_threads

IDEAS = programs.ROOT / "docs" / "ideas"
PAGE = (IDEAS / "sets-and-trees.md").read_text()
NOW = sample_threads.START + timedelta(days=1)
SVG = "{http://www.w3.org/2000/svg}"
SAID = re.findall(r"^\| (\d) \| (\w+) \| `([\w/]+)` \|$", PAGE, re.MULTILINE)
ENTRIES = collections.Counter(
    (each, author) for _, author, category in SAID for each in categories.lineage(category)
)
INVERSE = [(category, author, n) for (category, author), n in sorted(ENTRIES.items())]
DIRECT = sorted((author, category, n) for category, author, n in INVERSE)
TOPMOST = ("news", "sport")
# The sources of the page's scan with their bits, and its audiences as tests of a mask.
BITS = {"news": 4, "tennis": 2, "football": 1}
AUDIENCES: dict[str, Callable[[int], bool]] = {
    "football or tennis": lambda mask: bool(mask & 3),
    "football and news": lambda mask: mask & 5 == 5,
    "sport, not news": lambda mask: bool(mask & 3) and not mask & 4,
}


def _masks() -> dict[str, int]:
    found: dict[str, int] = {}
    for _, author, category in SAID:
        found[author] = found.get(author, 0) | BITS[category.rpartition("/")[2]]
    return dict(sorted(found.items()))


def _texts(name: str) -> list[str]:
    drawn = ET.parse(IDEAS / name).getroot()  # noqa: S314 - our own XML
    return ["".join(text.itertext()) for text in drawn.iter(f"{SVG}text")]


def test_the_example_on_the_page_is_the_table_of_comments() -> None:
    assert [number for number, *_ in SAID] == list("1234567")
    example = PAGE.partition(">>> said = [")[2].partition("\n>>> ")[0]
    assert re.findall(r'\("(\w+)", "([\w/]+)"\)', example) == [tuple(said) for _, *said in SAID]


def test_the_table_of_the_indexes_has_the_entries_in_both_orders() -> None:
    rows = re.findall(
        r"^\| `(\S+)` (\w+) \| (\d) \| \| (\w+) `(\S+)` \| (\d) \|$", PAGE, re.MULTILINE
    )
    assert [(category, author, int(n)) for category, author, n, *_ in rows] == INVERSE
    assert [(author, category, int(n)) for *_, author, category, n in rows] == DIRECT
    # The order of the entries is also that of the stored keys.
    assert sorted(INVERSE, key=lambda row: row[0].replace("/", "\x1f")) == INVERSE


def test_the_picture_of_the_indexes_shows_the_table_and_shades_one_range_of_each() -> None:
    shown = _texts("sets-and-trees.svg")[4:-2]
    expected = [str(cell) for row in (*SAID, *INVERSE, *DIRECT) for cell in row]
    assert shown == expected
    drawn = ET.parse(IDEAS / "sets-and-trees.svg").getroot()  # noqa: S314 - our own XML
    shaded = [box for box in drawn.iter(f"{SVG}rect") if box.get("class") == "r"]
    inside = [
        [
            "".join(text.itertext())
            for text in drawn.iter(f"{SVG}text")
            if 0 < _at(text, "x") - _at(box, "x") < _at(box, "width")
            and 0 < _at(text, "y") - _at(box, "y") < _at(box, "height")
        ]
        for box in shaded
    ]
    assert inside == [
        [str(cell) for row in INVERSE if row[0] == "sport" for cell in row],
        [str(cell) for row in DIRECT if row[0] == "Ann" for cell in row],
    ]


def _at(element: ET.Element, name: str) -> int:
    return int(element.get(name, "0"))


def test_the_table_of_the_scan_has_the_masks_and_audiences_of_the_authors() -> None:
    table = PAGE.partition("| author | news (4) |")[2].partition("\n\n")[0].splitlines()[2:]
    for line, (author, mask) in zip(table, _masks().items(), strict=True):
        sources = [bool(mask & bit) for bit in BITS.values()]
        members = [has(mask) for has in AUDIENCES.values()]
        cells = [author, *map(_word, sources), str(mask), *map(_word, members)]
        assert line == f"| {' | '.join(cells)} |"


def _word(is_member: bool) -> str:
    return "yes" if is_member else "-"


def test_the_picture_of_the_scan_shows_the_sources_masks_and_numbers() -> None:
    masks = _masks()
    rows = []
    for author, mask in masks.items():
        rows += [author] * mask.bit_count()
        rows += [f"{mask:03b} = {mask}", *[author for has in AUDIENCES.values() if has(mask)]]
    numbers = [str(sum(map(has, masks.values()))) for has in AUDIENCES.values()]
    heads = [f"{name} ({bit})" for name, bit in BITS.items()]
    shown = _texts("one-scan.svg")
    assert shown[4:-1] == [*heads, *AUDIENCES, *rows, "number", *numbers]


class PlainRows:
    """Comments with their author and all their categories; a question reads the authors."""

    name = "plain rows"
    indexes = ({"kind": "Said", "properties": [{"name": "category"}, {"name": "author"}]},)

    def __init__(self, client: raw_client.Client) -> None:
        self.client = client

    def fill(self, category: str, comments: int) -> None:
        """Store comments, each by a different author."""
        self.client.put(self._said(f"{n}", f"{n}", [category]) for n in range(comments))

    def post(self, name: str, author: str, category: str) -> None:
        self.client.put([self._said(name, author, list(categories.lineage(category)))])

    def authors(self, category: str) -> int:
        query = queries.Query(
            "Said", (("category", "=", category),), ("author",), projection=("author",)
        )
        found = (entity.properties["author"].string_value for entity in self.client.run(query))
        return sum(1 for _ in itertools.groupby(found))

    def _said(self, name: str, author: str, found: list[str]) -> protobufs.Entity:
        entity = self.client.entity("Said", name)
        entity.properties["author"].string_value = author
        for category in found:
            entity.properties["category"].array_value.values.add(string_value=category)
        return entity

    def _number(self, kind: str, name: str, transaction: bytes) -> protobufs.Entity:
        found = self.client.get(kind, [name], transaction)
        return found.get(name) or self.client.entity(kind, name)


class Index(PlainRows):
    """An entry for each category and author; a question counts the entries."""

    name = "index"

    def fill(self, category: str, comments: int) -> None:
        self.client.put(self._entry(category, f"{n}", b"") for n in range(comments))

    def authors(self, category: str) -> int:
        return self.client.count(queries.Query("Entry", (("category", "=", category),)))

    def post(self, name: str, author: str, category: str) -> None:
        found = list(categories.lineage(category))

        def body(transaction: bytes) -> Iterator[protobufs.Entity]:
            yield self._said(name, author, found)
            for each in found:
                yield from self._rows(each, author, transaction)

        self.client.transact(body)

    def _rows(self, category: str, author: str, transaction: bytes) -> Iterator[protobufs.Entity]:
        yield self._entry(category, author, transaction)

    def _entry(self, category: str, author: str, transaction: bytes) -> protobufs.Entity:
        entity = self._number("Entry", f"{category}/{author}", transaction)
        entity.properties["category"].string_value = category
        entity.properties["comments"].integer_value += 1
        return entity


class IndexAndNumber(Index):
    """The same, with the number of authors of each category."""

    name = "index and number"

    def fill(self, category: str, comments: int) -> None:
        super().fill(category, comments)
        entity = self.client.entity("Number", category)
        entity.properties["authors"].integer_value = comments
        self.client.put([entity])

    def authors(self, category: str) -> int:
        numbers = self._number("Number", category, b"")
        return int(numbers.properties["authors"].integer_value)

    def _rows(self, category: str, author: str, transaction: bytes) -> Iterator[protobufs.Entity]:
        entry = self._entry(category, author, transaction)
        numbers = self._number("Number", category, transaction)
        numbers.properties["comments"].integer_value += 1
        is_first = entry.properties["comments"].integer_value == 1
        numbers.properties["authors"].integer_value += is_first
        yield from (entry, numbers)


WAYS = (PlainRows, Index, IndexAndNumber)
WRITE = 3.0  # The price of a write in Google's price list, in reads.
# The rows that a comment reads and writes in each of its categories.
ROWS = {"plain rows": 0, "index": 1, "index and number": 2, "Flatthread": 4}


def _question(way: str, comments: int, authors: int) -> int:
    """Return the reads for the number of authors of a category."""
    reads = {"plain rows": math.ceil(comments / 300), "index": math.ceil(authors / 1_000)}
    return reads.get(way, 1)


def _price(way: str, comments: int, questions: float) -> float:
    """Return the price of a comment in `sport/football` and of questions about `sport`."""
    comment = 2 * ROWS[way] * (1 + WRITE)
    return comment + questions * _question(way, comments, comments // 5)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_the_prices_of_the_ways_are_those_of_the_meter(
    way: type[PlainRows], tmp_path: Path
) -> None:
    comments = 1_001
    file = tmp_path / "index.yaml"
    file.write_text(yaml.safe_dump({"indexes": list(way.indexes)}))
    with inprocess.open_engine(tmp_path / "data.db", indexes=file, durability="fast") as engine:
        kept = way(raw_client.Client(inprocess.Channel(engine)))
        kept.fill("sport", comments)
        with testing.meter(engine) as asked:
            assert kept.authors("sport") == comments
        assert asked.reads == _question(way.name, comments, comments)
        with testing.meter(engine) as posted:
            kept.post("first", "Ann", "sport/football")
        # The comment itself is one write in each way.
        rows = 2 * ROWS[way.name]
        assert (posted.reads, posted.writes - 1) == (rows, rows)
        kept.post("second", "Ann", "sport/tennis")
        assert [kept.authors(each) for each in ("sport", "sport/football")] == [comments + 1, 1]


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_comment_writes_four_rows_in_each_of_its_categories(
    store: connection.Store, site: records.Site, engine: inprocess.Engine, depth: int
) -> None:
    category = "/".join(("sport", "football", "women")[:depth])
    site = sample_threads.filing(site, category)

    def delivered(names: Sequence[str], thread: str) -> tuple[int, int]:
        sample_threads.post(
            site, thread, author=sample_threads.author("ann"), thread=thread, categories=names
        )
        events = counter_oracle.events()
        with testing.meter(engine) as cost:
            dispatcher.deliver(events, now=NOW, handlers=wiring.HANDLERS)
        return cost.reads, cost.writes

    delivered((), "first")  # The first delivery of a process reads the site's settings.
    plain, counted = delivered((), "plain"), delivered((category,), "filed")
    rows = depth * ROWS["Flatthread"]
    assert (counted[0] - plain[0], counted[1] - plain[1]) == (rows, rows)
    with testing.meter(engine) as cost:
        [line] = statistics.by_category("demo", under="sport", limit=1).lines
    assert (line.category, line.commenters, cost.reads) == ("sport", 1, 1)


def test_the_commands_on_the_page_answer_with_the_numbers_on_the_page(
    app: flask.Flask, store: connection.Store, site: records.Site
) -> None:
    site = sample_threads.filing(site, *{category for *_, category in SAID})
    for number, author, category in SAID:
        sample_threads.post(
            site,
            number,
            author=sample_threads.author(author),
            thread=category,
            categories=[category],
        )
    dispatcher.deliver(counter_oracle.events(), now=NOW, handlers=wiring.HANDLERS)
    commands = re.findall(r"`flatthread (stats [^`]+)`", PAGE)
    subtree, who, where, _days, audience = (_ran(app, command) for command in commands)
    counted = [(line["category"], line["comments"], line["commenters"]) for line in subtree]
    example = PAGE.partition(">>> for line in numbers():")[2].partition("```")[0]
    shown = re.findall(r"\('(\S+)', (\d), (\d)\)", example)
    assert [tuple(map(str, each)) for each in counted] == shown[1:]
    listed = [(line["author"].removeprefix("g:"), line["comments"]) for line in who]
    assert listed == [(author, n) for category, author, n in INVERSE if category == "sport"]
    places = {(line["category"], line["comments"]) for line in where}
    assert places == {(category, n) for author, category, n in DIRECT if author == "Ann"}
    assert [line["commenters"] for line in audience] == [
        sum(map(AUDIENCES["sport, not news"], _masks().values()))
    ]
    [cost] = _ran(app, f"{commands[-1]} --cost")
    found = [len({author for each, author, _ in INVERSE if each == name}) for name in TOPMOST]
    scanned = sum(math.ceil(number / 300) for number in found)
    assert cost == {"rows": sum(found), "reads": len(found) + scanned}


def _ran(app: flask.Flask, command: str) -> list[dict[str, Any]]:
    words = command.replace("SITE", "demo").replace("ID", "g:Ann").split()
    done = app.test_cli_runner().invoke(args=[*words, "--format", "json"])
    assert done.exit_code == 0, done.output
    found: list[dict[str, Any]] = json.loads(done.output)
    return found


def test_the_table_of_prices_is_computed_from_the_prices() -> None:
    head = "| comments in sport | questions for each comment | " + " | ".join(ROWS) + " |"
    lines = [head, "|---:|---:|---:|---:|---:|---:|"]
    for comments, questions in itertools.product((1_000, 10_000, 100_000), (0.1, 1, 10)):
        prices = [_price(way, comments, questions) for way in ROWS]
        cells = [f"**{each:,.0f}**" if each == min(prices) else f"{each:,.0f}" for each in prices]
        lines.append(f"| {comments:,} | {questions:g} | {' | '.join(cells)} |")
    assert "\n".join(["", *lines, ""]) in PAGE, "\n".join(lines)


def test_the_advice_follows_from_the_prices() -> None:
    def cheapest(comments: int, questions: float) -> str:
        return min(ROWS, key=lambda way: _price(way, comments, questions))

    assert {cheapest(n, 0.1) for n in (1_000, 10_000)} == {"plain rows"}
    assert {cheapest(n, 0.01) for n in (1_000, 100_000)} == {"plain rows"}
    assert cheapest(1_000, 10) == "index"
    assert {cheapest(n, q) for n in (10_000, 100_000) for q in (10, 100)} == {"index and number"}
    assert _question("plain rows", 100_000, 20_000) == 334


def test_the_limits_on_the_page_are_those_of_the_code() -> None:
    change = counting.CountedChange(
        None,
        counting.CountedState(
            site="blog",
            thread="blog/1",
            author="Ann",
            status="approved",
            listed=True,
            categories=tuple(f"{n}/b/c" for n in range(categories.MOST)),
            day="2026-01-31",
        ),
    )
    found = {scope for scope in counting.rows([change]) if scope.kind != counting.LISTINGS}
    assert (categories.MOST, categories.DEEPEST, len(found)) == (5, 3, 65)
    text = " ".join(PAGE.split())
    assert "a page in five categories with three parts can change 65 rows" in text
    assert round(104 / math.sqrt(4_096), 1) == 1.6  # The standard error of a HyperLogLog, in %


@pytest.mark.parametrize("module", [audiences, categories, counting])
def test_the_list_of_functions_names_public_functions_with_their_arguments(module: object) -> None:
    name = getattr(module, "__name__", "")
    rows = re.findall(rf"^\| `{name}\.(\w+)\(([^)]*)\)` \|", PAGE, re.MULTILINE)
    assert rows
    for function, arguments in rows:
        taken = inspect.signature(getattr(module, function)).parameters
        assert list(taken) == arguments.split(", "), function
