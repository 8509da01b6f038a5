"""The benchmark of imports generates the same comments in each format, and measures every bar."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from benchmarks import __main__ as benchmarks
from benchmarks.importing import export_files

NAMESPACE = "{http://disqus.com}"
ID = "{http://disqus.com/disqus-internals}id"
NAMES = [
    *(f"{system} {bar}" for system in ("disqus", "generic")
      for bar in ("first pass", "linear", "verify", "memory")),
    "import beside reader", "import beside poster",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.embedded
def test_a_quick_run_measures_every_bar(capsys: pytest.CaptureFixture[str]) -> None:
    benchmarks.run(["imports"], quick=True)
    lines = capsys.readouterr().out.splitlines()
    assert [re.split(r" {2,}", line)[0] for line in lines] == NAMES
    assert all(" held " in line or " MISSED " in line for line in lines)


def test_both_formats_have_the_same_comments(tmp_path: Path) -> None:
    for system in export_files.WRITERS:
        export_files.write(tmp_path / system, system, 50)
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


def test_threads_have_the_shape_of_a_file(tmp_path: Path) -> None:
    shape = tmp_path / "tree.csv"
    shape.write_text("a;;1\nb;a;2\nc;b;3\nd;;4\n")
    found = list(export_files.comments(10, shape))
    names = [each.id for each in found]
    assert [each.thread for each in found] == [1] * 4 + [2] * 4 + [3] * 2
    above = [each.parent and names.index(each.parent) for each in found]
    assert above == [None, 0, 1, None, None, 4, 5, None, None, 8]
