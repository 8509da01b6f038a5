"""Claims about cursors: what a release before gave out is read, and no other listing's is."""

import pytest
from itsdangerous import URLSafeSerializer

from comments import errors
from comments.domain.crypto import cursors

SECRET = "a secret of the cursors"
LISTING = cursors.label("demo", "page", "thread", "")
SHORT = ["AAABACADAE"]
LONG = ["AA" + "AB" * 200]  # the library's own way compresses it


@pytest.mark.parametrize("position", [SHORT, LONG, ["ranking", "AB", ""], [], ["é\0" * 50]])
def test_a_position_comes_back_whoever_wrote_it(position: list[str]) -> None:
    before = str(URLSafeSerializer(SECRET, salt=f"cursor\0{LISTING}").dumps(position))
    for cursor in (before, cursors.seal(position, LISTING, SECRET)):
        assert cursors.unseal(cursor, LISTING, SECRET) == position
        for listing, secret in ((LISTING + "x", SECRET), ("", SECRET), (LISTING, SECRET + "x")):
            with pytest.raises(errors.BadCursor):
                cursors.unseal(cursor, listing, secret)


def test_a_cursor_is_signed_in_this_form() -> None:
    """It is in links and in pages that are open: another form is refused by those who know this."""
    sealed = cursors.seal(SHORT, LISTING, SECRET)
    assert sealed == "WyJBQUFCQUNBREFFIl0.Z3zApk1i-D16S4twOFI0238IG_Y"


def test_one_form_is_compressed_and_the_other_is_not() -> None:
    before = str(URLSafeSerializer(SECRET, salt=f"cursor\0{LISTING}").dumps(LONG))
    assert before.startswith(".")
    assert not cursors.seal(LONG, LISTING, SECRET).startswith(".")


@pytest.mark.parametrize("cursor", ["", ".", "x", "a.b.c", ".x.y", "é", "W10", "\0"])
def test_what_is_no_cursor_is_refused(cursor: str) -> None:
    with pytest.raises(errors.BadCursor):
        cursors.unseal(cursor, LISTING, SECRET)
