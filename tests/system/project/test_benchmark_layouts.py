"""All layouts that `benchmarks/layouts/comparison.py` compares store and return the same rows."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchmarks import plots, raw_client
from benchmarks.layouts import (
    bucketed,
    comparison,
    first_page_plot,
    flatthread,
    layout_tables,
    nested,
    rivals,
)
from benchmarks.threads import conversations, loading, shapes
from comments.jobs.integrity import repair
from comments.reading.compaction import compactor
from comments.store import connection, reads
from comments.store.models import comment_rows
from comments.tree import ordered_query
from emulator import inprocess, testing
from tests.support import programs

pytestmark = [pytest.mark.slow, pytest.mark.embedded]

SIZE = 270  # exceeds a directory's tail, so every layout has several buckets
WIDE: shapes.Shape = [None, *[0] * (SIZE - 2), None]
SHAPES: dict[str, shapes.Shape] = {
    "grown": shapes.grown(SIZE),
    "a deep chain": [None, *range(40)],
    "one subtree over many buckets": WIDE,
}
Open = Callable[[Sequence[conversations.Said]], comparison.Opened]


def ids(fragments: list[bytes]) -> list[str]:
    return [msgspec.json.decode(each)["id"] for each in fragments]


def htmls(fragments: list[bytes]) -> dict[str, str]:
    decoded = map(msgspec.json.decode, fragments)
    return {each["id"]: each["html"] for each in decoded}


@pytest.fixture(params=comparison.KINDS, ids=lambda kind: kind.name)
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """Return a function that opens a layout with a given thread."""
    with comparison.Stores(tmp_path) as stores:
        yield lambda thread: stores.open(request.param, thread)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_every_layout_returns_the_order_of_a_walk_over_the_links(
    opened: Open, shape: shapes.Shape
) -> None:
    thread = conversations.thread(shape)
    order = conversations.walk(thread)
    with opened(thread).entered() as layout:
        assert ids(layout.whole()) == order
        assert htmls(layout.whole()) == {said.id: said.html for said in thread}
        assert ids(layout.page(50)) == order[:50]
        assert ids(layout.page(150)) == order[:150]
        for said in thread[:: len(thread) // 4]:
            assert ids(layout.subtree(said.id)) == conversations.walk(thread, said.id)


def test_every_layout_returns_the_same_after_replies_and_edits(opened: Open) -> None:
    thread = conversations.thread(WIDE)
    # Enough replies below one comment to split its bucket, and a reply at the end of each bucket.
    targets = [thread[1].id] * 40 + [said.id for said in thread[2::25]]
    with opened(thread).entered() as layout:
        for place, target in enumerate(targets, len(thread)):
            thread.append(conversations.reply(place, target))
            layout.post(thread[-1])
        for said in thread[::60]:
            layout.edit(said.id, f"<p>new {said.id}</p>")
        assert ids(layout.whole()) == conversations.walk(thread)
        assert ids(layout.page(50)) == conversations.walk(thread)[:50]
        assert ids(layout.subtree(thread[1].id)) == conversations.walk(thread, thread[1].id)
        expected = {said.id: said.html for said in thread}
        expected |= {said.id: f"<p>new {said.id}</p>" for said in thread[::60]}
        assert htmls(layout.whole()) == expected


def test_a_page_of_buckets_is_found_by_walking_their_counts(tmp_path: Path) -> None:
    thread = conversations.thread(shapes.grown(SIZE))
    order = conversations.walk(thread)
    with comparison.Stores(tmp_path) as stores:
        opened = stores.open(bucketed.Buckets, thread)
        with opened.entered() as layout:
            for skip in (0, 50, 99, 100, 101, 240, SIZE):
                assert ids(layout.page(50, skip)) == order[skip : skip + 50]
            with testing.meter(opened.engine) as cost:
                layout.page(50, 80)
        assert cost.reads == 3  # the head and two buckets, but not the third bucket


def test_counts_of_buckets_include_the_replies(tmp_path: Path) -> None:
    thread = conversations.thread(shapes.grown(SIZE))
    with (
        comparison.Stores(tmp_path) as stores,
        stores.open(bucketed.Buckets, thread).entered() as layout,
    ):
        for place in range(SIZE, SIZE + 20):
            thread.append(conversations.reply(place, thread[place % 3].id))
            layout.post(thread[-1])
        order = conversations.walk(thread)
        for skip in range(0, len(thread), 10):
            assert ids(layout.page(10, skip)) == order[skip : skip + 10]


def test_intervals_of_nested_sets_stay_without_gaps_and_each_reply_moves_what_is_behind_it(
    tmp_path: Path,
) -> None:
    thread = conversations.thread(shapes.grown(SIZE))
    with comparison.Stores(tmp_path) as stores:
        opened = stores.open(nested.Nested, thread)
        with opened.entered() as layout:
            for place in range(SIZE, SIZE + 12):
                order = conversations.walk(thread)
                target = order[place * 7 % SIZE]
                below = conversations.sizes(thread)[target]
                end = order.index(target) + below
                above = comments_above(thread, target)
                thread.append(conversations.reply(place, target))
                with testing.meter(opened.engine) as cost:
                    layout.post(thread[-1])
                # The reply, the parent and the comments above it, and all comments behind it.
                assert cost.writes == 1 + 1 + above + len(order) - 1 - end
            order = conversations.walk(thread)
            for skip in (0, 50, 99, 240, len(order)):
                with testing.meter(opened.engine) as cost:
                    assert ids(layout.page(50, skip)) == order[skip : skip + 50]
                assert cost.reads <= 50  # No row before the page is read.


def comments_above(thread: Sequence[conversations.Said], comment_id: str) -> int:
    """Return the number of comments above a comment."""
    parents = {said.id: said.parent for said in thread}
    parent, count = parents[comment_id], 0
    while parent is not None:
        parent, count = parents[parent], count + 1
    return count


def test_a_reply_that_moves_too_many_rows_is_refused_and_the_table_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A reply to the comment in the middle moves half of the rows: 12 MB, more than a commit holds.
    thread = [conversations.said(str(place), None, place, "word " * 4_000) for place in range(600)]
    kinds = (rivals.Paths, nested.Nested, flatthread.Materialized)
    monkeypatch.setattr(comparison, "KINDS", kinds)
    with comparison.Stores(tmp_path) as stores:
        bench = comparison.Bench(stores, thread, rounds=1)
        figures = list(bench.run())
        about = bench.about()
    assert about.refused == (("post", "nested"),)
    measured = {(each.call, each.layout) for each in figures}
    assert ("post", "nested") not in measured
    assert {("edit", "nested"), ("post", "path")} <= measured
    run = layout_tables.Run("a shape", 1, {}, 600, [about], figures)
    table = layout_tables.markdown(run, comparison.TITLES)
    assert table.count("| 600 | nested | too large for one commit |") == 1


@pytest.mark.parametrize("kind", [flatthread.Floor, flatthread.Materialized])
def test_a_loaded_thread_equals_an_imported_and_compacted_one(
    engine: inprocess.Engine, kind: type[Any]
) -> None:
    thread, is_folded = conversations.thread(shapes.grown(90)), kind is flatthread.Materialized
    with connection.Store(inprocess.Channel(engine), project=loading.PROJECT).context():
        loading.store_imported(thread)
        if is_folded:
            folded = compactor.compact(loading.SCHEME, loading.NAME)
            assert folded is not None
            compactor.clear(folded)
        imported = stored()
    with inprocess.open_engine(None, indexes=comparison.ROOT / "index.yaml") as other:
        loading.fill(other, thread, is_folded=is_folded)
        with connection.Store(inprocess.Channel(other), project=loading.PROJECT).context():
            assert stored() == imported
            assert repair.find_problems(loading.SCHEME, loading.NAME) == []
            assert len(ordered_query.thread(loading.NAME)) == len(thread)


def stored() -> dict[str, Any]:
    """Return every comment's properties by id."""
    where = (("thread", "=", comment_rows.thread_key_name(loading.NAME)),)
    found = reads.fetch(reads.Query("Comment", where=where))
    return {each.key.path[-1].name: dict(each.properties) for each in found}


