"""The golden values of sort hashes must never change; a change would corrupt stored threads."""

import itertools
import string
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from comments.domain.ids import sorthash

DEFAULT = sorthash.Scheme()
DECIMAL = sorthash.Scheme("0123456789", 2, 3)


def from_numbers(scheme: sorthash.Scheme, numbers: tuple[int, ...]) -> Any:
    sort_hash = ""
    for number in numbers:
        sort_hash = sorthash.child(scheme, sort_hash, number)
    return sort_hash


# Each of the default scheme's segment classes: its first and last numbers, and the numbers around
# 50.
GOLDEN_SEGMENTS = [
    (0, "AA"),
    (1, "AB"),
    (25, "AZ"),
    (26, "Aa"),
    (49, "Ax"),
    (50, "BA"),
    (2_499, "xx"),
    (2_500, "yAAA"),
    (2_501, "yAAB"),
    (127_499, "yxxx"),
    (127_500, "zAAAAA"),
    (127_501, "zAAAAB"),
    (312_627_499, "zxxxxx"),
]

# The padded hashes of a tree in the decimal scheme. Paths count roots from 0 and children from 1.
GOLDEN_TREE = [
    ("000000", (0,), "1"),
    ("000100", (0, 1), "1-1"),
    ("000101", (0, 1, 1), "1-1-1"),
    ("000102", (0, 1, 2), "1-1-2"),
    ("000103", (0, 1, 3), "1-1-3"),
    ("000104", (0, 1, 4), "1-1-4"),
    ("000200", (0, 2), "1-2"),
    ("000300", (0, 3), "1-3"),
    ("010000", (1,), "2"),
    ("010100", (1, 1), "2-1"),
    ("010200", (1, 2), "2-2"),
    ("020000", (2,), "3"),
]


@st.composite
def schemes(draw: Any) -> Any:
    letters = string.ascii_letters + string.digits + "!#+-.:=@_~"
    usable = sorted(letter for letter in letters if letter < sorthash.LONG)
    digits = draw(st.sets(st.sampled_from(usable), min_size=2))
    return sorthash.Scheme(
        "".join(sorted(digits)), draw(st.integers(1, 4)), draw(st.integers(1, 12))
    )


def numbers_of(scheme: sorthash.Scheme) -> Any:
    """Draw a segment's number, often from the ends of the three classes."""
    last = sorthash.last_number(scheme)
    ends = [0, last]
    for power in (scheme.base**scheme.width, scheme.base ** (scheme.width + 1)):
        ends += [power - 1, power]
    ends.append(scheme.base**scheme.width + scheme.base ** (scheme.width + 1))
    return st.integers(0, last) | st.sampled_from(ends) | st.integers(0, min(last, 5))


def paths_of(scheme: sorthash.Scheme) -> Any:
    return st.lists(numbers_of(scheme), min_size=1, max_size=6).map(tuple)


@st.composite
def scheme_and_paths(draw: Any, count: int) -> tuple[object, ...]:
    scheme = draw(st.just(DEFAULT) | schemes())
    return scheme, [draw(paths_of(scheme)) for _ in range(count)]


@st.composite
def related_paths(draw: Any) -> tuple[object, ...]:
    """Draw a scheme and two paths that often share a prefix."""
    scheme, (path,) = draw(scheme_and_paths(1))
    shared = path[: draw(st.integers(0, len(path)))]
    rest = draw(st.lists(numbers_of(scheme), max_size=3).map(tuple))
    assume(shared + rest)
    return scheme, path, shared + rest


@pytest.mark.parametrize(("number", "segment"), GOLDEN_SEGMENTS)
def test_segments_of_the_default_scheme_are_these_bytes(number: int, segment: str) -> None:
    assert sorthash.encode_segment(DEFAULT, number) == segment
    assert sorthash.decode_segment(DEFAULT, segment) == number


def test_the_default_scheme_is_fifty_digits_two_wide_and_eight_levels() -> None:
    written_out = sorthash.Scheme("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwx", 2, 8)
    assert written_out == DEFAULT
    assert DEFAULT.base == 50
    assert sorthash.last_number(DEFAULT) == 2_500 + 125_000 + 312_500_000 - 1


