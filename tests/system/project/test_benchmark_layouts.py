"""All measured layouts return the same page, and the fast loader stores what an import stores."""

import contextlib
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchmarks import first_page_plot, layouts, measuring
from benchmarks.threads import conversations, loading, shapes
from comments.reading.compaction import compactor
from comments.store import connection, reads
from comments.store.models import comment_rows
from comments.tree.lists import ordered_query
from comments.upkeep.integrity import repair
from datastore_emulator import inprocess
from tests.support import programs

PLOT = programs.ROOT / "docs" / "pictures" / "first-page.svg"


@pytest.mark.embedded
def test_every_layout_returns_the_first_page_of_a_walk_over_the_links(tmp_path: Path) -> None:
    thread = conversations.thread(shapes.grown(270))
    order = conversations.walk(thread)[: layouts.PAGE]
    with contextlib.ExitStack() as stack:
        ways = layouts.stored(stack, tmp_path, thread)
        assert set(ways) == set(first_page_plot.LABELS)
        for store, page in ways.values():
            with store.context():
                found = [msgspec.json.decode(each) for each in page()]
            assert [each["id"] for each in found] == order
            shown = {said.id: said.html for said in thread}
            assert all(each["html"] == shown[each["id"]] for each in found)


@pytest.mark.slow
@pytest.mark.embedded
@pytest.mark.parametrize("is_folded", [False, True])
def test_a_loaded_thread_equals_an_imported_and_compacted_one(
    engine: inprocess.Engine, *, is_folded: bool
) -> None:
    thread = conversations.thread(shapes.grown(90))
    with connection.Store(inprocess.Channel(engine), project=loading.PROJECT).context():
        loading.store_imported(thread)
        if is_folded:
            folded = compactor.compact(loading.SCHEME, loading.NAME)
            assert folded is not None
            compactor.clear(folded)
        imported = stored()
    with measuring.engine(None) as other:
        loading.fill(other, thread, is_folded=is_folded)
        with measuring.store(other).context():
            assert stored() == imported
            assert repair.find_problems(loading.SCHEME, loading.NAME) == []
            assert len(ordered_query.thread(loading.NAME)) == len(thread)


def stored() -> dict[str, Any]:
    """Return every comment's properties by id."""
    where = (("thread", "=", comment_rows.thread_key_name(loading.NAME)),)
    found = reads.fetch(reads.Query("Comment", where=where))
    return {each.key.path[-1].name: dict(each.properties) for each in found}


def texts(drawing: str) -> Iterator[str]:
    drawn = ET.fromstring(drawing)  # noqa: S314 - our own XML
    return (each.text or "" for each in drawn.iter("{http://www.w3.org/2000/svg}text"))


def test_the_documents_plot_has_a_line_for_each_layout() -> None:
    lines = {name: [(100, 1.0), (10_000, 10.0)] for name in first_page_plot.LABELS}
    drawn = first_page_plot.draw(lines)
    assert set(first_page_plot.LABELS.values()) <= set(texts(drawn))
    assert list(texts(PLOT.read_text()))[:9] == list(texts(drawn))[:9]
    assert set(first_page_plot.LABELS.values()) <= set(texts(PLOT.read_text()))
    assert "(pictures/first-page.svg)" in (programs.ROOT / "docs" / "comparison.md").read_text()
