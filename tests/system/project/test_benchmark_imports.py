"""The benchmark of imports generates the same comments in each format."""

import json
from pathlib import Path
from xml.etree import ElementTree as ET

from benchmarks import exports

NAMESPACE = "{http://disqus.com}"
ID = "{http://disqus.com/disqus-internals}id"


def test_both_formats_have_the_same_comments(tmp_path: Path) -> None:
    for system in exports.WRITERS:
        exports.write(tmp_path / system, system, [30, 20])
    posts = [
        (
            each.get(ID),
            None if (above := each.find(f"{NAMESPACE}parent")) is None else above.get(ID),
            each.findtext(f"{NAMESPACE}author/{NAMESPACE}name"),
            each.findtext(f"{NAMESPACE}message"),
        )
        for each in ET.parse(tmp_path / "disqus").iter(f"{NAMESPACE}post")  # noqa: S314
    ]
    rows = [json.loads(line) for line in (tmp_path / "generic").read_text().splitlines()]
    assert len(posts) == 50
    assert posts == [(row["id"], row["parent"], row["author"], row["text"]) for row in rows]


def test_threads_are_as_large_as_possible_or_of_many_sizes() -> None:
    assert list(exports.even_sizes(6_000)) == [2_500, 2_500, 1_000]
    sizes = list(exports.falling_sizes(6_000))
    assert sizes[:3] == [2_500, 1_250, 833]
    assert sum(sizes) == 6_000
    found = list(exports.comments([3, 1, 2]))
    assert [each.thread for each in found] == [1, 1, 1, 2, 3, 3]
    assert len({each.id for each in found}) == 6