@pytest.mark.parametrize(("padded", "path", "slug"), GOLDEN_TREE)
def test_the_padded_decimal_form_is_this_table(
    padded: str, path: tuple[int, ...], slug: str
) -> None:
    sort_hash = from_numbers(DECIMAL, path)
    assert sorthash.pad(DECIMAL, sort_hash) == padded
    assert sorthash.to_numbers(DECIMAL, sort_hash) == path
    assert sorthash.slug(DECIMAL, sort_hash) == slug


def test_the_decimal_table_is_in_reading_order_padded_and_unpadded() -> None:
    padded = [row[0] for row in GOLDEN_TREE]
    stored = [from_numbers(DECIMAL, row[1]) for row in GOLDEN_TREE]
    assert sorted(padded) == padded
    assert sorted(stored) == stored
    assert len(set(stored)) == len(stored)


def test_a_stored_hash_consists_of_its_segments() -> None:
    assert from_numbers(DEFAULT, (0, 2_500, 1)) == "AAyAAAAB"
    assert sorthash.child(DEFAULT, "", 3) == "AD"
    assert sorthash.child(DEFAULT, "AD", 127_500) == "ADzAAAAA"


def test_padding_ends_at_the_last_level_and_does_not_change_deeper_hashes() -> None:
    at_the_end = from_numbers(DECIMAL, (0, 1, 2))
    deeper = from_numbers(DECIMAL, (0, 1, 2, 3))
    assert sorthash.pad(DECIMAL, at_the_end) == at_the_end
    assert sorthash.pad(DECIMAL, deeper) == deeper


def test_consecutive_numbers_make_ascending_segments_across_every_boundary_of_a_small_scheme() -> (
    None
):
    scheme = sorthash.Scheme("abc", 1, 2)  # 3 + 9 + 81 numbers
    every = [sorthash.encode_segment(scheme, n) for n in range(sorthash.last_number(scheme) + 1)]
    assert len(every) == 93
    assert sorted(every) == every
    assert not any(b.startswith(a) for a, b in itertools.permutations(every, 2))


@given(scheme_and_paths(1))
def test_numbers_survive_encoding_and_decoding(drawn: Any) -> None:
    scheme, (path,) = drawn
    sort_hash = from_numbers(scheme, path)
    assert sorthash.to_numbers(scheme, sort_hash) == path


@given(related_paths())
def test_strings_sort_like_their_paths(drawn: Any) -> None:
    # Tuples sort in preorder: siblings by number, a parent before its descendants.
    scheme, one, other = drawn
    strings = (from_numbers(scheme, one), from_numbers(scheme, other))
    assert (strings[0] < strings[1]) == (one < other)
    assert (strings[0] == strings[1]) == (one == other)


@given(related_paths())
def test_bytes_sort_as_strings_do(drawn: Any) -> None:
    # Datastore compares strings by their bytes.
    scheme, one, other = drawn
    strings = (from_numbers(scheme, one), from_numbers(scheme, other))
    assert (strings[0] < strings[1]) == (strings[0].encode() < strings[1].encode())


@given(related_paths())
def test_a_hash_is_a_prefix_of_its_descendants_alone(drawn: Any) -> None:
    scheme, one, other = drawn
    is_prefix = from_numbers(scheme, other).startswith(from_numbers(scheme, one))
    assert is_prefix == (other[: len(one)] == one)


@given(related_paths())
def test_a_subtree_range_contains_exactly_the_comment_and_its_descendants(drawn: Any) -> None:
    scheme, one, other = drawn
    low, high = sorthash.subtree_range(from_numbers(scheme, one))
    is_inside = low <= from_numbers(scheme, other) < high
    assert is_inside == (other[: len(one)] == one)


@given(scheme_and_paths(1))
def test_parent_ancestors_and_level_follow_the_path(drawn: Any) -> None:
    scheme, (path,) = drawn
    sort_hash = from_numbers(scheme, path)
    above = [from_numbers(scheme, path[:end]) for end in range(1, len(path))]
    assert sorthash.ancestors(scheme, sort_hash) == tuple(above)
    assert sorthash.level(scheme, sort_hash) == len(path) - 1
    parent = above[-1] if above else ""
    assert sorthash.child(scheme, parent, path[-1]) == sort_hash
    assert "".join(sorthash.segments(scheme, sort_hash)) == sort_hash


@given(scheme_and_paths(1))
def test_the_slug_counts_roots_from_one(drawn: Any) -> None:
    scheme, (path,) = drawn
    shown = sorthash.slug(scheme, from_numbers(scheme, path)).split("-")
    assert [int(part) for part in shown] == [path[0] + 1, *path[1:]]


