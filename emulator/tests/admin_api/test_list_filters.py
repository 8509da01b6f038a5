"""Filtering and paging of the admin API's lists."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datastore_emulator import errors
from datastore_emulator.admin_api import list_filters

KNOWN = ("kind", "state", "labels.")


@pytest.mark.parametrize(
    ("text", "is_met"),
    [
        ("", True),
        ("  ", True),
        ("kind=T", True),
        ("kind = t", True),
        ('kind:"T"', True),
        ("kind=U", False),
        ("kind=T AND state=READY", True),
        ("kind=T AND state=CREATING", False),
        ("labels.a-b=T", False),
    ],
)
def test_a_result_meets_a_filter_if_all_its_conditions_hold(text: str, is_met: bool) -> None:
    values = {"kind": "T", "state": "READY", "labels.a-b": ""}
    assert list_filters.matches(list_filters.parse(text, KNOWN), values.__getitem__) == is_met


@pytest.mark.parametrize(
    "text",
    ["kind", "=T", "kind=", "kind>T", "kind=T OR kind=U", "NOT kind=T", "(kind=T)", "other=1"],
)
def test_an_unsupported_filter_is_refused(text: str) -> None:
    with pytest.raises(errors.InvalidArgument, match="filter"):
        list_filters.parse(text, KNOWN)


@given(st.sets(st.text(min_size=1, max_size=3)), st.integers(1, 5))
def test_pages_give_every_result_once_and_in_order(names: set[str], size: int) -> None:
    found, token = [], ""
    while True:
        page, token = list_filters.page(list(names), str, size=size, token=token)
        assert len(page) <= size
        found += page
        if not token:
            break
    assert found == sorted(names)


def test_results_added_or_removed_between_pages_move_no_other() -> None:
    first, token = list_filters.page(["a", "b", "c", "d"], str, size=2, token="")
    second, _ = list_filters.page(["0", "b", "c", "d"], str, size=2, token=token)
    assert (first, second) == (["a", "b"], ["c", "d"])


def test_a_size_of_zero_is_all() -> None:
    assert list_filters.page(["b", "a"], str, size=0, token="") == (["a", "b"], "")


@pytest.mark.parametrize(("size", "token"), [(-1, ""), (1, "?"), (1, "a"), (1, "é"), (1, "_w==")])
def test_a_wrong_size_or_token_is_refused(size: int, token: str) -> None:
    with pytest.raises(errors.InvalidArgument, match="page_"):
        list_filters.page(["a"], str, size=size, token=token)
