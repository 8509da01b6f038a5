"""Real exports are stored completely and in order; the tests run only if exports are available."""

from collections.abc import Iterator

import pytest

from comments import errors
from comments.domain import records, sorthash
from comments.jobs import repair
from comments.jobs.importers import import_source, import_writer
from comments.jobs.importers.formats import disqus, wordpress
from comments.tree import ordered_query
from tests.support import optional_tools
from tests.support.threads import sample_threads
from tests.support.threads.sample_exports import SCHEME, SECRET, entities, rows, source_ids, write

READERS = {
    "disqus/benbalter-1145.xml": disqus.read,
    "disqus/laisky-209.xml": disqus.read,
    "disqus/evanlin-189.xml": disqus.read,
    "wxr/themeunittestdata-33.xml": wordpress.read,
    "wxr/timothyfitz-381.xml": wordpress.read,
    "fixtures/wordpress/malformed-simple.xml": wordpress.read,
    "fixtures/remark42/disqus.xml": disqus.read,
    "fixtures/remark42/disqus-deleted-post.xml": disqus.read,
    "fixtures/remark42/disqus-deleted-thread.xml": disqus.read,
}


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("wxr/timothyfitz-381.xml", 49),
        ("fixtures/wordpress/malformed-simple.xml", 14),
        ("fixtures/remark42/disqus.xml", 1),
        ("fixtures/remark42/disqus-deleted-post.xml", 1),
        ("fixtures/remark42/disqus-deleted-thread.xml", 1),
    ],
)
def test_a_real_file_that_is_not_xml_is_refused_and_leaves_nothing(
    garden: records.Site, name: str, line: int
) -> None:
    with pytest.raises(errors.BadImport) as caught:
        import_writer.plan(
            READERS[name],
            optional_tools.real_export(name),
            site=garden,
            scheme=SCHEME,
            secret=SECRET,
        )
    assert caught.value.line == line
    assert entities() == 0


def by_definition(items: list[import_source.SourceComment], levels: int) -> Iterator[str]:
    """Yield a thread's comment ids in the defined order: compute each place, then walk the tree."""
    by_id = {item.id: item for item in items}

    def place(item: import_source.SourceComment) -> tuple[str | None, int]:
        if item.parent not in by_id:
            return None, 0
        above, level = place(by_id[item.parent])
        return (above, level) if level == levels - 1 else (item.parent, level + 1)

    def walk(parent: str | None) -> Iterator[str]:
        below = [item for item in items if place(item)[0] == parent]
        for item in sorted(below, key=lambda item: (item.created, int(item.id))):
            yield item.id
            yield from walk(item.id)

    return walk(None)


def recursive_walk(found: list[records.Comment], parent: str | None = None) -> Iterator[str]:
    below = [row for row in found if row.parent == parent]
    for row in sorted(below, key=lambda row: row.number):
        yield row.id
        yield from recursive_walk(found, row.id)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "count", "levels"),
    [
        ("disqus/benbalter-1145.xml", 1145, 3),
        ("disqus/laisky-209.xml", 209, 8),
        ("disqus/laisky-209.xml", 209, 3),
        ("disqus/evanlin-189.xml", 189, 8),
        ("wxr/themeunittestdata-33.xml", 29, 8),
        ("wxr/themeunittestdata-33.xml", 29, 3),
    ],
)
def test_a_real_export_is_stored_completely_and_in_order(
    garden: records.Site, name: str, count: int, levels: int
) -> None:
    path, reader = optional_tools.real_export(name), READERS[name]
    items = {
        item.id: item for item in reader(path) if isinstance(item, import_source.SourceComment)
    }
    scheme = sorthash.Scheme(levels=levels)
    garden = sample_threads.shaped(garden, scheme)
    with import_writer.plan(reader, path, site=garden, scheme=scheme, secret=SECRET) as plan:
        assert write(plan, levels) == import_writer.ImportSummary(count, 0, len(plan.threads))
        stored = rows()
        for thread in plan.threads:
            found = [row for row in stored if row.thread == thread.name.id]
            ids = source_ids(found, plan)
            assert ids == list(by_definition([items[each] for each in ids], levels))
            assert [row.id for row in found] == list(recursive_walk(found))
            listed = {row.id for row in found if row.listed}
            assert [row.id for row in ordered_query.thread(thread.name)] == [
                row.id for row in found if row.id in listed
            ]
            assert repair.find_problems(scheme, thread.name) == []
        assert len(stored) == count
        assert write(plan, levels).added == 0
    assert rows() == stored
