"""Trees under any scheme follow from the answered comments and the order of arrival."""

from datetime import timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from comments import errors
from comments.domain import records
from comments.domain.ids import sorthash
from comments.domain.records import Status
from comments.tree.schemes import reshaping
from tests.support.threads import recursive_walk, sample_threads

Rows = dict[str, records.Comment]
DIGITS = ("0123456789", sorthash.DEFAULT_DIGITS, "01", "#$%&'()*+")
SCHEMES = st.builds(sorthash.Scheme, st.sampled_from(DIGITS), st.integers(2, 8), st.integers(1, 9))


def row(comment: str, reply_to: str | None, minute: int, status: Status) -> records.Comment:
    return records.Comment(
        id=comment, site="demo", thread="page", sort_hash="", level=0, number=0, child_count=0,
        parent=None, reply_to=reply_to, slug="", author=records.Author("ann"), body="", html="",
        status=status, listed=False, revision=1, edited=None,
        created=sample_threads.START + timedelta(minutes=minute),
    )  # fmt: skip


def placed(rows: Rows, scheme: sorthash.Scheme) -> Rows:
    found = reshaping.places(scheme, rows)
    return {each: msgspec.structs.replace(rows[each], **found[each]._asdict()) for each in rows}


@st.composite
def threads(draw: st.DrawFn) -> Rows:
    """A thread as its posts place it under a first scheme, one after the other."""
    scheme = draw(SCHEMES)
    rows: Rows = {}
    for minute in range(draw(st.integers(1, 16))):
        reply_to = draw(st.sampled_from([None, *rows]))
        made = row(f"c{minute:02}", reply_to, minute, draw(st.sampled_from(Status)))
        answered = None if reply_to is None else rows[reply_to]
        parent = answered
        if answered is not None and answered.level == scheme.levels - 1:
            parent = None if answered.parent is None else rows[answered.parent]
        siblings = [each for each in rows.values() if each.parent == (parent and parent.id)]
        number = len(siblings) + (parent is not None)
        above = "" if parent is None else parent.sort_hash
        sort_hash = sorthash.child(scheme, above, number)
        rows[made.id] = msgspec.structs.replace(
            made, parent=parent and parent.id, number=number,
            level=0 if parent is None else parent.level + 1,
            sort_hash=sort_hash, slug=sorthash.slug(scheme, sort_hash),
        )  # fmt: skip
        if parent is not None:
            rows[parent.id] = msgspec.structs.replace(rows[parent.id], child_count=number)
    return rows


@given(threads(), st.lists(SCHEMES, min_size=1, max_size=4))
def test_any_sequence_of_schemes_equals_a_recursive_walk(
    rows: Rows, schemes: list[sorthash.Scheme]
) -> None:
    for scheme in schemes:
        before = {each.id: (each.parent, each.number) for each in rows.values()}
        rows = placed(rows, scheme)
        by_hash = sorted(rows.values(), key=lambda each: each.sort_hash)
        assert [each.id for each in by_hash] == recursive_walk.order(by_hash, scheme.levels)
        above = recursive_walk.parents(by_hash, scheme.levels)
        assert {each.id: each.parent for each in by_hash} == above
        numbers = recursive_walk.numbered(by_hash, scheme.levels, before)
        assert {each.id: each.number for each in by_hash} == numbers
        for each in by_hash:
            path = sorthash.to_numbers(scheme, each.sort_hash)
            assert (path[-1], len(path) - 1) == (each.number, each.level)
            assert each.slug == sorthash.slug(scheme, each.sort_hash)
            below = [other for other in by_hash if other.parent == each.id]
            assert all(other.number <= each.child_count for other in below)
            assert each.listed == (
                each.status is Status.APPROVED or any(other.listed for other in below)
            )


@given(threads(), SCHEMES, SCHEMES)
def test_a_move_that_is_repeated_changes_nothing(
    rows: Rows, first: sorthash.Scheme, second: sorthash.Scheme
) -> None:
    rows = placed(placed(rows, first), second)
    assert placed(rows, second) == rows


@given(threads(), st.sampled_from(DIGITS), st.integers(2, 8))
def test_other_digits_and_widths_change_no_slug(rows: Rows, digits: str, width: int) -> None:
    first = placed(rows, sorthash.Scheme(levels=4))
    second = placed(first, sorthash.Scheme(digits, width, 4))
    assert [each.slug for each in second.values()] == [each.slug for each in first.values()]


@given(threads(), st.integers(1, 8), st.integers(1, 8))
def test_raised_levels_and_the_way_back_restore_all_slugs(
    rows: Rows, levels: int, more: int
) -> None:
    first = placed(rows, sorthash.Scheme(levels=levels))
    raised = placed(first, sorthash.Scheme(levels=levels + more))
    back = placed(raised, sorthash.Scheme(levels=levels))
    assert {each: back[each].slug for each in back} == {each: first[each].slug for each in first}


def test_a_reply_with_an_earlier_date_follows_the_comment_that_it_answers() -> None:
    rows = {
        "a": row("a", None, 0, Status.APPROVED),
        "b": row("b", "a", 9, Status.APPROVED),
        "c": row("c", "b", 1, Status.APPROVED),
        "d": row("d", "a", 10, Status.APPROVED),
    }
    deep = placed(rows, sorthash.Scheme(levels=8))
    flat = placed(deep, sorthash.Scheme(levels=2))
    assert sorted(flat, key=lambda each: flat[each].sort_hash) == ["a", "b", "c", "d"]


def test_a_cycle_is_refused() -> None:
    rows = {
        "a": row("a", "b", 0, Status.APPROVED),
        "b": row("b", "a", 1, Status.APPROVED),
    }
    with pytest.raises(errors.Conflict, match="thread-damaged"):
        placed(rows, sorthash.Scheme())


def test_more_replies_than_the_scheme_can_number_are_refused() -> None:
    scheme = sorthash.Scheme("01", 1)
    most = sorthash.last_number(scheme)
    rows = {f"{n:03}": row(f"{n:03}", None, n, Status.APPROVED) for n in range(most + 2)}
    with pytest.raises(errors.Conflict, match="scheme-too-narrow"):
        placed(rows, scheme)
    rows.popitem()
    assert len(placed(rows, scheme)) == most + 1