def test_a_thread_too_large_for_an_entity_is_refused_and_the_limit_is_found(tmp_path: Path) -> None:
    long = conversations.said("long", None, 0, "a word " * 10_000)
    thread = [msgspec.structs.replace(long, id=str(place)) for place in range(12)]
    for folder in "abc":
        (tmp_path / folder).mkdir()
    with comparison.Stores(tmp_path / "a") as stores, pytest.raises(raw_client.TooLarge):
        stores.open(rivals.Plain, thread)
    # Each comment has 140,000 bytes of body and HTML, so seven fit into 1 MiB and eight do not.
    assert comparison.most_embedded(tmp_path / "b", thread, is_packed=False) == 7
    assert comparison.most_embedded(tmp_path / "c", thread, is_packed=True) == 12


def test_a_run_writes_its_tables_plots_and_figures_between_the_marks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = tmp_path / "layouts.md"
    document.write_text(
        f"before\n{layout_tables.BEGIN}\nan earlier run\n{layout_tables.END}\nafter\n"
    )
    shape = tmp_path / "shape.csv"
    shape.write_text("".join(f"c{n};c{n // 3 - 1};{n}\n" for n in range(30)))
    options = f"--shape {shape} --sizes 20,270 --rounds 1 --write --document {document}"
    comparison.main(options.split())
    text = document.read_text()
    assert text.startswith(f"before\n{layout_tables.BEGIN}\n")
    assert text.endswith(f"{layout_tables.END}\nafter\n")
    assert "an earlier run" not in text
    assert capsys.readouterr().out.strip() in text
    run = msgspec.json.decode(
        (tmp_path / "layouts" / "figures.json").read_bytes(), type=layout_tables.Run
    )
    bills = {(f.call, f.layout): (f.reads, f.writes, f.calls) for f in run.figures if f.size == 270}
    assert bills["page", "path"] == (50, 0, 1)
    assert bills["page", "nested"] == (50, 0, 1)
    assert bills["page", "embedded"] == (1, 0, 1)
    assert bills["page", "materialized"] == (1, 0, 2)
    assert bills["page", "materialized, warm"] == (0, 0, 1)
    assert bills["page", "buckets"] == (2, 0, 2)
    assert bills["whole", "path"] == (270, 0, 1)
    assert bills["whole", "buckets"] == (4, 0, 2)
    assert bills["whole", "adjacency"] == (270, 0, 271)
    assert bills["post", "path"] == (1, 1, 3)
    assert bills["post", "buckets"] == (2, 2, 4)
    # These numbers include a counter shard, the author's row in the thread, and the event.
    assert bills["post", "materialized"] == (4, 5, 2)
    assert bills["edit", "embedded"] == (1, 1, 3)
    for name in layout_tables.PLOTTED:
        drawn = ET.parse(tmp_path / "layouts" / name).getroot()  # noqa: S314 - our own XML
        assert drawn.tag.endswith("svg")
        words = {each.text for each in drawn.iter("{http://www.w3.org/2000/svg}text")}
        assert {kind.name for kind in comparison.KINDS} <= words