@given(st.data())
def test_padded_forms_of_short_segments_sort_like_the_hashes(data: Any) -> None:
    # In the padded form, number 0 below a root means the root itself, so children count from 1.
    scheme = data.draw(st.just(DEFAULT) | schemes())
    short = scheme.base**scheme.width - 1
    below = st.lists(st.integers(1, short) | st.integers(1, min(short, 3)))
    paths = [
        (data.draw(st.integers(0, min(short, 3))), *data.draw(below)[: scheme.levels - 1])
        for _ in range(2)
    ]
    hashes = [from_numbers(scheme, path) for path in paths]
    padded = [sorthash.pad(scheme, sort_hash) for sort_hash in hashes]
    assert (padded[0] < padded[1]) == (hashes[0] < hashes[1])
    assert {len(form) for form in padded} == {scheme.levels * scheme.width}


@given(st.data())
def test_any_text_is_refused_or_a_hash_that_survives_decoding(data: Any) -> None:
    scheme = data.draw(st.just(DEFAULT) | schemes())
    text = data.draw(st.text(st.sampled_from(scheme.digits + "yz{é ")) | st.text(max_size=12))
    try:
        path = sorthash.to_numbers(scheme, text)
    except sorthash.BadSortHash:
        return
    assert from_numbers(scheme, path) == text


@pytest.mark.parametrize(
    "segment",
    ["", "A", "AAA", "Ay", "yA", "yAAAA", "yAAy", "zAAAA", "zAAAAAA", "y", "z", "AÄ", "A ", "{{"],
)
def test_a_malformed_segment_is_refused(segment: str) -> None:
    with pytest.raises(sorthash.BadSortHash):
        sorthash.decode_segment(DEFAULT, segment)


@pytest.mark.parametrize("sort_hash", ["", "A", "AAA", "AAyAA", "AAz", "AA-AB"])
def test_a_malformed_hash_is_refused(sort_hash: str) -> None:
    with pytest.raises(sorthash.BadSortHash):
        sorthash.to_numbers(DEFAULT, sort_hash)


@pytest.mark.parametrize("number", [-1, 312_627_500])
def test_a_number_too_large_for_a_segment_is_refused(number: int) -> None:
    with pytest.raises(sorthash.BadSortHash, match=str(number)):
        sorthash.encode_segment(DEFAULT, number)


@pytest.mark.parametrize(
    ("digits", "reason"),
    [
        ("", "at least two"),
        ("A", "at least two"),
        ("BA", "ascending"),
        ("AAB", "distinct"),
        ("Aé", "ASCII"),
        ("ABy", "below 'y'"),
        ("AB{", "below 'y'"),
    ],
)
def test_unsorted_digits_are_refused(digits: str, reason: str) -> None:
    with pytest.raises(sorthash.BadSortHash, match=reason):
        sorthash.Scheme(digits, 2, 8)


@pytest.mark.parametrize(("width", "levels"), [(0, 8), (-1, 8), (2, 0)])
def test_a_scheme_without_width_or_levels_is_refused(width: int, levels: int) -> None:
    with pytest.raises(sorthash.BadSortHash, match="at least 1"):
        sorthash.Scheme(width=width, levels=levels)


@given(related_paths())
def test_a_slug_names_the_hash_that_it_was_made_from(drawn: Any) -> None:
    scheme, (root, *below), _ = drawn
    sort_hash = from_numbers(scheme, (root, *(max(1, number) for number in below)))
    assert sorthash.from_slug(scheme, sorthash.slug(scheme, sort_hash)) == sort_hash


@pytest.mark.parametrize("text", ["", "0", "-1", "1-", "1-0", "01", "1--1", "1-x", "\u0661", "1\n"])
def test_a_text_that_is_no_slug_is_refused(text: str) -> None:
    with pytest.raises(sorthash.BadSortHash):
        sorthash.from_slug(DEFAULT, text)


def test_a_slug_with_a_number_beyond_the_scheme_is_refused() -> None:
    last = sorthash.last_number(DEFAULT)
    assert sorthash.from_slug(DEFAULT, f"1-{last}") == "AAzxxxxx"
    with pytest.raises(sorthash.BadSortHash):
        sorthash.from_slug(DEFAULT, f"1-{last + 1}")
