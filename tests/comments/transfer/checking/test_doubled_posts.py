"""Posts that were sent twice are imported once; equal posts at other times are kept."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from comments.domain import records
from comments.domain.records import Status
from comments.transfer import import_source
from comments.transfer.checking import checked_import, doubled_posts, import_report
from tests.support.threads.sample_exports import (
    NOW,
    THREAD,
    notes,
    plan_of,
    planned_by,
    post,
    rows,
    write,
    written,
)

START = NOW + timedelta(hours=10)
SOURCE = import_source.SourceThread("1", 1, "https://garden.example/roses")
TULIPS = import_source.SourceThread("2", 1, "https://garden.example/tulips")


def comment(number: int, second: int = 0, parent: str | None = None) -> import_source.SourceComment:
    return import_source.SourceComment(
        system="disqus",
        id=str(number),
        line=number,
        thread="1",
        parent=parent,
        status=Status.APPROVED,
        created=START + timedelta(seconds=second),
        name="Ada",
        body="+1",
    )


def planned(tmp_path: Path, *comments: import_source.SourceComment) -> checked_import.CheckedImport:
    def read(_: Path) -> Iterator[import_source.Item]:
        yield SOURCE
        yield TULIPS
        yield from comments

    return planned_by(read, tmp_path)


def kept(tmp_path: Path, *comments: import_source.SourceComment) -> list[str]:
    with planned(tmp_path, *comments) as plan:
        return sorted(written(plan))


def test_a_double_click_is_imported_once_and_keeps_its_replies(
    garden: records.Site, export: Callable[..., Path]
) -> None:
    def at(second: int) -> str:
        return f"2015-01-01T10:00:{second:02}Z"

    path = export(
        THREAD,
        post("2", created=at(3), message="Hello."),
        post("1", created=at(1), message="Hello."),
        post("3", "2", created=at(20), message="Hi."),
        post("4", "1", created=at(21), message="Hi."),
        post("5", "3", created=at(30), message="Bye."),
        post("6", "4", created=at(31), message="Bye."),
    )
    with plan_of(path) as plan:
        assert notes(plan, import_report.DOUBLED) == [
            (3, "2, first in line 4: 1"),
            (6, "4, first in line 5: 3"),
            (8, "6, first in line 7: 5"),
        ]
        assert f"{import_report.DOUBLED}: 3" in list(plan.report.lines())
        assert write(plan).added == 3
        assert [row.reply_to for row in rows()] == [None, plan.id_of("1"), plan.id_of("3")]
        assert write(plan).added == 0


def test_equal_posts_at_other_times_are_kept(tmp_path: Path) -> None:
    last = int(doubled_posts.WINDOW.total_seconds())
    assert kept(tmp_path, comment(1), comment(2, last)) == ["1"]
    assert kept(tmp_path, comment(1), comment(2, last + 1)) == ["1", "2"]
    assert kept(tmp_path, *(comment(n, 4 * n) for n in range(1, 6))) == ["1", "4"]


@pytest.mark.parametrize(
    "changed",
    [
        {"thread": "2"},
        {"parent": "9"},
        {"name": "Bob"},
        {"email": "ada@garden.example"},
        {"account": "ada"},
        {"website": "https://ada.example"},
        {"body": "+2"},
        {"status": Status.SPAM},
        {"up": 1},
        {"down": 1},
        {"pinned": True},
        {"edited": START},
    ],
)
def test_posts_that_differ_are_kept(tmp_path: Path, changed: dict[str, object]) -> None:
    other = msgspec.structs.replace(comment(2), **changed)
    assert kept(tmp_path, comment(9, 99), comment(1), other) == ["1", "2", "9"]


@pytest.mark.parametrize(
    "shared",
    [
        {"status": Status.RETRACTED},
        {"body": " "},
        {"name": ""},
        {"created": datetime(2015, 1, 1, tzinfo=START.tzinfo)},
    ],
)
def test_nothing_is_said_about_posts_that_cannot_be_told_apart(
    tmp_path: Path, shared: dict[str, object]
) -> None:
    both = (msgspec.structs.replace(comment(number), **shared) for number in (1, 2))
    assert kept(tmp_path, *both) == ["1", "2"]


def test_a_repeated_id_with_other_content_is_reported_as_such(tmp_path: Path) -> None:
    first = comment(1)
    with planned(
        tmp_path, first, first, msgspec.structs.replace(first, line=2, body="other")
    ) as plan:
        assert notes(plan, import_report.REPEATED) == [(1, "1, first in line 1")]
        assert notes(plan, import_report.OTHER) == [(2, "1, first in line 1")]


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 12), st.sampled_from("ab")), max_size=12)
)
def test_each_copy_has_a_kept_original_and_replies_keep_their_texts(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[tuple[int, int, str]]
) -> None:
    comments = [
        msgspec.structs.replace(
            comment(number, second), body=body, parent=str(parent) if 0 < parent < number else None
        )
        for number, (second, parent, body) in enumerate(drawn, start=1)
    ]
    by_id = {each.id: each for each in comments}
    with planned(tmp_path_factory.getbasetemp(), *comments) as plan:
        left = {node.id: node for thread in plan.threads for node in thread.nodes}
        doubles = [text.partition(",") for _, text in notes(plan, import_report.DOUBLED)]
    for double, _, first in doubles:
        copy, original = by_id[double], by_id[first.rpartition(" ")[2]]
        assert original.id in left
        assert copy.body == original.body
        assert timedelta() <= copy.created - original.created <= doubled_posts.WINDOW
    assert left.keys() | {double for double, _, _ in doubles} == by_id.keys()
    for node in left.values():
        parent = by_id[node.id].parent
        if parent is not None and node.answers is not None:
            assert by_id[node.answers].body == by_id[parent].body