def test_a_plot_has_logarithmic_axes_and_zero_at_the_bottom() -> None:
    lines = {"one": [(1, 1), (10, 10), (100, 100)], "none": [(1, 0), (100, 0)]}
    drawn = plots.draw("A title & more", "note", [plots.Panel("panel", lines)])
    assert "A title &amp; more" in drawn
    paths = re.findall(r'<path d="(M[^"]*)" fill="none"', drawn)
    # The chart measures 300 by 230. The values are at thirds of the height above the base line at
    # 0.
    assert paths[0] == "M0.0 210.8L150.0 105.4L300.0 0.0"
    assert paths[1] == "M0.0 230.0L300.0 230.0"


def test_the_document_shows_a_run_of_every_layout_and_plot() -> None:
    folder = programs.ROOT / "docs"
    text = (folder / "layouts.md").read_text()
    run = msgspec.json.decode(
        (folder / "layouts" / "figures.json").read_bytes(), type=layout_tables.Run
    )
    assert layout_tables.markdown(run, comparison.TITLES) in text
    assert {figures.layout for figures in run.figures} == {kind.name for kind in comparison.KINDS}
    for name, drawn in layout_tables.drawn(run, comparison.TITLES):
        assert f"(layouts/{name})" in text
        assert (folder / "layouts" / name).read_text() == drawn
    readme = (programs.ROOT / "README.md").read_text()
    assert "(docs/layouts/first-page.svg)" in readme
    committed = (folder / "layouts" / "first-page.svg").read_text()
    assert committed == first_page_plot.draw(run.figures)
    ET.fromstring(committed)  # noqa: S314 - our own XML
