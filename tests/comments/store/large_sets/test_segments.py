"""Id sets are sorted runs: marks override them, runs split evenly, stored formats are stable."""

from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comments.store.large_sets import segments

IDS = st.sets(st.text(min_size=1, max_size=6), max_size=40).map(sorted)
MARKS = st.dictionaries(st.text(min_size=1, max_size=3), st.booleans()).map(
    lambda marks: sorted(marks.items())
)


def applied(ids: set[str], *generations: list[segments.Mark]) -> list[str]:
    """Apply the marks to a Python set."""
    for marks in generations:
        for each, belongs in marks:
            ids.add(each) if belongs else ids.discard(each)
    return sorted(ids)


@given(IDS, MARKS, MARKS)
def test_overlaid_marks_change_a_set_like_the_marks_in_sequence(
    ids: list[str], older: list[segments.Mark], newer: list[segments.Mark]
) -> None:
    marks = list(segments.overlaid(older, newer))
    assert marks == sorted({**dict(older), **dict(newer)}.items())
    assert list(segments.apply_marks(ids, marks)) == applied(set(ids), older, newer)
    assert list(segments.apply_marks(segments.apply_marks(ids, older), newer)) == applied(
        set(ids), older, newer
    )


@given(IDS, MARKS)
def test_the_gain_of_marks_is_the_difference_they_make(
    ids: list[str], marks: list[segments.Mark]
) -> None:
    assert len(ids) + segments.gain(ids, marks) == len(applied(set(ids), marks))


@given(MARKS)
def test_marks_are_their_two_signs_merged(marks: list[segments.Mark]) -> None:
    joined, left = ([each for each, belongs in marks if belongs is sign] for sign in (True, False))
    assert list(segments.merge_signed(joined, left)) == marks


@given(IDS, st.integers(1, 60))
def test_runs_contain_the_ids_in_order_and_none_is_too_long_or_too_short(
    ids: list[str], most: int
) -> None:
    runs = list(segments.runs(iter(ids), most))
    assert [each for run in runs for each in run] == ids
    for run in runs:
        assert run
        assert segments.size(run[:-1]) < most
    for run in runs[:-1]:
        assert segments.size(run) >= most / 2


def test_a_long_list_is_split_into_runs_while_it_is_read() -> None:
    taken = 0

    def ids() -> Iterator[str]:
        nonlocal taken
        for number in range(10_000):
            taken += 1
            yield f"{number:05d}"

    first = next(segments.runs(ids(), 1_000))
    assert len(first) == 100
    assert taken < 250


@given(IDS.filter(bool), st.integers(1, 60), st.text(max_size=6))
def test_an_id_lies_in_the_line_whose_span_contains_it(
    ids: list[str], most: int, each: str
) -> None:
    lines = [
        segments.SegmentSummary(str(n), run[0], len(run))
        for n, run in enumerate(segments.runs(ids, most))
    ]
    found = lines[segments.place_of(lines, each)]
    ends = {line.key: end for line, end in segments.spans(lines)}
    assert found.first <= each or found is lines[0]
    end = ends[found.key]
    assert end is None or each < end


@given(MARKS, st.lists(st.text(max_size=3)).map(sorted))
def test_marks_are_taken_range_by_range(marks: list[segments.Mark], ends: list[str]) -> None:
    ahead = segments.Ahead(marks)
    taken = []
    for end in ends:
        part = list(ahead.until(end))
        assert all(each < end for each, _ in part)
        assert not ahead.is_before(end)
        taken += part
    assert taken + list(ahead) == marks
    assert not ahead.is_before(None)


@given(IDS)
def test_a_segment_survives_encoding_and_decoding(ids: list[str]) -> None:
    assert segments.decode_ids(segments.encode_ids(ids)) == ids


@given(st.lists(st.builds(segments.SegmentSummary, st.text(), st.text(), st.integers(0, 2**40))))
def test_lines_and_directories_survive_encoding_and_decoding(
    lines: list[segments.SegmentSummary],
) -> None:
    assert segments.decode_lines(segments.encode_lines(lines)) == tuple(lines)
    directory = segments.SetDirectory(2, tuple(lines))
    assert segments.decode_directory(segments.encode_directory(directory)) == directory
    assert directory.count == sum(line.count for line in lines)


@given(st.text(max_size=8), st.text(max_size=8))
def test_ids_are_ordered_like_their_bytes(one: str, other: str) -> None:
    assert (one < other) == (one.encode() < other.encode())


LINE = segments.SegmentSummary("0000000001-ab-0", "ann", 2)


# A change to these golden values would make stored lists unreadable.
@pytest.mark.parametrize(
    ("stored", "read", "expected"),
    [
        (
            "78019bb438312f6f45527e92c287f97d1d0034110713",
            segments.decode_ids,
            ["ann", "bob \U0001f388"],
        ),
        ("78019b3879bd010c18ea2626e91a2c4ecccb63020056a706e4", segments.decode_lines, (LINE,)),
        (
            "78019bc43871f27a031830d44d4cd235589c9897c7040065030777",
            segments.decode_directory,
            segments.SetDirectory(1, (LINE,)),
        ),
    ],
    ids=["segment", "lines", "directory"],
)
def test_the_stored_formats_of_earlier_releases_are_readable(
    stored: str, read: Callable[[bytes], object], expected: object
) -> None:
    assert read(bytes.fromhex(stored)) == expected
