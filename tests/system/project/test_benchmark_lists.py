"""All lists that `list_comparison` compares contain the same ids and are measured correctly."""

import random
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchmarks import raw_client
from benchmarks.layouts import layout_tables
from benchmarks.lists import list_comparison, list_rivals, list_tables, many_changes
from comments.store.large_sets import set_compaction
from tests.support import programs

pytestmark = pytest.mark.embedded


@pytest.fixture(params=list_comparison.WAYS, ids=lambda kind: kind.name)
def way(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """A list implementation with sixty ids in it."""
    with (
        list_comparison.opened(
            request.param, tmp_path / "list.db", list_comparison.members(60)
        ) as each,
        each.entered() as entered,
    ):
        yield entered


def test_every_implementation_holds_the_same_set_after_the_same_changes(way: Any) -> None:
    ids, seed = list_comparison.members(90), random.Random(1)
    expected = set(ids[:60])
    for turn in range(200):
        follower = seed.choice(ids[30:])
        # At first, most ids leave, so that lists are rewritten; later, ids join again.
        follows = seed.random() < (0.2 if turn < 100 else 0.8)
        way.change(follower, follows=follows)
        (expected.add if follows else expected.discard)(follower)
        if turn % 40 == 0:
            assert sorted(way.every()) == sorted(expected)
            assert way.count() == len(expected)
            assert {each for each in ids[::9] if way.contains(each)} == expected & {*ids[::9]}
    if isinstance(way, list_comparison.Ours):
        assert set_compaction.compact(list_comparison.LIST)
    assert sorted(way.every()) == sorted(expected)


def test_an_id_that_is_a_prefix_of_another_is_distinct(way: Any) -> None:
    way.change("ab", follows=True)
    way.change("a", follows=True)
    way.change("b", follows=False)
    assert way.contains("ab")
    way.change("ab", follows=False)
    assert (way.contains("a"), way.contains("ab")) == (True, False)
    assert way.count() == 61


@pytest.mark.parametrize("kind", [list_rivals.Tombstones, list_rivals.TwoLists, list_rivals.Log])
def test_members_who_left_are_eventually_removed(tmp_path: Path, kind: type[Any]) -> None:
    ids = list_comparison.members(100)
    with list_comparison.opened(kind, tmp_path / "list.db", ids) as each:
        for turn in range(300):
            each.way.change(ids[turn % 90], follows=turn % 180 >= 90)
        names = [list_rivals.LIST, *list_rivals.TwoLists.texts]
        found = each.way.client.get("Text", names).values()  # type: ignore[attr-defined]
        lengths = [len(entity.properties["ids"].string_value) for entity in found]
    assert sum(lengths) < max(2.1 * 100 * 28, 4096)


def test_a_list_too_large_for_an_entity_is_refused(tmp_path: Path) -> None:
    long = [f"{number:0500d}" for number in range(3_000)]
    with (
        pytest.raises(raw_client.TooLarge),
        list_comparison.opened(list_rivals.Text, tmp_path / "list.db", long),
    ):
        pass


def test_two_writers_of_one_text_conflict_and_retry(tmp_path: Path) -> None:
    with list_comparison.opened(
        list_rivals.Text, tmp_path / "list.db", list_comparison.members(10)
    ) as each:
        found = list_comparison.Crowd(each, 4, 0.3).run()
        assert len(each.way.every()) in range(10, 15)
    assert found.changes > 0
    assert found.reads >= 1


def test_a_run_writes_its_tables_plots_and_figures_between_the_marks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(list_comparison, "ends", lambda _: {"one text": 38_832})
    document = tmp_path / "lists.md"
    document.write_text(
        f"before\n{layout_tables.BEGIN}\nan earlier run\n{layout_tables.END}\nafter\n"
    )
    options = f"--sizes 20,300 --rounds 1 --writers 1,3 --seconds 0.1 --write --document {document}"
    list_comparison.main(options.split())
    text = document.read_text()
    assert text.startswith(f"before\n{layout_tables.BEGIN}\n")
    assert text.endswith(f"{layout_tables.END}\nafter\n")
    assert "an earlier run" not in text
    assert capsys.readouterr().out.strip() in text
    run = msgspec.json.decode(
        (tmp_path / "lists" / "figures.json").read_bytes(), type=list_tables.Run
    )
    bills = {
        (f.call, f.layout): (f.reads, f.writes, f.deletes, f.calls)
        for f in run.figures
        if f.size == 300
    }
    assert bills["join", "rows"] == (0, 1, 0, 1)
    assert bills["leave", "rows"] == (0, 0, 1, 1)
    assert bills["join", "one text"] == (1, 1, 0, 3)
    assert bills["join", "two lists"] == (2, 1, 0, 3)
    assert bills["join", "ours"] == (2, 1, 0, 3)
    assert bills["leave", "ours"] == (2, 1, 0, 3)
    assert bills["contains", "ours"] == (3, 0, 0, 4)
    assert bills["every", "one text"] == (1, 0, 0, 1)
    assert [each.segments for each in run.foldings] == [1, 1]
    for name in list_tables.PLOTTED:
        drawn = ET.parse(tmp_path / "lists" / name).getroot()  # noqa: S314 - our own XML
        words = {each.text for each in drawn.iter("{http://www.w3.org/2000/svg}text")}
        assert {kind.name for kind in list_comparison.WAYS} <= words
        assert words & {"ids", "writers"}


def test_the_document_shows_a_run_of_every_implementation_and_plot() -> None:
    folder = programs.ROOT / "docs"
    text = (folder / "lists.md").read_text()
    run = msgspec.json.decode(
        (folder / "lists" / "figures.json").read_bytes(), type=list_tables.Run
    )
    assert list_tables.markdown(run) in text
    assert {figures.layout for figures in run.figures} == {
        kind.name for kind in list_comparison.WAYS
    }
    assert {crowd.writers for crowd in run.crowds} >= {8, 50}
    assert max(run.stored) == 200_000
    for name, drawn in list_tables.drawn(run):
        assert f"(lists/{name})" in text
        assert (folder / "lists" / name).read_text() == drawn


def test_a_changed_set_and_an_inbox_contain_what_they_should(tmp_path: Path) -> None:
    """The benchmark of a million marks, with very few of them."""
    many, full = many_changes.run(tmp_path, ids=400, marks=1_200, replies=5)
    assert (many.wrong, full.wrong) == (0, 0)
    assert (full.reads, full.writes) == (2 + 5, 5)
