"""Reasons why a comment is held are stored as codes, and have a sentence for every code."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comments.domain.languages import catalogue
from comments.domain.moderation import reasons
from comments.domain.moderation.reasons import HoldReason
from comments.moderation import reports

PARAMS = st.dictionaries(st.text(max_size=9), st.text(max_size=9) | st.integers(0, 2**53))
REASONS = st.lists(st.builds(HoldReason, st.text(max_size=9), PARAMS)).map(tuple)


@given(REASONS)
def test_reasons_survive_storage(found: tuple[HoldReason, ...]) -> None:
    assert reasons.decode(reasons.encode(found)) == found


def test_the_stored_form_of_reasons() -> None:
    # Stored in comments: a change would make stored reasons unreadable.
    assert reasons.encode([]) == ""
    found = (HoldReason("policy-first"), HoldReason("links", {"count": 2}))
    stored = '[{"code":"policy-first","params":{}},{"code":"links","params":{"count":2}}]'
    assert reasons.encode(found) == stored
    assert reasons.decode(stored) == found


def test_several_reasons_are_clauses_of_one_line() -> None:
    found = (HoldReason("policy-first"), HoldReason("links", {"count": 2}))
    assert reasons.sentence(found) == "the author is new here; there are more than 2 links"


@pytest.mark.parametrize("reason", reports.Reason)
def test_each_reason_for_a_report_has_a_text(reason: reports.Reason) -> None:
    assert f"reported-{reason}" in catalogue.ENGLISH.entries["reasons"]
