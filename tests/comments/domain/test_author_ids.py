"""An author id contains its creation time, so no read is needed to know the author's age."""

from datetime import timedelta

import pytest

from comments.domain.ids import author_ids
from tests.support.threads import sample_threads

NOW = sample_threads.START
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def test_a_guests_id_contains_the_day_of_its_creation() -> None:
    made = author_ids.guest(LETTERS, NOW)
    assert made == f"g:{LETTERS}.20455"
    for days in (0, 1, 400):
        assert author_ids.age(made, None, NOW + timedelta(days=days)) == days
    # A slow clock does not produce a negative age.
    assert author_ids.age(made, None, NOW - timedelta(days=9)) == 0


def test_an_accounts_age_counts_from_its_creation() -> None:
    assert author_ids.age("a:x", NOW - timedelta(days=3), NOW) == 3
    assert author_ids.age("a:x", None, NOW) is None


@pytest.mark.parametrize("author", ["", "g:cid", f"g:{LETTERS}", f"g:{LETTERS}.", f"g:{LETTERS}.x"])
def test_an_id_without_a_date_has_age_zero(author: str) -> None:
    assert author_ids.age(author, None, NOW) == 0


def test_the_age_of_an_imported_author_is_unknown() -> None:
    assert author_ids.age(f"i:{LETTERS}", None, NOW) is None
