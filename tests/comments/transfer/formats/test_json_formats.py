"""The JSON formats name each page once, and none of their comments lacks its page."""

from pathlib import Path

import pytest

from comments.transfer import import_source
from comments.transfer.formats import format_registry
from tests.support.importing import sample_files


@pytest.mark.parametrize("name", ["artalk", "twikoo", "valine", "waline"])
def test_a_page_comes_once_and_before_its_comments(tmp_path: Path, name: str) -> None:
    path = tmp_path / "export"
    path.write_bytes(sample_files.of(name).SANE.data)
    pages = []
    for item in format_registry.get(name).read(path):
        if isinstance(item, import_source.SourceThread):
            pages.append(item.key)
        elif isinstance(item, import_source.SourceComment):
            assert item.thread in pages
    assert len(pages) == len(set(pages)) == 2
