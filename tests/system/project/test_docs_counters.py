"""The numbers of docs/ideas/counters.md are computed or measured again."""

import doctest
import inspect
import itertools
import math
import re
import shlex
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from google.cloud import datastore

from comments.domain import records
from comments.domain.counters import counting, declared_counters
from comments.events import dispatcher
from comments.posting import cast_vote
from comments.store import connection, reads
from comments.store.models import declared_rows
from comments.tree.counters import sharding, totals
from comments.tree.counters.declared import declarations, declared_backfill, declared_reports
from datastore_emulator import inprocess, testing
from tests.support import programs
from tests.support.histories import counter_drift
from tests.support.threads import sample_threads, sample_votes
from tests.system.project import test_docs_ideas

PAGE = test_docs_ideas.IDEAS / "counters.md"
TEXT = PAGE.read_text()
SVG = test_docs_ideas.SVG
Rows = list[list[str]]


def table(first: str) -> Rows:
    """Return the cells of the rows of the table whose head begins with this cell."""
    rows = TEXT.partition(f"\n| {first} |")[2].partition("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in row.strip("| ").split(" | ")] for row in rows]


@pytest.fixture(scope="module")
def names() -> Mapping[str, Any]:
    """The names that the page's examples define."""
    examples = test_docs_ideas.session(PAGE)
    doctest.DocTestRunner(verbose=False).run(examples, out=lambda _: None, clear_globs=False)
    return examples.globs


def test_the_life_of_a_comment_has_the_increments_of_the_formula(names: Mapping[str, Any]) -> None:
    lines = table("change")
    assert len(lines) == 8
    old, total = None, dict[str, int]()
    for change, status, category, score, told in lines:
        new = None if status == "-" else names["Comment"](category, status, int(score))
        found = names["increments"](old, new)
        shown = ", ".join(f"{name} {number:+d}" for name, number in found.items())
        assert told == (shown or "none"), change
        total = counting.sums(total, found)
        old = new
    assert total == {}


def drawn(name: str) -> list[tuple[str, int]]:
    """Return the texts of a picture in order, each with its left edge."""
    root = ET.parse(test_docs_ideas.IDEAS / name).getroot()  # noqa: S314 - our own XML
    return [("".join(each.itertext()), int(each.get("x", ""))) for each in root.iter(f"{SVG}text")]


def test_the_picture_of_the_formula_shows_the_increments_of_the_life(
    names: Mapping[str, Any],
) -> None:
    shown = [(" ".join(text.split()), x) for text, x in drawn("counters.svg")]
    states = [text for text, _ in shown if text.startswith("approved, ")]
    assert len(states) == 4
    comments = [
        names["Comment"](category, status, int(score))
        for status, category, score in re.findall(r"(\w+), (\w+), score (\d)", "\n".join(states))
    ]
    old, new, before_edit, after_edit = comments
    amounts = [text for text, _ in shown if re.fullmatch(r"\w+: \w+ [+-]\d", text)]
    expected = []
    for sign, comment in zip([-1, 1, -1, 1], [old, new, before_edit, after_edit], strict=True):
        found = names["amounts"](comment).items()
        expected.append([f"{name} {sign * number:+d}" for name, number in found])
    result = [f"{name} {number:+d}" for name, number in names["increments"](old, new).items()]
    first, second, third, fourth = expected
    assert amounts == [*first, *second, *result, *third, *fourth]
    assert names["increments"](before_edit, after_edit) == {}


def test_the_picture_of_a_recount_has_the_numbers_of_the_example() -> None:
    columns = {name: [int(text) for text, x in drawn("recount.svg") if text.isdecimal() and x == at]
               for name, at in (("comments", 326), ("stored", 426), ("added", 586))}  # fmt: skip
    comments, counter, missing = 1, 2, -1
    assert "{'news: comments': -1, 'news: score': -2}" in TEXT
    told = [(comments, counter, counter)] * 2
    result, comments, counter = comments, comments + 1, counter + 1
    told += [(comments, counter, counter), (comments, result, counter + missing)]
    assert list(zip(*columns.values(), strict=True)) == told
    assert "{'news: comments': 2, 'news: score': 2}" in TEXT


@pytest.fixture
def plain(tmp_path: Path) -> Iterator[tuple[connection.Store, inprocess.Engine]]:
    """A store with 1,001 comments in plain rows, without counters."""
    indexes = tmp_path / "index.yaml"
    indexes.write_text(
        "indexes: [{kind: Plain, properties: [{name: thread}, {name: author}]}]", encoding="utf-8"
    )
    with inprocess.open_engine(None, indexes=indexes) as engine:
        channel = inprocess.Channel(engine)
        client = testing.datastore_client(channel)
        for first in (0, 500, 1_000):
            rows = []
            for number in range(first, min(first + 500, 1_001)):
                row = datastore.Entity(client.key("Plain", f"c{number}"))
                row.update(thread="page", author=f"a{number}")
                rows.append(row)
            client.put_multi(rows)
        yield connection.Store(channel, project="test"), engine


def test_count_queries_are_billed_as_the_page_says(
    plain: tuple[connection.Store, inprocess.Engine],
) -> None:
    store, engine = plain
    where = (("thread", "=", "page"),)
    told = {question: asked for question, asked, _ in table("question")}
    each = re.compile("1 for each ([0-9,]+) comments")
    per_read = {
        question: int(found[1].replace(",", ""))
        for question, asked in told.items()
        if (found := each.fullmatch(asked))
    }
    with store.context():
        with testing.meter(engine) as cost:
            assert reads.count(reads.Query("Plain", where=where)) == 1_001
        assert cost.reads == math.ceil(1_001 / per_read["comments of one thread"])
        query = reads.Query("Plain", where=where, projection=("author",), order=("author",))
        with testing.meter(engine) as cost:
            assert len(list(reads.walk(query))) == 1_001
        assert cost.reads == math.ceil(1_001 / per_read["distinct commenters of one thread"])
        with testing.meter(engine) as cost:
            for number in range(50):
                reads.count(reads.Query("Plain", where=(("thread", "=", f"other {number}"),)))
        assert cost.reads == int(told["comments of 50 threads"])


def test_counters_are_read_as_the_page_says(
    store: connection.Store, site: records.Site, engine: inprocess.Engine
) -> None:
    for number in range(21):
        sample_threads.post(site, f"{number}")
    counter_drift.deliver()
    told = {question: answered for question, _, answered in table("question")}
    with testing.meter(engine) as cost:
        (numbers,) = totals.of_threads([counter_drift.NAME])
    assert (numbers["approved"], numbers["participants"]) == (21, 21)
    assert told["comments of one thread"] == str(cost.reads)
    assert told["distinct commenters of one thread"] == f"{cost.reads}, together with the comments"
    with testing.meter(engine) as cost:
        assert len(totals.best_authors("demo", 20)) == 20
    assert told["the 20 authors with the highest scores"] == str(cost.reads)
    costs = (programs.ROOT / "docs" / "costs.md").read_text()
    of_50 = told["comments of 50 threads"]
    assert f"| counts of 50 threads | {of_50} / {of_50} |" in costs


COUNTERS = {"Counter", "Participation", "Standing", "Category", "Day", "Month", "Appearance"}


def _rows(paths: Any) -> int:
    return len([path for path in paths if path[-2] in COUNTERS])


def _priced(engine: inprocess.Engine, call: Any) -> tuple[int, int]:
    """Return how many rows of counters a call reads and writes."""
    with testing.meter(engine) as cost:
        call()
    return _rows(cost.keys_read), _rows(cost.keys_written)


def _told(when: str) -> tuple[int, int]:
    found = next(row for row in table("when") if row[0].startswith(when))
    return int(found[2]), int(found[3])


@pytest.mark.parametrize("filed", [(), ("sport",), ("sport/football",)])
def test_the_rows_of_a_comment_are_those_of_the_page(
    store: connection.Store, site: records.Site, engine: inprocess.Engine, filed: tuple[str, ...]
) -> None:
    site = sample_threads.filing(site, *filed)
    who: dict[str, Any] = {"author": sample_threads.author("ann"), "categories": filed}
    sample_threads.post(site, "the first", **who)
    counter_drift.deliver()
    posted = _priced(engine, lambda: sample_threads.post(site, "one more", **who))
    assert posted == _told("in the transaction")
    delivered = _told("in the delivery")
    more = _told("for each category")
    levels = sum(1 + name.count("/") for name in filed)
    assert _priced(engine, counter_drift.deliver) == (
        delivered[0] + levels * more[0],
        delivered[1] + levels * more[1],
    )


def test_many_comments_of_one_author_write_the_rows_of_one(
    store: connection.Store, site: records.Site, engine: inprocess.Engine
) -> None:
    who: dict[str, Any] = {"author": sample_threads.author("ann")}
    for number in range(20):
        sample_threads.post(site, f"{number}", **who)
    assert _priced(engine, counter_drift.deliver) == _told("in the delivery")
    assert f"up to {dispatcher.AT_ONCE} events in one transaction" in TEXT


def _vote(comment: records.Comment, *values: int) -> None:
    """Cast votes of new voters, one change of the comment for each vote."""
    for value in values:
        voter = f"voter {next(_NUMBERS)}"
        sample_votes.vote(comment, voter, value)
        cast_vote.count(comment.id, now=sample_votes.LATER)


_NUMBERS = itertools.count()


def _voted(site: records.Site, up: int, down: int) -> records.Comment:
    site = sample_threads.filing(site, "sport/football")
    made = sample_threads.post(site, f"{up} to {down}", categories=("sport/football",))
    _vote(made, *[1] * up, *[-1] * down)
    return made


def _counted() -> dict[str, int]:
    """Deliver all events, and return the numbers of the counter by category."""
    counter_drift.deliver()
    counter = declarations.counter("demo", "controversial")
    assert counter.is_complete
    found = declared_reports.lines("demo", counter).lines
    assert {line.day for line in found} == {sample_threads.START.date()}
    return {line.category: line.number for line in found}


@pytest.fixture
def disputed(
    store: connection.Store, site: records.Site, names: Mapping[str, Any]
) -> records.Comment:
    """A comment that one vote makes controversial, after the page's counter was declared."""
    for up, down in ((5, 5), (6, 5)):
        _voted(site, up, down)
    found = _voted(site, 5, 4)
    counter_drift.deliver()
    declarations.add("demo", names["declared"], now=sample_votes.LATER)
    declared_backfill.complete("demo")
    return found


def test_the_example_of_a_declared_counter_runs_through_the_product(
    disputed: records.Comment, engine: inprocess.Engine
) -> None:
    assert _counted() == {"sport": 2, "sport/football": 2}
    _vote(disputed, -1)
    with testing.meter(engine) as cost:
        assert _counted() == {"sport": 3, "sport/football": 3}
    written = [path for path in cost.keys_written if path[-2] == "DeclaredCount"]
    assert len(written) == 2
    assert "The fifth vote above changes two rows" in TEXT
    for up in range(6, 10):
        _vote(disputed, 1)
        assert _counted() == dict.fromkeys(["sport", "sport/football"], 3 if up < 8 else 2)


def test_a_recount_restores_the_example_of_a_declared_counter(disputed: records.Comment) -> None:
    before = _counted()
    (row, _) = reads.fetch(reads.Query("DeclaredCount", keys_only=True))
    _, _, name = row.key.path[-1].name.partition("/")
    counter_drift.delete(declared_rows.declared_key("demo", name))
    assert _counted() != before
    assert len(counter_drift.recount_all()) == 1
    assert _counted() == before
    assert counter_drift.recount_all() == []


def test_the_page_declares_the_counter_of_the_documentation(names: Mapping[str, Any]) -> None:
    document = (programs.ROOT / "docs" / "counters.md").read_text()
    command = document.partition("flatthread counter add ")[2].partition("```")[0]
    _, name, *options = shlex.split(command.replace("\\\n", ""))
    given = list(zip(options[::2], options[1::2], strict=True))
    where = [value for option, value in given if option == "--where"]
    by = [value for option, value in given if option == "--by"]
    assert len(where) + len(by) == len(given)
    assert names["declared"] == declared_counters.declare(name, where, by)


def test_the_page_says_from_how_many_readings_counters_pay() -> None:
    each = [_told("in the transaction"), _told("in the delivery")]
    price = sum(read for read, _ in each) + 3 * sum(written for _, written in each)
    assert f"which is the price of {price} reads." in TEXT
    lines = table("number")
    assert len(lines) == 4
    for number, reads_of_query, pays in lines:
        size = re.fullmatch(r"(one|50) threads? of (?:up to )?([\d,]+) comments", number)
        assert size is not None, number
        threads = 1 if size[1] == "one" else int(size[1])
        billed = threads * math.ceil(int(size[2].replace(",", "")) / 1_000)
        assert reads_of_query == f"{billed}"
        from_ = math.ceil(price / (billed - 1)) if billed > 1 else 0
        told = f"{from_} reading{'s' if from_ > 1 else ''}" if from_ else "never"
        assert pays == told


def test_the_shards_are_as_many_as_the_page_says() -> None:
    shards = sharding.Shards(lambda: 0.0)
    name = records.ThreadName("demo", "page")
    turns = [sharding.TransactionShard(shards, name) for _ in range(3)]
    for turn in turns:
        turn.take()
    turns[0].take()  # After a conflict
    assert turns[0].end() == 4 * len(turns)
    assert "four shards for each writer of the process" in TEXT
    assert f"up to {sharding.MOST}. Five\nminutes after" in TEXT
    assert sharding.QUIET == 5 * 60


def test_the_list_of_functions_names_public_functions_with_their_arguments() -> None:
    rows = re.findall(r"^\| `(\w+)\(([^)]*)\)` \|", TEXT, re.MULTILINE)
    assert len(rows) == 5
    for name, arguments in rows:
        taken = inspect.signature(getattr(counting, name)).parameters
        assert list(taken) == arguments.split(", "), name
