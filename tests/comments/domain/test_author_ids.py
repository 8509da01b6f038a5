"""Claims about ids of authors: since when somebody is here, told without a read."""

from datetime import timedelta

import pytest

from comments.domain import author_ids
from tests.support.threads import sample_threads

NOW = sample_threads.START
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def test_a_guests_id_says_on_which_day_he_came() -> None:
    made = author_ids.guest(LETTERS, NOW)
    assert made == f"g:{LETTERS}.20455"
    for days in (0, 1, 400):
        assert author_ids.age(made, None, NOW + timedelta(days=days)) == days
    # A clock that is behind makes nobody older.
    assert author_ids.age(made, None, NOW - timedelta(days=9)) == 0


def test_an_account_is_as_old_as_it_says() -> None:
    assert author_ids.age("a:x", NOW - timedelta(days=3), NOW) == 3
    assert author_ids.age("a:x", None, NOW) is None


@pytest.mark.parametrize("author", ["", "g:cid", f"g:{LETTERS}", f"g:{LETTERS}.", f"g:{LETTERS}.x"])
def test_who_cannot_say_it_came_today(author: str) -> None:
    assert author_ids.age(author, None, NOW) == 0


def test_of_whom_an_import_names_nothing_is_known() -> None:
    assert author_ids.age(f"i:{LETTERS}", None, NOW) is None
