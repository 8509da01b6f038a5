"""Pages that a mapping merges give the same threads as one page with all of their comments."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comments.transfer.checking import import_report, source_pages
from tests.support.threads.sample_exports import notes, plan_of, post, saved

LINKS = [
    "https://garden.example/roses",
    "http://old.example/blog/roses",
    "http://localhost:4000/roses/",
    "http://old.example/tulips",
]
MAPPING = ["old.example=garden.example", "/blog=/", "localhost:4000=garden.example"]
ROSES, TULIPS = "garden.example/roses", "garden.example/tulips"


def file_of(path: Path, links: list[str], comments: list[tuple[int, int, int]]) -> Path:
    """Save an export of comments; each has a page, a minute, and how far above its parent is."""
    lines = [
        f'<thread dsq:id="{key}"><link>{link}</link></thread>\n' for key, link in enumerate(links)
    ]
    for number, (page, minute, up) in enumerate(comments, start=1):
        parent = str(number - up) if 0 < up < number else None
        lines.append(post(str(number), parent, minute, thread=str(page)))
    return saved(path, *lines)


def shape(
    threads: tuple[source_pages.PlannedThread, ...],
) -> dict[str, list[tuple[str, str | None]]]:
    return {
        thread.name.id: [(node.id, node.answers) for node in thread.nodes] for thread in threads
    }


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 30), st.integers(0, 4)),
        min_size=1,
        max_size=12,
    ),
    st.integers(1, 4),
    st.permutations(MAPPING),
)
def test_merged_pages_are_in_the_order_of_one_page(
    tmp_path_factory: pytest.TempPathFactory,
    comments: list[tuple[int, int, int]],
    levels: int,
    mapping: list[str],
) -> None:
    folder = tmp_path_factory.getbasetemp()
    old = file_of(folder / "old.xml", LINKS, comments)
    one = [f"https://{ROSES}"] * 3 + [f"https://{TULIPS}"]
    new = file_of(folder / "new.xml", one, comments)
    with plan_of(old, levels, mapping=mapping) as mapped, plan_of(new, levels) as plain:
        assert shape(mapped.threads) == shape(plain.threads)
        used = {page for page, _, _ in comments} - {3}
        merged = notes(mapped, import_report.MERGED)
        assert len(merged) == (len(used) > 1)
        assert all(LINKS[page] in text for page in used for _, text in merged)
